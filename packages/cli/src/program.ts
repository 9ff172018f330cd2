import tab from '@bomb.sh/tab/commander';
import { Command } from 'commander';
import { addBenchCommand } from './commands/bench.ts';
import { addDashboardCommand } from './commands/dashboard.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addExportCommand } from './commands/export.ts';
import { addImportCommand } from './commands/import.ts';
import { addInitCommand } from './commands/init.ts';
import { addInspectCommand } from './commands/inspect.ts';
import { addKeeperCommand } from './commands/keeper.ts';
import { addPolicyCommand } from './commands/policy.ts';
import { addProbeCommand } from './commands/probe.ts';
import { addProxyCommand } from './commands/proxy.ts';
import { addRevokeCommand } from './commands/revoke.ts';
import { addRotateCommand } from './commands/rotate.ts';
import { addStatusCommand } from './commands/status.ts';
import { cliVersion } from './version.ts';

const AFTER = `
Configuration: the file of --config, else sealring.config.js, .mjs, .ts or .mts
in the working directory, else the SEALRING_* variables. No option takes a
secret.

Exit codes: 0 done; 1 the KMS or the store rejected the operation, the doctor
found an error, or the probe found a hole; 2 wrong command line or
configuration; 3 ("status" only): the ring works, but something needs attention.

Example:
  $ npx sealring init --local
  $ npx sealring doctor
`;

/** The command line. Each command has its own file. */
export function createProgram(): Command {
  const program = new Command('sealring')
    .description('Operates a ring of data keys that a KMS wraps.')
    .version(cliVersion, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .exitOverride()
    // Prints an error and its suggestion on one line.
    .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`) })
    .addHelpText('after', AFTER);
  addDoctorCommand(program);
  addStatusCommand(program);
  addDashboardCommand(program);
  addInitCommand(program);
  addRotateCommand(program);
  addRevokeCommand(program);
  addInspectCommand(program);
  addExportCommand(program);
  addImportCommand(program);
  addPolicyCommand(program);
  addBenchCommand(program);
  addProbeCommand(program);
  addProxyCommand(program);
  addKeeperCommand(program);
  addCompleteCommand(program);
  return program;
}

const COMPLETE_EXAMPLE = `
The shell must find "sealring" on the PATH: install @sealring/cli globally, or
add node_modules/.bin to the PATH. Bash also requires the package
bash-completion.

  bash  source <(sealring complete bash)   # in ~/.bashrc
  zsh   sealring complete zsh > "\${fpath[1]}/_sealring"
  fish  sealring complete fish > ~/.config/fish/completions/sealring.fish
`;

/** Adds the command `complete`, which the library implements. A generated script calls it with "--" for suggestions. */
function addCompleteCommand(program: Command): void {
  tab(program);
  const complete = program.commands.find((command) => command.name() === 'complete');
  complete
    ?.summary('print a completion script for a shell')
    .description('Prints a completion script for bash, zsh, fish or powershell.')
    .addHelpText('after', COMPLETE_EXAMPLE);
}
