import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readKernelEntropy } from '../../src/base/kernel-entropy.ts';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { RingConflictError, type RingStore, RingStoreError } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { encodeDocument, parseDocument } from '../../src/ring/document.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';
import { CallTimes } from '../support/calls-in-time.ts';
import { Draws } from '../support/draws.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const DAY = 86_400;
/** A document of a ring that is about to be created, or of an absent one. */
const claimed = (claim: string | undefined): string => encodeDocument({ ring: 'default', claim, entries: [] });
const ANOTHER = 'another'.padEnd(22, '_');

let fleet: Fleet;
let times: CallTimes;
let writes: number[];
beforeEach(() => {
  fleet = new Fleet();
  times = new CallTimes(fleet.clock);
  writes = [];
});
afterEach(() => fleet.close());

function now(): number {
  return Number(fleet.clock.monotonicNs()) / 1e9;
}

async function stored() {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

/** Seconds between the calls, to the tenth of a millisecond. */
function stepsOf(all: readonly number[]): number[] {
  return all.slice(1).map((at, i) => Math.round((at - (all[i] ?? 0)) * 1e4) / 1e4);
}

/** Starts with every draw at a half and every call recorded; returns the result and the seconds that it took. */
async function start(
  options: Partial<KmsCodecOptions> = {},
): Promise<{ member: Member | undefined; failure: unknown; seconds: number }> {
  const began = now();
  let ended = Number.NaN;
  const inner: RingStore = options.ring ?? fleet.store.connect();
  const ring: RingStore = {
    ...inner,
    write: (document, given) => {
      writes.push(now());
      return inner.write(document, given);
    },
  };
  const noted = {
    random: new Draws(0.5).random,
    keyWrapper: times.keyWrapper(fleet.kms.connect()),
    ...options,
    ring: times.store(ring),
  };
  const [result] = await Promise.allSettled([
    fleet.start(noted).finally(() => {
      ended = now();
    }),
  ]);
  const seconds = ended - began;
  if (result.status === 'rejected') return { member: undefined, failure: result.reason, seconds };
  return { member: result.value, failure: undefined, seconds };
}

const unavailable = { name: 'RingStoreError', kind: 'unavailable' };
const absent = { name: 'RingStoreError', kind: 'absent' };
const corrupt = { name: 'RingStoreError', kind: 'corrupt' };

describe('a start on a store that cannot be reached', () => {
  test('tries again after growing waits, and gives up after startTimeout, whatever createAfter is', async () => {
    fleet.store.down = true;
    const { failure, seconds } = await start({ policy: { createAfterSeconds: 360 } });
    expect(failure).toMatchObject(unavailable);
    expect(stepsOf(times.reads).slice(0, 7)).toEqual([0.1, 0.2, 0.4, 0.8, 1.6, 2.5, 2.5]);
    expect(seconds).toBeCloseTo(120, 0);
    expect(seconds).toBeLessThanOrEqual(120.5);
  });

  test('creates nothing after an outage of over a minute until the ring has been absent for createAfter again', async () => {
    const policy = { createAfterSeconds: 100 };
    // The store is down after 10 s, for 70 s.
    fleet.clock.schedule(() => (fleet.store.down = true), 10_000);
    fleet.clock.schedule(() => (fleet.store.down = false), 80_000);
    const { member, seconds } = await start({ policy });
    expect(member).toBeDefined();
    expect(seconds).toBeGreaterThanOrEqual(180);
  });
});

describe('a start on an empty store', () => {
  test('reads every 4.5 s until createAfter is over, and then creates the ring', async () => {
    const { member, seconds } = await start({ policy: { createAfterSeconds: 20 } });
    expect(member).toBeDefined();
    expect(stepsOf(times.reads).slice(0, 5)).toEqual([4.5, 4.5, 4.5, 4.5, 2]);
    expect(seconds).toBeLessThanOrEqual(20.5);
  });

  test.each([0, 360])(
    'creates nothing as a reader, and gives up after startTimeout: createAfter %d s',
    async (after) => {
      const { failure, seconds } = await start({ role: 'reader', policy: { createAfterSeconds: after } });
      expect(failure).toMatchObject(absent);
      expect(fleet.store.writes).toBe(0);
      expect(seconds).toBeGreaterThanOrEqual(119.5);
      expect(seconds).toBeLessThanOrEqual(125);
    },
  );

  test('waits slightly longer each time if it loses the race for every write', async () => {
    const inner = fleet.store.connect();
    const ring: RingStore = {
      ...inner,
      write: async () => {
        // About thirty calls are made in 10 s.
        throw writes.length > 100 ? new RingStoreError('denied', 'too many') : new RingConflictError();
      },
    };
    const { failure } = await start({ ring, policy: { startTimeoutSeconds: 10 } });
    expect(failure).toMatchObject(absent);
    const waits = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.5, 0.5];
    expect(stepsOf(writes).slice(0, 12)).toEqual(waits);
  });
});

test('a start counts lost races and failures separately', async () => {
  const inner = fleet.store.connect();
  const write: RingStore['write'] = async () => {
    fleet.store.down = true;
    throw new RingConflictError();
  };
  await start({ ring: { ...inner, write }, policy: { createAfterSeconds: 0, startTimeoutSeconds: 5 } });
  // The second read is that of the member whose turn it is.
  expect(stepsOf(times.reads).slice(0, 5)).toEqual([0, 0.0005, 0.1, 0.2, 0.4]);
});

describe('a start during a temporary failure of the KMS', () => {
  test.each(['throttled', 'unavailable'] as const)(
    'a start while the KMS is %s continues once the failure has passed',
    async (kind) => {
      await start();
      fleet.kms.failing = kind;
      fleet.clock.schedule(() => (fleet.kms.failing = undefined), 20_000);
      const { member, seconds } = await start();
      expect(member?.codec.health().ready).toBe(true);
      expect(seconds).toBeGreaterThanOrEqual(20);
      expect(seconds).toBeLessThan(30);
    },
  );
});

describe('a start on a ring', () => {
  test('a start on a ring with a live key is immediate, however many of the keys were revoked', async () => {
    const { member: a } = await start();
    await a?.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const { member: b, seconds } = await start({ policy: { createAfterSeconds: 360 } });
    expect(seconds).toBeLessThanOrEqual(0.5);
    expect(open(b as Member, seal(a as Member))).toBe('state');
  });

  test('waits for createAfter if all keys have expired, then creates a key that they vouch for', async () => {
    const { member: a } = await start();
    await a?.codec.close();
    fleet.clock.suspend(5 * DAY);
    const [ended] = (await stored()).entries;
    const { member: b, seconds } = await start({ policy: { createAfterSeconds: 360 } });
    expect(seconds).toBeGreaterThanOrEqual(360);
    expect(b?.codec.health()).toMatchObject({ ready: true });
    const { entries } = await stored();
    expect(entries.map(({ vouchers }) => Array.from(vouchers.keys()))).toEqual([[ended?.id]]);
  });

  test('a start with create: never is refused at once if all keys have expired, and nothing is written', async () => {
    const { member: a } = await start();
    await a?.codec.close();
    fleet.clock.suspend(5 * DAY);
    const before = await fleet.store.document();
    const { failure, seconds } = await start({ create: 'never', policy: { createAfterSeconds: 360 } });
    expect(failure).toMatchObject(corrupt);
    expect(seconds).toBeLessThanOrEqual(0.5);
    expect(await fleet.store.document()).toBe(before);
  });

  test('a start as a reader is refused at once, without a KMS call, if all keys expire at this moment', async () => {
    const { member: a } = await start();
    const [key] = a?.codec.health().keys ?? [];
    await a?.codec.close();
    fleet.clock.suspend(((key?.unsealsUntil.getTime() ?? 0) - fleet.clock.wallMs()) / 1_000);
    times.clear();
    const { failure, seconds } = await start({ role: 'reader' });
    expect(failure).toMatchObject(corrupt);
    expect(seconds).toBeLessThanOrEqual(0.5);
    expect(times.unwraps).toEqual([]);
  });

  test('a start is refused if all keys are older than the pin, and nothing is written', async () => {
    const { member: a } = await start();
    await a?.codec.rotate();
    const before = await fleet.store.document();
    const { failure } = await start({ acceptKeysCreatedAfter: new Date(fleet.clock.wallMs() + 60_000) });
    expect(failure).toMatchObject(corrupt);
    expect(await fleet.store.document()).toBe(before);
  });

  test('a ring whose keys have all expired is treated as absent, even if the pin refuses one of them', async () => {
    const { member: a } = await start();
    const pin = new Date(fleet.clock.wallMs() + 50_000);
    await fleet.clock.advance(100);
    await a?.codec.rotate();
    await a?.codec.close();
    fleet.clock.suspend(5 * DAY);
    const { member: b } = await start({ acceptKeysCreatedAfter: pin });
    expect(open(b as Member, seal(b as Member))).toBe('state');
    expect((await stored()).entries).toHaveLength(1);
  });

  test('a reader that starts when no key seals, but some still unseal, unseals tokens and publishes nothing', async () => {
    const { member: a } = await start();
    const token = seal(a as Member);
    const [key] = a?.codec.health().keys ?? [];
    await a?.codec.close();
    fleet.clock.suspend(((key?.sealsUntil.getTime() ?? 0) - fleet.clock.wallMs()) / 1_000 + 10);
    const before = await fleet.store.document();
    const { member: reader } = await start({ role: 'reader' });
    expect(open(reader as Member, token)).toBe('state');
    await reader?.codec.refresh();
    expect(await fleet.store.document()).toBe(before);
    // A member gives it an active key at once.
    const { member: b } = await start();
    expect(open(reader as Member, token)).toBe('state');
    expect(open(b as Member, seal(b as Member))).toBe('state');
  });

  test('adds no missing wrap as a reader, even if one of two key wrappers has made none', async () => {
    await start();
    const before = await fleet.store.document();
    const other = localKeyWrapper({ masterKey: randomBytes(32) });
    const { member: reader } = await start({ role: 'reader', keyWrapper: [fleet.kms.connect(), other] });
    await reader?.codec.refresh();
    expect(await fleet.store.document()).toBe(before);
  });

  test('succeeds even if the store has no watch', async () => {
    const ring = fleet.store.connectUnwatched();
    const { member } = await start({ ring });
    expect(open(member as Member, seal(member as Member))).toBe('state');
  });
});

describe('the creation of a ring in a shared store', () => {
  beforeEach(() => {
    fleet.store.kind = 'shared';
  });
  const policy = { createAfterSeconds: 0 };

  test('waits for another member’s claim for up to a minute, with growing waits between reads, and then takes it over', async () => {
    await fleet.store.put(claimed(ANOTHER));
    const { member, seconds } = await start({ policy });
    expect(member).toBeDefined();
    const looks = [0.0375, 0.075, 0.15, 0.3, 0.6, 1.2, 2.25, 2.25];
    expect(stepsOf(times.reads).slice(0, 8)).toEqual(looks);
    expect(seconds).toBeGreaterThanOrEqual(60);
    expect(seconds).toBeLessThanOrEqual(63);
  });

  test('takes over another member’s claim as soon as twelve calls could have been made since the claim was seen', async () => {
    await fleet.store.put(claimed(ANOTHER));
    // 12 × 0.196875 s, at which the seventh read comes.
    const { member } = await start({ policy: { ...policy, kmsTimeoutSeconds: 0.196875 } });
    expect(member).toBeDefined();
    expect(stepsOf(times.reads)).toEqual([0.0375, 0.075, 0.15, 0.3, 0.6, 1.2]);
  });

  test('a start does not wait for a claim that was withdrawn', async () => {
    await fleet.store.put(claimed(undefined));
    const { member, seconds } = await start({ policy });
    expect(member).toBeDefined();
    expect(seconds).toBeLessThanOrEqual(0.5);
  });

  test('recognizes its own claim when the answer to the write was lost', async () => {
    let lost = 0;
    const inner = fleet.store.connect();
    const ring: RingStore = {
      ...inner,
      write: async (document, options) => {
        const written = await inner.write(document, options);
        if (lost++ === 0) throw new RingStoreError('unavailable', 'the answer was lost');
        return written;
      },
    };
    const { member, seconds } = await start({ ring, policy });
    expect(member).toBeDefined();
    expect(seconds).toBeLessThan(5);
  });

  test('recognizes its own claim when it could not be withdrawn', async () => {
    // The claim is written, its withdrawal fails, and so does the KMS until then: the first call and its retries.
    fleet.kms.failNext = 4;
    const inner = fleet.store.connect();
    const ring: RingStore = {
      ...inner,
      write: (document, options) => {
        if (writes.length === 2) return Promise.reject(new RingStoreError('unavailable', 'no'));
        return inner.write(document, options);
      },
    };
    const { member, seconds } = await start({ ring, policy });
    expect(member).toBeDefined();
    expect(writes).toHaveLength(4);
    expect(seconds).toBeLessThan(10);
  });
});

describe('the randomness of a codec', () => {
  test('only a codec that uses the system’s random source mixes in bytes of the kernel’s device', async () => {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    const codec = await createKmsCodec({ keyWrapper, ring: memoryRing() });
    const own = await createKmsCodec({ keyWrapper, ring: memoryRing(), random: new Draws().random });
    expect(keeperOf(codec)?.kernelEntropy).toHaveLength((await readKernelEntropy()).length);
    expect(keeperOf(own)?.kernelEntropy).toHaveLength(0);
    await Promise.all([codec.close(), own.close()]);
  });
});
