import { Command } from 'commander';
import { addBenchCommand } from './commands/bench.ts';
import { addDashboardCommand } from './commands/dashboard.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addExportCommand } from './commands/export.ts';
import { addImportCommand } from './commands/import.ts';
import { addInitCommand } from './commands/init.ts';
import { addInspectCommand } from './commands/inspect.ts';
import { addPolicyCommand } from './commands/policy.ts';
import { addRevokeCommand } from './commands/revoke.ts';
import { addRotateCommand } from './commands/rotate.ts';
import { addStatusCommand } from './commands/status.ts';
import { cliVersion } from './version.ts';

const AFTER = `
Which ring: --config, else sealring.config.js, .mjs or .ts of the working directory, else the SEALRING_* variables of the
Terraform modules. No option takes a secret.

Exit code: 0 done, 1 it failed or the doctor found an error, 2 the command line or the configuration is wrong.

Example:
  $ npx sealring init --local
  $ npx sealring doctor
`;

/** The command line: each command is a file of its own. */
export function createProgram(): Command {
  const program = new Command('sealring')
    .description('Looks after a ring of KMS-wrapped data keys.')
    .version(cliVersion, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .exitOverride()
    // One line, a suggestion included.
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
  return program;
}
