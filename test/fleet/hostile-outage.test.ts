import { type Clock, createKmsCodec, type KeyWrapper, type KmsCodec, type WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { Dice } from '../simulator/dice.ts';
import { EPOCH_MS } from '../simulator/member.ts';
import { type Line, newLine, SimulatedKms, SimulatedStore } from '../simulator/services.ts';
import { Timeline } from '../simulator/timeline.ts';
import { seedCount } from '../support/seeds.ts';
import { HostileTokens, refusalOf } from './hostile.ts';

/** Number of seeds; SEALRING_SEEDS=10 uses ten. */
const SEEDS = seedCount(1);
const MEMBERS = 2;
const MINUTE = 60_000;
const OUTAGE_MS = 40 * MINUTE;
const TOKENS_PER_SECOND = 100;
/** The same tokens are sent repeatedly, because making one takes as long as refusing it. */
const KINDS_OF_TOKENS = 5_000;
const MISS_REFRESH_SECONDS = 10;

/** A failure of the KMS for all members. Returns the function that ends it. */
type Trouble = (clouds: Clouds) => () => void;

interface Clouds {
  readonly first: SimulatedKms;
  readonly second: SimulatedKms;
}

const troubles: readonly { what: string; clouds: 1 | 2; begin: Trouble }[] = [
  { what: 'throttles', clouds: 1, begin: ({ first }) => first.fail('throttled') },
  { what: 'does not answer', clouds: 1, begin: ({ first }) => silence(first) },
  { what: 'says that its key is disabled', clouds: 1, begin: ({ first }) => first.fail('disabled') },
  { what: 'is one of two clouds, and fails', clouds: 2, begin: ({ first }) => first.fail('unavailable') },
  { what: 'is the other one of two clouds, and does not answer', clouds: 2, begin: ({ second }) => silence(second) },
];

function silence({ weather }: SimulatedKms): () => void {
  weather.loss = 1;
  return () => {
    weather.loss = 0;
  };
}

/** Calls to the services during the outage, and during an equal time after it. */
interface Asked {
  readonly kms: readonly number[];
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** Reasons why tokens were refused. */
  readonly reasons: ReadonlySet<string>;
}

/**
 * Runs one world twice: with forged tokens, and without. Each service and each member has its own random numbers, and
 * the store takes no time, so that only the tokens can make a difference.
 */
async function run(seed: number, clouds: 1 | 2, begin: Trouble, isHostile: boolean): Promise<Asked> {
  const timeline = new Timeline();
  const store = new SimulatedStore(timeline, new Dice(seed + 1), { loss: 0, meanLatencyMs: 0 });
  const newKms = (number: number) =>
    new SimulatedKms(timeline, new Dice(seed + number), { loss: 0, meanLatencyMs: 30 });
  const kms: Clouds = { first: newKms(2), second: newKms(3) };
  const clock: Clock = {
    wallMs: () => EPOCH_MS + timeline.nowMs,
    monotonicNs: () => BigInt(Math.round(timeline.nowMs * 1e6)),
    schedule: (callback, delayMs) => timeline.after(delayMs, callback),
  };
  const lines: Line[] = [];
  const codecs: KmsCodec[] = [];
  const start = async (member: number): Promise<void> => {
    const line = newLine();
    const [first, second] = [kms.first.connect(line), named('another', kms.second.connect(line))];
    const keyWrapper = clouds === 1 ? first : [first, second];
    const { source } = new Dice(seed + 10 + member);
    lines.push(line);
    const ring = store.connect(line);
    codecs.push(await createKmsCodec({ keyWrapper, wrapQuorum: 1, ring, create: 'now', clock, random: source }));
  };
  for (let member = 0; member < MEMBERS; member++) {
    void start(member);
    await timeline.advance(timeline.nowMs + MINUTE, 0);
  }
  const [codec] = codecs;
  if (codec === undefined || codecs.length < MEMBERS) throw new Error('a member has not started');
  const maker = new HostileTokens(codec.seal(Buffer.from('state')), seed);
  const tokens = Array.from({ length: KINDS_OF_TOKENS }, () => maker.next());
  let sent = 0;
  await timeline.advance(60 * MINUTE, 0);

  const end = begin(kms);
  // With two clouds, one alone can make a key, which lacks the other's wrap until that cloud is back.
  void codec.rotate().catch(() => undefined);
  await timeline.advance(70 * MINUTE, 0);
  const before = lines.map(({ calls }) => ({ ...calls }));
  const reasons = new Set<string>();
  const until = timeline.nowMs + OUTAGE_MS;
  const send = (): void => {
    if (timeline.nowMs >= until) return;
    for (let i = 0; i < TOKENS_PER_SECOND / 10; i++) {
      const target = codecs[i % MEMBERS] as KmsCodec;
      const token = tokens[sent++ % tokens.length] as string;
      // Unseal it as the boundary does.
      void Promise.resolve(target.prepare(token)).then(() => reasons.add(refusalOf(target, token) ?? 'opened'));
    }
    timeline.after(100, send);
  };
  if (isHostile) send();
  await timeline.advance(until, 0);
  const during = lines.map(({ calls }) => ({ ...calls }));
  end();
  await timeline.advance(until + OUTAGE_MS, 0);
  for (const each of codecs) {
    expect(each.health().status).toBe('ok');
    await each.close();
  }
  const spans = [
    [before, during],
    [during, lines.map(({ calls }) => calls)],
  ] as const;
  const asked = (what: 'kms' | 'reads' | 'writes'): number[] =>
    spans.flatMap(([from, to]) => to.map((calls, i) => calls[what] - (from[i]?.[what] ?? 0)));
  return { kms: asked('kms'), reads: asked('reads'), writes: asked('writes'), reasons };
}

/** The same service under another name makes two clouds. */
function named(provider: string, inner: KeyWrapper): KeyWrapper {
  const renamed = (wrapped: WrappedKey): WrappedKey => ({ ...wrapped, provider });
  return {
    provider,
    keyId: inner.keyId,
    supports: inner.supports,
    wrap: async (dataKey, options) => renamed(await inner.wrap(dataKey, options)),
    unwrap: (wrapped, options) => inner.unwrap(wrapped, options),
  };
}

describe(`${TOKENS_PER_SECOND} made-up tokens per second for 40 minutes (F46)`, () => {
  test.each(troubles)(
    'made-up tokens cause no call to a KMS that $what, and at most one read of the store per missRefresh per member',
    async ({ clouds, begin }) => {
      for (let i = 0; i < SEEDS; i++) {
        const seed = 100 * (i + 1);
        const quiet = await run(seed, clouds, begin, false);
        const hostile = await run(seed, clouds, begin, true);
        // There are calls to compare: without any, the test would show nothing.
        expect(Math.min(...quiet.kms)).toBeGreaterThan(0);
        expect(hostile.kms).toEqual(quiet.kms);
        expect(hostile.writes).toEqual(quiet.writes);
        const caused = hostile.reads.map((reads, member) => reads - (quiet.reads[member] ?? 0)).slice(0, MEMBERS);
        for (const reads of caused) {
          expect(reads).toBeGreaterThan(OUTAGE_MS / 1_000 / MISS_REFRESH_SECONDS / 2);
          expect(reads).toBeLessThanOrEqual(OUTAGE_MS / 1_000 / MISS_REFRESH_SECONDS);
        }
        expect([...hostile.reasons].toSorted()).toEqual(expect.arrayContaining(['malformed', 'unknown key']));
        expect(hostile.reasons).not.toContain('opened');
      }
    },
  );
});
