import { setTimeout as pause } from 'node:timers/promises';
import { type FleetSettings, RefundServer } from './fleet.ts';
import type { Report } from './messages.ts';
import { askAndConfirm } from './official-client.ts';
import { type RawAnswer, type RawCall, rawCall } from './raw-call.ts';
import { type Timeline, Unexpected } from './timeline.ts';

const REFUSED = { code: -32602, message: 'Invalid or expired requestState' };
const BRIEF_TTL_MS = 1_000;
const ROTATION_MS = 25_000;
const ORDER = { order: '1017', cents: 4_990 };

/** Runs all steps, or throws for the first that fails. Each server is pushed to `started` when it starts. */
export async function tellStory(timeline: Timeline, settings: FleetSettings, started: RefundServer[]): Promise<void> {
  const keys = new KeyNames(timeline);

  timeline.heading('1  Two servers, one ring');
  const [a, b] = await Promise.all([
    RefundServer.start('A', settings, started),
    RefundServer.start('B', settings, started),
  ]);
  const [first] = await sealingKeys([a, b]);
  for (const server of [a, b]) timeline.line(server.name, `127.0.0.1:${server.port}, seals with ${keys.of(first)}`);
  timeline.expect(
    (await sealingKeys([a, b])).length === 1 && first !== undefined,
    'A, B',
    'both tried to create the ring, and it has one key',
    'A and B seal with different keys, or with none',
  );

  timeline.heading('2  One question, two rounds, two servers');
  const done = await askAndConfirm([a, b], ORDER, {
    line: (who, what) => timeline.line(who, what),
    token: (token) => `${show(token)} under ${keys.ofToken(token)}`,
  });
  timeline.expect(
    done === '€49.90 paid for order 1017, asked by A, done by B',
    'B',
    'B read the state that A sealed',
    `B must complete the request of A, but answered ${JSON.stringify(done)}`,
  );

  timeline.heading('3  Tokens that must be refused, always with the same answer');
  const expiring = await tokenFrom(a, { url: a.url('/brief'), order: ORDER });
  const expired = pause(BRIEF_TTL_MS + 100);
  const token = await tokenFrom(a);
  await refuse(timeline, b, 'one character changed', { requestState: changed(token) }, 'authentication failed');
  await refuse(timeline, b, 'another amount', { requestState: token, order: { ...ORDER, cents: 499_000 } }, TARGET);
  await refuse(timeline, b, 'another tool', { requestState: token, tool: 'credit' }, TARGET);
  await refuse(timeline, b, 'another user’s login', { requestState: token, as: 'mallory' }, 'principal');
  await expired;
  await refuse(timeline, b, 'one second too old', { requestState: expiring }, 'expired');

  timeline.heading('4  A server that starts later');
  const c = await RefundServer.start('C', settings, started);
  const { kmsCalls } = await c.report();
  timeline.line('C', `127.0.0.1:${c.port}, started with ${callsOf(kmsCalls)} of the KMS`);
  await redeem(timeline, c, token, 'a token that A sealed before C started', keys);

  timeline.heading('5  A rotation under load');
  const fleet = [a, b, c];
  await a.rotate();
  const next = (await a.report()).keys.find(({ state }) => state === 'propagating')?.id;
  timeline.line('A', `published ${keys.of(next)}: every server can unseal with it before one seals with it`);
  await rotate(timeline, fleet, next, keys);
  for (const { id, state } of (await c.report()).keys) timeline.line('C', `${keys.of(id)} is ${state}`);
  await redeem(timeline, c, token, 'the old token of A', keys);
  const newToken = await tokenFrom(b);
  timeline.expect(
    keyOf(newToken) === next,
    'B',
    `seals with ${keys.of(next)}`,
    `B must seal with ${keys.of(next)}, but sealed with ${keys.ofToken(newToken)}`,
  );
  await redeem(timeline, a, newToken, 'the new token of B', keys);

  timeline.heading('6  The costs');
  const reports = await Promise.all(fleet.map((server) => server.report()));
  const sum = (count: (report: Report) => number): number => reports.reduce((total, each) => total + count(each), 0);
  const calls = sum(({ kmsCalls: { generate, wrap, unwrap } }) => generate + wrap + unwrap);
  timeline.line(
    'A, B, C',
    `${sum(({ sealed }) => sealed)} tokens sealed, ${sum(({ unsealed }) => unsealed)} unsealed, ${calls} KMS calls`,
  );
  timeline.note(
    'Sealing and unsealing make none. Here every server makes a KMS check once a second; by default it makes',
  );
  timeline.note('one every 15 minutes: 4 or 5 calls per server per hour, at any load.');
  timeline.finished('every step succeeded');
}

const TARGET = 'request binding';

/** Sends one call with a token that must be refused, and compares the answer to the client and the reason on the server. */
async function refuse(
  timeline: Timeline,
  server: RefundServer,
  what: string,
  call: Partial<RawCall>,
  reason: string,
): Promise<void> {
  const { error, text } = await rawCall({ url: server.url(), order: ORDER, ...call });
  const answered = error === undefined ? `answered ${JSON.stringify(text)}` : `${error.code} ${error.message}`;
  const known = error === undefined ? 'nothing' : await server.refusal();
  timeline.expect(
    error?.code === REFUSED.code && error.message === REFUSED.message && known === reason,
    `→ ${server.name}`,
    `${what.padEnd(22)} ${answered}   reason on ${server.name}: ${known}`,
    `${server.name} must refuse a token with ${what} for ${reason}, but ${answered} (reason: ${known})`,
  );
}

/** Redeems a token at a server that did not seal it. */
async function redeem(
  timeline: Timeline,
  server: RefundServer,
  requestState: string,
  what: string,
  keys: KeyNames,
): Promise<void> {
  const answer = await rawCall({ url: server.url(), order: ORDER, requestState });
  timeline.expect(
    isPaid(answer),
    `→ ${server.name}`,
    `accepted ${what}, ${show(requestState)} under ${keys.ofToken(requestState)}`,
    `${server.name} must accept ${what}, but answered ${JSON.stringify(answer)}`,
  );
}

/** Makes refunds until every server seals with `next`, with each round on another server. */
async function rotate(
  timeline: Timeline,
  fleet: readonly RefundServer[],
  next: string | undefined,
  keys: KeyNames,
): Promise<void> {
  const tokensBy = new Map<string, number>();
  const started = performance.now();
  const progress = timeline.progress('A, B, C', 'refunds until all servers seal with it');
  let refunds = 0;
  let seconds = 0;
  for (;;) {
    const [asks, pays] = [fleet[refunds % fleet.length], fleet[(refunds + 1) % fleet.length]];
    if (asks === undefined || pays === undefined) throw new Error('a fleet has servers');
    const requestState = await tokenFrom(asks);
    const answer = await rawCall({ url: pays.url(), order: ORDER, requestState });
    if (!isPaid(answer)) {
      progress.done('');
      throw new Error(`${pays.name} refused a token of ${asks.name} during the rotation: ${JSON.stringify(answer)}`);
    }
    refunds += 1;
    tokensBy.set(keyOf(requestState), (tokensBy.get(keyOf(requestState)) ?? 0) + 1);
    const elapsed = performance.now() - started;
    if (elapsed >= (seconds + 1) * 1_000) progress.step(`${(seconds += 1)} `);
    if (refunds % 10 === 0 && (await sealingKeys(fleet)).every((key) => key === next)) break;
    if (elapsed > ROTATION_MS) {
      progress.done('');
      throw new Error(`not all servers seal with ${keys.of(next)} after ${ROTATION_MS / 1_000} s`);
    }
    await pause(25);
  }
  progress.done('');
  const split = [...tokensBy].map(([key, count]) => `${count} under ${keys.of(key)}`).join(', ');
  timeline.met('A, B, C', `${refunds} refunds during the rotation, ${split}, none refused`);
}

async function tokenFrom(server: RefundServer, call: Partial<RawCall> = {}): Promise<string> {
  const answer = await rawCall({ url: server.url(), order: ORDER, ...call });
  if (answer.requestState === undefined) {
    throw new Error(`${server.name} returned no requestState, but ${JSON.stringify(answer)}`);
  }
  return answer.requestState;
}

/** The different keys that servers seal with now. */
async function sealingKeys(servers: readonly RefundServer[]): Promise<(string | undefined)[]> {
  const reports = await Promise.all(servers.map((server) => server.report()));
  return [...new Set(reports.map(({ sealingKey }) => sealingKey))];
}

function isPaid({ text }: RawAnswer): boolean {
  return text?.startsWith('€49.90 paid for order 1017') === true;
}

function changed(token: string): string {
  const at = Math.floor(token.length / 2);
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

/** The key id in a native token: 12 characters after `sr1.`. See docs/guides/wire-format.md. */
function keyOf(token: string): string {
  return token.slice(4, 16);
}

function show(token: string): string {
  return `${token.slice(0, 8)}…`;
}

function callsOf({ generate, wrap, unwrap }: Report['kmsCalls']): string {
  const calls = generate + wrap + unwrap;
  return calls === 1 ? '1 call' : `${calls} calls`;
}

/** Key ids are random; the output shows numbers instead. */
class KeyNames {
  readonly #timeline: Timeline;
  readonly #ids: string[] = [];

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  of(id: string | undefined): string {
    if (id === undefined) return 'no key';
    if (!this.#ids.includes(id)) this.#ids.push(id);
    return this.#timeline.key(`key ${this.#ids.indexOf(id) + 1}`);
  }

  ofToken(token: string): string {
    if (!token.startsWith('sr1.')) throw new Unexpected('a requestState left the server unsealed');
    return this.of(keyOf(token));
  }
}
