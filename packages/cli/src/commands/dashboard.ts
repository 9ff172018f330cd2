import { hashedKeyId, type KmsCodec } from '@sealring/core';
import type { Command } from 'commander';
import { History } from '../dashboard/history.ts';
import { reportOf } from '../dashboard/member.ts';
import { mainPartOf, pageOf } from '../dashboard/page.ts';
import { type Scraped, scrape } from '../dashboard/scrape.ts';
import { isLoopback, servePage } from '../dashboard/server.ts';
import { type View, viewKeysOf } from '../dashboard/view.ts';
import { Failure } from '../failure.ts';
import { lineOf } from '../foreign-error.ts';
import { statusOf, troublesOf } from '../ring-status.ts';
import type { SealringConfig } from '../settings/settings.ts';
import { stopSignal, waits } from '../until-stopped.ts';
import { UsageError } from '../usage-error.ts';
import { visibleLine } from '../visible.ts';
import { withRing } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const DEFAULT_EVERY_SECONDS = 5;
const MAX_MEMBERS = 32;

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
    .action(async ({ config: file, json = false, scrape: urls, port: wanted, host, every }: DashboardOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const stop = stopSignal();
        const watch = new Watch(codec, config, urls, every);
        await watch.look();
        const page = { whole: (nonce: string) => pageOf(watch.view, nonce), main: () => mainPartOf(watch.view) };
        const server = await servePage(host, wanted, page).catch((error: unknown) => {
          const code = error instanceof Error && 'code' in error ? String(error.code) : 'an error';
          throw new Failure(`cannot listen on ${host} port ${wanted}: ${code}`);
        });
        if (json) printJson({ url: server.url });
        else process.stdout.write(`the ring is on ${server.url} until Ctrl-C\n`);
        if (!isLoopback(host)) process.stderr.write(`${WARNING}\n`);
        try {
          while (await waits(every * 1_000, stop)) await watch.look();
        } finally {
          await server.close();
        }
      });
    });
}

const WARNING =
  'WARNING: the page has no password and no encryption, and everybody who can reach this address can see it. Prefer ' +
  '127.0.0.1 and a tunnel, "ssh -L".';

/** What was seen last, and what happened since the first look. */
class Watch {
  readonly #codec: KmsCodec;
  readonly #config: SealringConfig;
  readonly #urls: readonly URL[];
  readonly #everySeconds: number;
  readonly #history = new History();
  #view: View | undefined;

  constructor(codec: KmsCodec, config: SealringConfig, urls: readonly URL[], everySeconds: number) {
    this.#codec = codec;
    this.#config = config;
    this.#urls = urls;
    this.#everySeconds = everySeconds;
  }

  get view(): View {
    if (this.#view === undefined) throw new Error('nothing was looked at yet');
    return this.#view;
  }

  /** Reads the ring and asks the members. What is away is shown, and is no reason to stop. */
  async look(): Promise<void> {
    const [trouble, scraped] = await Promise.all([this.#refreshed(), Promise.all(this.#urls.map(scraping))]);
    const status = await statusOf(this.#codec, this.#config);
    const members = scraped.map(({ name, answer }) => ({ name, answer, report: reportOf(answer, status.ring) }));
    const answered = members.filter(({ answer }) => 'samples' in answer);
    this.#history.add(performance.now(), new Map(answered.map(({ name, report }) => [name, report.counts])));
    this.#view = {
      ring: visibleLine(status.ring),
      store: status.store,
      at: status.at,
      everySeconds: this.#everySeconds,
      keys: viewKeysOf(status),
      nextRotation: status.nextRotation,
      trouble,
      problems: troublesOf(status, hashedKeyId),
      members: members.map(({ name, answer, report }) => ({
        name,
        failure: 'failure' in answer ? answer.failure : undefined,
        health: report.health,
      })),
      rounds: this.#history.rounds,
    };
  }

  async #refreshed(): Promise<string | undefined> {
    try {
      await this.#codec.refresh();
      return undefined;
    } catch (error) {
      return visibleLine(lineOf(error));
    }
  }
}

async function scraping(url: URL): Promise<{ readonly name: string; readonly answer: Scraped }> {
  return { name: `${url.host}${url.pathname}`.replace(/\/$/, ''), answer: await scrape(url.href) };
}

function member(text: string, others: readonly URL[]): readonly URL[] {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // Never repeated: it may be a secret on a command line.
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError('--scrape must be an address that starts with http:// or https://');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new UsageError('--scrape must have no user, password, query or fragment in it');
  }
  if (others.length >= MAX_MEMBERS) throw new UsageError(`--scrape: at most ${MAX_MEMBERS} members are asked`);
  return others.some(({ href }) => href === url.href) ? others : [...others, url];
}
