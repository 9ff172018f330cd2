import { randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import type { RingStore } from '../../src/contracts/ring-store.ts';
import { busiestSecond, CallTimes } from '../support/calls-in-time.ts';
import { Fleet, open, seal } from '../support/fleet.ts';

const MEMBERS = 1_000;
/** Times that are shorter than the defaults, so that the first rotation is due after an hour and a half. */
const policy = {
  refreshEverySeconds: 300,
  kmsCheckEverySeconds: 300,
  sealOutageSeconds: 900,
  storeOutageSeconds: 3_600,
  propagationSeconds: 1_800,
  rotateEverySeconds: 7_200,
};

let fleet: Fleet;
let times: CallTimes;
beforeEach(() => {
  fleet = new Fleet();
  times = new CallTimes(fleet.clock);
});
afterEach(() => fleet.close());

/** Members that start at the same moment on one KMS and one store; records every call. */
async function crowd(options: { readonly latencySeconds?: number; readonly policy?: object } = {}): Promise<void> {
  const { latencySeconds = 0 } = options;
  const ring = times.store(fleet.store.connect());
  const slow = async <T>(run: () => Promise<T>): Promise<T> => {
    if (latencySeconds > 0) await pause(fleet.clock, latencySeconds * 1_000);
    return run();
  };
  const distant: RingStore = {
    ...ring,
    read: (given) => slow(() => ring.read(given)),
    write: (document, given) => slow(() => ring.write(document, given)),
  };
  await fleet.startAll(MEMBERS, {
    ring: distant,
    keyWrapper: times.keyWrapper(fleet.kms.connect()),
    policy: options.policy ?? policy,
  });
}

describe(`${MEMBERS} members that act at the same moment (F6)`, () => {
  test('members that start at the same moment create one key, and make one unwrap each', async () => {
    await crowd();
    expect(fleet.kms.calls).toEqual({ generate: 1, wrap: 0, unwrap: MEMBERS });
  });

  test('members spread reads and KMS checks over a fifth of the interval, long before their limits', async () => {
    await crowd({
      policy: {
        ...policy,
        kmsCheckEverySeconds: 900,
        sealOutageSeconds: 3_600,
        propagationSeconds: 4_500,
        rotateEverySeconds: 86_400,
        storeOutageSeconds: 21_600,
      },
    });
    times.clear();
    const started = Number(fleet.clock.monotonicNs()) / 1e9;
    await fleet.clock.advance(301);
    const since = (all: readonly number[]) => all.map((at) => at - started);
    // 240 to 300 s after the start: 17 per second, if they are evenly spread.
    expect(Math.min(...since(times.reads))).toBeGreaterThanOrEqual(239);
    expect(times.reads.length).toBeGreaterThanOrEqual(MEMBERS);
    expect(busiestSecond(times.reads)).toBeLessThan(60);
    expect(times.unwraps).toEqual([]);
    await fleet.clock.advance(620);
    // 720 to 900 s after the start: 6 in a second. No member waits an hour, until its KMS check is too old.
    expect(Math.min(...since(times.unwraps))).toBeGreaterThanOrEqual(719);
    expect(times.unwraps).toHaveLength(MEMBERS);
    expect(busiestSecond(times.unwraps)).toBeLessThan(30);
  });

  test('members read a new key after a push, and spread its unwraps over a minute', async () => {
    await crowd();
    await fleet.clock.advance(1);
    times.clear();
    await fleet.members[0]?.codec.rotate();
    await fleet.clock.advance(0);
    // Every member has read; the one that rotated has unwrapped its own key.
    expect(times.reads.length).toBeGreaterThanOrEqual(MEMBERS - 1);
    expect(times.unwraps).toHaveLength(1);
    await fleet.clock.advance(61);
    expect(fleet.members.every(({ codec }) => codec.health().keys.every((key) => key.held))).toBe(true);
    expect(busiestSecond(times.unwraps)).toBeLessThan(60);
  });

  test('members whose reads fail at the same moment spread their next attempts over the backoff', async () => {
    await crowd();
    await fleet.clock.advance(1);
    // A member that reads because of the write finds the store down.
    const unwatch = fleet.store.connect().watch?.(() => {
      fleet.store.down = true;
    });
    await fleet.members[0]?.codec.rotate();
    await fleet.clock.advance(0);
    expect(fleet.members.filter(({ codec }) => codec.health().status === 'degraded').length).toBe(MEMBERS);
    unwatch?.();
    fleet.store.down = false;
    times.clear();
    await fleet.clock.advance(10);
    // All of them within the first 10 s: 100 per second, if they are evenly spread.
    expect(times.reads.length).toBeGreaterThanOrEqual(MEMBERS);
    expect(busiestSecond(times.reads)).toBeLessThan(200);
  });

  test('when members resume together and a rotation is due, only a handful of them create a key', async () => {
    await crowd({ latencySeconds: 0.1 });
    // The successor is due after 5 100 s.
    await fleet.clock.advance(4_800);
    times.clear();
    fleet.clock.suspend(400);
    for (const member of fleet.members) seal(member);
    await fleet.clock.advance(400);
    expect(times.reads.length).toBeGreaterThanOrEqual(MEMBERS);
    expect(times.generates.length).toBeGreaterThanOrEqual(1);
    expect(times.generates.length).toBeLessThanOrEqual(5);
    // However many members made a key, the ring has one.
    expect(fleet.members[0]?.codec.health().keys).toHaveLength(2);
  });

  test('members whose first calls fail retry at different times', async () => {
    await fleet.start();
    const starting = times.keyWrapper(fleet.kms.connect());
    fleet.kms.failNext = 200;
    await fleet.startAll(200, { keyWrapper: starting });
    const [first] = times.unwraps;
    const second = times.unwraps.filter((at) => at !== first);
    expect(times.unwraps.filter((at) => at === first)).toHaveLength(200);
    expect(second).toHaveLength(200);
    expect(new Set(second).size).toBeGreaterThan(150);
  });
});

describe('calls that concurrent requests share (F6)', () => {
  test('200 refreshes of one member cause one read', async () => {
    const a = await fleet.start();
    const { reads } = fleet.store;
    await Promise.all(Array.from({ length: 200 }, () => a.codec.refresh()));
    expect(fleet.store.reads - reads).toBe(1);
  });

  test('200 requests with tokens of an unknown key wait for one read, and every token is unsealed', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    // No push: b learns of the successor only by the tokens.
    b.ring.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await fleet.clock.advance(11);
    b.ring.cut = false;
    const tokens = Array.from({ length: 200 }, (_, i) => seal(a, `state ${i}`));
    const { reads } = fleet.store;
    const { total } = fleet.kms;
    await Promise.all(tokens.map(async (token) => b.codec.prepare(token)));
    expect(fleet.store.reads - reads).toBe(1);
    expect(fleet.kms.total - total).toBeLessThanOrEqual(2);
    expect(tokens.map((token) => open(b, token))).toEqual(tokens.map((_, i) => `state ${i}`));
  });

  test('200 codecs of one process that find an empty store create one key', async () => {
    const ring = fleet.store.connect();
    const keyWrapper = fleet.kms.connect();
    // The system's clock, and no turn of the event loop between the calls.
    const random = (fill: Uint8Array): void => void randomFillSync(fill);
    const codecs = await Promise.all(Array.from({ length: 200 }, () => createKmsCodec({ ring, keyWrapper, random })));
    expect(fleet.kms.calls).toEqual({ generate: 1, wrap: 0, unwrap: 200 });
    const token = codecs[0]?.seal(Buffer.from('state')) ?? '';
    for (const codec of codecs) expect(Buffer.from(codec.unseal(token)).toString()).toBe('state');
    await Promise.all(codecs.map((codec) => codec.close()));
  });
});
