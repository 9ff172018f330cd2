import { option } from '@sealring/core/adapter';
import { History } from './history.ts';
import { MAX_MEMBERS, refusalOfMember } from './member-address.ts';
import { mainPartOf, pageOf } from './page.ts';
import type { RingReport } from './ring-report.ts';
import { scrape } from './scrape.ts';
import { servePage } from './server.ts';
import { type View, viewOf } from './view.ts';

const OWNER = 'serveDashboard';
const DEFAULT_EVERY_SECONDS = 5;
const LONGEST_EVERY_SECONDS = 86_400;

/** Options of {@link serveDashboard}. */
export interface DashboardOptions {
  /**
   * Reads the ring, once per round. If the ring cannot be read, return a report with `trouble`: a rejection ends
   * {@link Dashboard.run}.
   */
  readonly look: () => Promise<RingReport>;
  /**
   * Addresses where members export their metrics for Prometheus: at most 32, `http:` or `https:`, without a user,
   * password, query or fragment. Default: none.
   */
  readonly members?: readonly URL[];
  /** Time between two rounds, in seconds; 1 to 86 400. Default: 5. */
  readonly everySeconds?: number;
  /**
   * Address or name to listen on. If it is not a loopback address, everyone who can reach it sees the page. Default:
   * `127.0.0.1`.
   */
  readonly host?: string;
  /** Port to listen on. Default: a free port. */
  readonly port?: number;
}

/** A running dashboard. */
export interface Dashboard extends AsyncDisposable {
  /** Address of the page. */
  readonly url: string;
  /** Runs round after round, until the signal is aborted. Rejects if `look` rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Stops the server and closes its connections. */
  close(): Promise<void>;
}

/**
 * Runs one round, then serves one page, for GET and HEAD. The page is read-only, loads nothing from other servers, and
 * identifies keys by the same hashes as events do.
 *
 * @throws {RangeError} for an option out of range.
 * @throws {NodeJS.ErrnoException} if it cannot listen. Errors of `look` are rethrown.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto';
 * import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
 * import { serveDashboard } from '@sealring/dashboard';
 *
 * const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
 * await using codec = await createKmsCodec({ keyWrapper, ring: memoryRing() });
 * const look = async () => {
 *   const { keys, sealingKey, problems } = codec.health();
 *   const at = new Date();
 *   return { ring: 'default', store: 'memory', at, keys, sealingKey, nextRotation: undefined, trouble: undefined, problems };
 * };
 * await using dashboard = await serveDashboard({ look });
 * await dashboard.run(AbortSignal.timeout(1_000));
 * ```
 */
export async function serveDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { look, members = [], everySeconds = DEFAULT_EVERY_SECONDS, host = '127.0.0.1', port = 0 } = options;
  checkMembers(members);
  if (!(everySeconds >= 1 && everySeconds <= LONGEST_EVERY_SECONDS)) {
    throw option.rangeError(`${OWNER}: everySeconds must be from 1 to ${LONGEST_EVERY_SECONDS}, got ${everySeconds}`);
  }
  const history = new History();
  // A member that does not answer is shown, and does not end the dashboard.
  const seen = async (): Promise<View> => {
    const asking = members.map(async (url) => ({ url, answer: await scrape(url.href) }));
    const [ring, ...asked] = await Promise.all([look(), ...asking]);
    return viewOf(ring, asked, { history, everySeconds });
  };
  let view = await seen();
  const page = { whole: (nonce: string) => pageOf(view, nonce), main: () => mainPartOf(view) };
  const server = await servePage(host, port, page);
  return {
    url: server.url,
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
    async run(signal) {
      while (!signal.aborted) {
        await timeOrAbort(everySeconds * 1_000, signal);
        if (!signal.aborted) view = await seen();
      }
    },
  };
}

function checkMembers(members: readonly URL[]): void {
  if (members.length > MAX_MEMBERS) {
    throw option.rangeError(`${OWNER}: members must have at most ${MAX_MEMBERS} addresses, got ${members.length}`);
  }
  for (const [index, { href }] of members.entries()) {
    const refusal = refusalOfMember(href);
    if (refusal !== undefined) throw option.rangeError(`${OWNER}: members[${index}] must ${refusal}`);
  }
}

function timeOrAbort(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
