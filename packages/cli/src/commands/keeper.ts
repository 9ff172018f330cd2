import type { Command } from 'commander';
import { EXIT_CODE } from '../exit-code.ts';
import { type KeeperEvent, textOf } from '../keeper/events.ts';
import { keepOnce, runKeeper } from '../keeper/keeper.ts';
import { logJson } from '../terminal/log-json.ts';
import { stopSignal } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withSettingsUntil } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, hostAddress } from './options.ts';

const EXAMPLE = `
Rotates and repairs the ring, and makes KMS checks, as a server does. Use it for
a ring whose servers are frozen or scaled to zero. It serves no requests, and
runs until SIGTERM or Ctrl-C. It prints one line for each rotation, revocation,
repair and problem; with --json, one object per line.

/livez and /readyz on --health-port answer the probes of an orchestrator. In a
container, add --host 0.0.0.0.

--once does the work that is due and exits. Use it in a cron job, which must run
at least once an hour with the default policy. It does not create a ring: run
"sealring init" first. If all keys have expired or were revoked, run "sealring
rotate". It cannot repair a ring that the store lost, and does not look for a
new version of the KMS key.

Exit codes:
  0  stopped; --once: done, a key seals, and nothing needs attention
  1  the KMS or the store prevented the start; --once: also if either rejected
     the work, no key seals, something needs attention, or SIGTERM came first
  2  wrong command line or configuration

Example:
  $ npx sealring init --local
  $ npx sealring keeper --once
`;

interface KeeperCommandOptions extends CommonOptions {
  readonly once?: boolean;
  readonly healthPort?: number;
  readonly host?: string;
}

export function addKeeperCommand(program: Command): void {
  addCommonOptions(
    program
      .command('keeper')
      .summary('maintain the ring while no server is running')
      .description('Runs a member that rotates and repairs the ring, and serves no requests.')
      .option('--once', 'do the work that is due, then exit')
      .option(
        '--health-port <number>',
        'port for /livez and /readyz (default: none)',
        numberIn(0, 65_535, 'whole number'),
      )
      .option('--host <address>', 'address to listen on with --health-port (default: 127.0.0.1)', hostAddress),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, once = false, healthPort, host }: KeeperCommandOptions) => {
      if (once && healthPort !== undefined)
        throw new UsageError(`give only one of --once and --health-port ${healthPort}`);
      if (host !== undefined && healthPort === undefined)
        throw new UsageError(`--host "${host}" requires --health-port`);
      const report = json ? logJson : reportText;
      const running = { stop: stopSignal(), report };
      const isDone = await withSettingsUntil(running.stop, file, async ({ config }) => {
        if (once) return keepOnce(config, running);
        await runKeeper(config, { host: host ?? '127.0.0.1', healthPort }, running);
        return true;
      });
      if (isDone === undefined) report({ event: 'stopping' });
      if (once && isDone !== true) process.exitCode = EXIT_CODE.failed;
    });
}

function reportText(event: KeeperEvent): void {
  process.stdout.write(`${visibleLine(textOf(event))}\n`);
}
