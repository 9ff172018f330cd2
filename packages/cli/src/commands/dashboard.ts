import { hashedKeyId, type KmsCodec } from '@sealring/core';
import { isLoopback, MAX_MEMBERS, type RingReport, refusalOfMember, serveDashboard } from '@sealring/dashboard';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { lineOf } from '../foreign-error.ts';
import { statusOf, troublesOf } from '../ring/status.ts';
import type { SealringConfig } from '../settings/settings.ts';
import { stopSignal } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withRing } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const DEFAULT_EVERY_SECONDS = 5;

const EXAMPLE = `
Reads the ring as "status" does, changes nothing, and serves one page on this machine until Ctrl-C. Keys are shown by the
hashes that metrics and events have. Rates, refusals and the members' health come from the members: name the pages where
@sealring/otel exports their metrics for Prometheus, up to ${MAX_MEMBERS}.

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
      .summary('a page with the ring, rates and refusals')
      .description('Serves a page that shows the ring over time, rates, refusals and members. It changes nothing.')
      .option('--scrape <url>', "a member's page of metrics; again for each member", member, [])
      .option('--port <number>', 'default: one that is free', numberIn(0, 65_535, 'whole number'), 0)
      .option('--host <address>', 'where to listen; beyond this machine, everybody there can see the page', '127.0.0.1')
      .option(
        '--every <seconds>',
        'how often to read the ring and the members',
        numberIn(1, 86_400),
        DEFAULT_EVERY_SECONDS,
      ),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, scrape: members, port, host, every }: DashboardOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const stop = stopSignal();
        const look = () => seen(codec, config);
        const serving = serveDashboard({ look, members, everySeconds: every, host, port });
        await using dashboard = await serving.catch((error: unknown) => {
          throw refusalToListen(error, `${host} port ${port}`);
        });
        if (json) printJson({ url: dashboard.url });
        else process.stdout.write(`the ring is on ${dashboard.url} until Ctrl-C\n`);
        if (!isLoopback(host)) process.stderr.write(`${WARNING}\n`);
        await dashboard.run(stop);
      });
    });
}

const WARNING =
  'WARNING: the page has no password and no encryption, and everybody who can reach this address can see it. Prefer ' +
  '127.0.0.1 and a tunnel, "ssh -L".';

/** An error of the system names the address itself; anything else is thrown as it is. */
function refusalToListen(error: unknown, where: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  return new Failure(`cannot listen on ${where}: ${String(Reflect.get(error, 'code'))}`);
}

/** Reads the ring. What is away is shown, and is no reason to stop. */
async function seen(codec: KmsCodec, config: SealringConfig): Promise<RingReport> {
  const trouble = await refreshed(codec);
  const status = await statusOf(codec, config);
  const { ring, store, at, keys, sealingKey, nextRotation } = status;
  const problems = troublesOf(status, hashedKeyId);
  return { ring: visibleLine(ring), store, at, keys, sealingKey, nextRotation, trouble, problems };
}

/** @returns what keeps the ring from being read. */
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
  if (others.length >= MAX_MEMBERS) throw new UsageError(`--scrape: at most ${MAX_MEMBERS} members are asked`);
  const url = new URL(text);
  return others.some(({ href }) => href === url.href) ? others : [...others, url];
}
