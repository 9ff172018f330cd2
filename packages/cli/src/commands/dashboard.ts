import type { KmsCodec } from '@sealring/core';
import { isLoopback, MAX_MEMBERS, type RingReport, refusalOfMember, serveDashboard } from '@sealring/dashboard';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { lineOf } from '../foreign-error.ts';
import { type RevocationTimes, statusOf } from '../ring/status.ts';
import type { SealringConfig } from '../settings/settings.ts';
import { stopSignal } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withRing } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, hostAddress, portOption, printJson } from './options.ts';

const DEFAULT_EVERY_SECONDS = 5;

const EXAMPLE = `
Reads the ring as "status" does, and serves one page on this machine until
Ctrl-C. Changes nothing.

Rates, rejected tokens and the health of members come from the metrics that
@sealring/otel exports for Prometheus: pass up to ${MAX_MEMBERS} addresses with --scrape.

Example:
  $ npx sealring init --local
  $ npx sealring dashboard --scrape http://127.0.0.1:9464/metrics
`;

interface DashboardOptions extends CommonOptions {
  readonly port: number;
  readonly host: string;
  readonly every: number;
  readonly scrape: readonly URL[];
}

export function addDashboardCommand(program: Command): void {
  addCommonOptions(
    program
      .command('dashboard')
      .summary('serve a page with the ring, rates and members')
      .description('Serves a page that shows the ring over time, rates, rejected tokens and members.')
      .option('--scrape <url>', 'metrics URL of a member; can be repeated', member, [])
      .addOption(portOption())
      .option('--host <address>', 'address to listen on', hostAddress, '127.0.0.1')
      .option(
        '--every <seconds>',
        'interval between reads of the ring and the members',
        numberIn(1, 86_400),
        DEFAULT_EVERY_SECONDS,
      ),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, scrape: members, port, host, every }: DashboardOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const stop = stopSignal();
        const revocations: RevocationTimes = new Map();
        const look = () => reportOf(codec, config, revocations);
        const serving = serveDashboard({ look, members, everySeconds: every, host, port });
        await using dashboard = await serving.catch((error: unknown) => {
          throw listenFailure(error, `${host} port ${port}`);
        });
        if (json) printJson({ url: dashboard.url });
        else process.stdout.write(`serving the dashboard at ${dashboard.url} until Ctrl-C\n`);
        if (!isLoopback(host)) process.stderr.write(`${WARNING}\n`);
        await dashboard.run(stop);
      });
    });
}

const WARNING =
  'WARNING: everyone who can reach this address can read the page: it has no password and no encryption. Prefer ' +
  '127.0.0.1 with a tunnel ("ssh -L").';

/** Converts an error of the operating system to a failure; returns any other error unchanged. */
function listenFailure(error: unknown, where: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  return new Failure('cannot-listen', `cannot listen on ${where}: ${String(Reflect.get(error, 'code'))}`);
}

/** Reads the ring. The page shows a failure of the store or the KMS. */
async function reportOf(codec: KmsCodec, config: SealringConfig, revocations: RevocationTimes): Promise<RingReport> {
  const trouble = await refreshed(codec);
  const status = await statusOf(codec, config, revocations);
  const { ring, store, at, keys, nextRotation } = status;
  // The page already says that the ring could not be read.
  const problems = status.problems.filter(({ kind }) => trouble === undefined || kind !== 'document-unread');
  const sealingKey = keys.find(({ state }) => state === 'active')?.id;
  return { ring: visibleLine(ring), store, at, keys, sealingKey, nextRotation, trouble, problems };
}

/** Reads the ring again. @returns the reason why that failed; undefined if it did not. */
async function refreshed(codec: KmsCodec): Promise<string | undefined> {
  try {
    await codec.refresh();
    return undefined;
  } catch (error) {
    return visibleLine(lineOf(error));
  }
}

function member(text: string, others: readonly URL[]): readonly URL[] {
  const refusal = refusalOfMember(text);
  if (refusal !== undefined) throw new UsageError(`--scrape must ${refusal}`);
  if (others.length >= MAX_MEMBERS) throw new UsageError(`--scrape can be given for at most ${MAX_MEMBERS} members`);
  const url = new URL(text);
  return others.some(({ href }) => href === url.href) ? others : [...others, url];
}
