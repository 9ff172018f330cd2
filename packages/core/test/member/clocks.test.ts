import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { createSnapshot, sealingKeyOf } from '../../src/ring/snapshot.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The skew for clocks within ±5 minutes: any two differ by at most this much. */
const SKEW = 600;
const policy = { clockSkewSeconds: SKEW };

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** The fleet's clock on a machine that is `seconds` off. */
function skewed(seconds: number): Clock {
  const { clock } = fleet;
  return {
    wallMs: () => clock.wallMs() + seconds * 1_000,
    monotonicNs: () => clock.monotonicNs(),
    uptimeMs: () => clock.uptimeMs(),
    schedule: (callback, delayMs) => clock.schedule(callback, delayMs),
  };
}

function start(offsetSeconds: number, options: Partial<KmsCodecOptions> = {}): Promise<Member> {
  return fleet.start({ policy, clock: skewed(offsetSeconds), ...options });
}

/** Seconds of the monotonic clock at `time`, if the wall clock has not stepped since. */
function secondsOf(time: Date | undefined): number {
  const ago = fleet.clock.wallMs() - (time?.getTime() ?? Number.NaN);
  return Number(fleet.clock.monotonicNs()) / 1e9 - ago / 1_000;
}

function advanceTo(seconds: number): Promise<void> {
  return fleet.clock.advance(seconds - Number(fleet.clock.monotonicNs()) / 1e9);
}

async function storedIds(): Promise<string[]> {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries.map(({ id }) => id);
}

function keyOf(member: Member, id: string | undefined) {
  const found = member.codec.health().keys.find((key) => key.id === id);
  if (found === undefined) throw new Error('no such key');
  return found;
}

describe('two members whose clocks are 600 s apart, the tolerated skew (F13)', () => {
  for (const [title, founder, other] of [
    ['the fast one', 300, -300],
    ['the slow one', -300, 300],
  ] as const) {
    test(`members unseal each other’s tokens from the start and for three days, in a ring created by ${title}`, async () => {
      const a = await start(founder);
      const b = await start(other);
      // One key is enough for both: neither had to wait for the other's clock, or to make another key.
      expect(await storedIds()).toHaveLength(1);
      const sealing = new Set<string | undefined>();
      const tokens: { token: string; until: number }[] = [];
      for (let step = 0; step < 3 * 24 * 6; step++) {
        const now = fleet.clock.wallMs();
        for (const member of [a, b]) {
          tokens.push({ token: seal(member), until: now + HOUR * 1_000 });
          sealing.add(member.codec.health().sealingKey);
          expect(member.codec.health().status).toBe('ok');
        }
        const live = tokens.splice(0).filter(({ until }) => until > now);
        for (const { token } of live) expect([open(a, token), open(b, token)]).toEqual(['state', 'state']);
        tokens.push(...live);
        await fleet.clock.advance(600);
      }
      expect(sealing.size).toBeGreaterThanOrEqual(3);
    });
  }

  test('the member with the fast clock accepts the last token of the slow one for the token’s whole life', async () => {
    const fast = await start(300, { keyWrapper: withoutNewKeys() });
    const slow = await start(-300, { keyWrapper: withoutNewKeys() });
    // No member can publish a successor: the first key seals until its very end.
    const { sealingKey } = slow.codec.health();
    const sealsUntil = keyOf(slow, sealingKey).sealsUntil.getTime();
    await fleet.clock.advance((sealsUntil - fleet.clock.wallMs()) / 1_000 + 300 - 1);
    const token = seal(slow);
    expect(() => seal(fast)).toThrow(SealUnavailableError);
    await fleet.clock.advance(HOUR - 1);
    expect([open(fast, token), open(slow, token)]).toEqual(['state', 'state']);
    await fleet.clock.advance(3 * SKEW);
    expect([open(fast, token), open(slow, token)]).toEqual(Array(2).fill('InvalidRequestState: unknown key'));
  });

  test('the member with the slow clock does not write back a key that has expired for the fast one', async () => {
    const healed: unknown[] = [];
    const listen = (event: unknown): void => void healed.push(event);
    subscribe('sealring:healed', listen);
    try {
      const fast = await start(300);
      const slow = await start(-300);
      const { sealingKey } = fast.codec.health();
      const ends = keyOf(fast, sealingKey).unsealsUntil.getTime();
      // Expired by the fast clock for 100 s, and alive by the slow one for 500 s more.
      await fleet.clock.advance((ends - fleet.clock.wallMs()) / 1_000 - 300 + 100);
      await fast.codec.rotate();
      await fleet.clock.advance(400);
      expect(healed).toEqual([]);
      expect(await storedIds()).toContain(sealingKey);
      // Expired on every clock, so the next write removes it.
      await fleet.clock.advance(2 * SKEW);
      await slow.codec.rotate();
      await fleet.clock.advance(400);
      expect(healed).toEqual([]);
      expect(await storedIds()).not.toContain(sealingKey);
    } finally {
      unsubscribe('sealring:healed', listen);
    }
  });

  test('the member with the fast clock seals with the slow member’s emergency key only once all can have read that key', async () => {
    const slow = await start(-300);
    const fast = await start(300);
    const late = await start(0);
    late.ring.cut = true;
    await slow.codec.rotate({ emergency: true });
    // The time in which all must have read the ring: refreshEvery and the longest wait between attempts.
    await fleet.clock.advance(355);
    const early = seal(fast);
    late.ring.cut = false;
    expect(open(late, early)).toBe('state');
    await late.codec.refresh();
    await fleet.clock.advance(SKEW + 10);
    expect(early.slice(4, 16)).not.toBe(fast.codec.health().sealingKey);
    expect(open(late, seal(fast))).toBe('state');
  });
});

/** A KMS that allows no further data keys once there is one. */
function withoutNewKeys(): KeyWrapper {
  const inner = fleet.kms.connect();
  return {
    ...inner,
    async generate(options) {
      if (fleet.kms.calls.generate > 0) fleet.kms.failNext = 1;
      const made = await inner.generate?.(options);
      if (made === undefined) throw new Error('this key wrapper generates nothing');
      return made;
    },
  };
}

describe('a wall clock that steps (F13)', () => {
  test('a clock that steps back during a refresh while the KMS is down extends neither sealing, unsealing nor readiness', async () => {
    const a = await start(0);
    const reader = await start(0, { role: 'reader' });
    const token = seal(a);
    const proved = secondsOf(a.codec.health().lastKmsCheck);
    const completed = secondsOf(reader.codec.health().lastRefresh);
    fleet.kms.hanging = true;
    const refreshing = Promise.allSettled([a.codec.refresh(), reader.codec.refresh()]);
    await fleet.clock.advance(1);
    fleet.clock.step(-SKEW);
    await fleet.clock.advance(30);
    await refreshing;
    fleet.kms.hanging = false;
    fleet.kms.failing = 'unavailable';
    fleet.store.down = true;
    // sealOutage after the last KMS check, by the clock that did not step.
    await advanceTo(proved + HOUR - 1);
    expect(open(a, seal(a))).toBe('state');
    await advanceTo(proved + HOUR + 1);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    // propagation − S = sealOutage + 2 R after the last complete refresh.
    expect(reader.codec.health().ready).toBe(true);
    await advanceTo(completed + HOUR + 600 + 400);
    expect(reader.codec.health()).toMatchObject({ ready: false, canUnseal: true });
    // sealOutage + tokenLifetime + 2 S after the last KMS check.
    await advanceTo(proved + 2 * HOUR + 2 * SKEW - 1);
    expect(a.codec.health().canUnseal).toBe(true);
    await advanceTo(proved + 2 * HOUR + 2 * SKEW + 1);
    expect(a.codec.health().canUnseal).toBe(false);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
  });

  test('a wall clock that steps back revives no expired key', async () => {
    const a = await start(0, { keyWrapper: withoutNewKeys() });
    const { sealingKey } = a.codec.health();
    const { sealsUntil, unsealsUntil } = keyOf(a, sealingKey);
    await fleet.clock.advance((sealsUntil.getTime() - fleet.clock.wallMs()) / 1_000 - 1);
    const token = seal(a);
    const expectEnded = (): void => {
      expect(open(a, token)).toBe('InvalidRequestState: unknown key');
      expect(() => seal(a)).toThrow(SealUnavailableError);
    };
    await fleet.clock.advance((unsealsUntil.getTime() - fleet.clock.wallMs()) / 1_000 + 1);
    expectEnded();
    fleet.clock.step(-12 * HOUR);
    expectEnded();
    expect(keyOf(a, sealingKey).state).toBe('expired');
    // An unconfirmed time removes nothing; once it is right, the key is gone permanently.
    await fleet.clock.advance(2 * HOUR);
    expect(keyOf(a, sealingKey).state).toBe('expired');
    fleet.clock.step(12 * HOUR);
    await fleet.clock.advance(400);
    expect(a.codec.health().keys.map(({ id }) => id)).not.toContain(sealingKey);
    fleet.clock.step(-12 * HOUR);
    expectEnded();
  });

  test('a member whose wall clock steps back seals with no key, rather than with one older than a key that has sealed', async () => {
    const a = await start(0);
    await a.codec.rotate({ emergency: true });
    const known = keeperOf(a.codec)?.view.snapshot.keys ?? [];
    const [first, second] = known.map(({ id }) => id);
    const snapshot = createSnapshot(
      known.map((key) => (key.id === first ? key : { ...key, held: undefined })),
      [],
    );
    const now = fleet.clock.wallMs();
    expect(sealingKeyOf(snapshot, now, 0, undefined)?.id).toBe(first);
    expect(sealingKeyOf(snapshot, now, 0, first)?.id).toBe(first);
    expect(sealingKeyOf(snapshot, now, 0, second)).toBeUndefined();
  });

  test('a clock that steps repeatedly does not turn one stray refusal of the KMS into a stop', async () => {
    const a = await start(0);
    fleet.kms.failing = 'denied';
    // Wait until the next KMS check is due and refused.
    while (a.codec.health().lastError === undefined) await fleet.clock.advance(1);
    const asked = fleet.kms.calls.unwrap;
    for (let i = 0; i < 3; i++) {
      fleet.clock.step(10);
      await expect(a.codec.refresh()).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    }
    expect(fleet.kms.calls.unwrap - asked).toBe(3);
    expect(open(a, seal(a))).toBe('state');
  });
});

describe('a machine that was suspended (F13, F28)', () => {
  test('a machine that was suspended for an hour does not seal before a new KMS check, which its first call starts', async () => {
    const a = await start(0);
    const token = seal(a);
    const proofs = fleet.kms.calls.unwrap;
    fleet.clock.suspend(HOUR);
    expect(() => seal(a)).toThrow(expect.objectContaining({ reason: 'KMS check too old' }));
    expect(a.codec.health()).toMatchObject({ status: 'failing', ready: false, canUnseal: true });
    expect(open(a, token)).toBe('state');
    await fleet.clock.advance(2);
    expect(fleet.kms.calls.unwrap - proofs).toBe(1);
    expect(a.codec.health()).toMatchObject({ status: 'ok', ready: true });
    expect(open(a, seal(a))).toBe('state');
  });

  test('a machine that was suspended for ten times sealOutage serves its first request, as prepare reads the ring and checks the KMS', async () => {
    const a = await start(0);
    const { reads } = fleet.store;
    const checks = fleet.kms.calls.unwrap;
    fleet.clock.suspend(10 * HOUR);
    const prepared = a.codec.prepare();
    expect(prepared).toBeInstanceOf(Promise);
    await fleet.clock.advance(2);
    await prepared;
    expect(open(a, seal(a))).toBe('state');
    expect(a.codec.health()).toMatchObject({ status: 'ok', ready: true });
    expect([fleet.store.reads - reads, fleet.kms.calls.unwrap - checks]).toEqual([1, 1]);
  });

  test('a machine that was suspended for eight minutes continues to seal, and reads the ring and checks the KMS within two seconds', async () => {
    const a = await start(0);
    const proofs = fleet.kms.calls.unwrap;
    const { reads } = fleet.store;
    fleet.clock.suspend(480);
    expect(open(a, seal(a))).toBe('state');
    await fleet.clock.advance(2);
    expect([fleet.store.reads - reads, fleet.kms.calls.unwrap - proofs]).toEqual([1, 1]);
  });

  test('a member or reader is not ready after a suspension so long that others may seal with keys it lacks', async () => {
    await start(0);
    const reader = await start(0, { role: 'reader' });
    expect(reader.codec.health().ready).toBe(true);
    // propagation − S.
    fleet.clock.suspend(HOUR + 600 + 1);
    expect(reader.codec.health()).toMatchObject({ status: 'failing', ready: false, canUnseal: true });
    await reader.codec.refresh();
    expect(reader.codec.health()).toMatchObject({ status: 'ok', ready: true });
  });

  test('a machine that was suspended for two days unseals no expired token, and recovers with its first call', async () => {
    const a = await start(0);
    const b = await start(0);
    const token = seal(a);
    fleet.clock.suspend(2 * DAY);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
    await fleet.clock.advance(30);
    expect(open(b, seal(a))).toBe('state');
  });

  test('a machine that was suspended unseals the given token, even if another one is unsealed while the gap is reported', async () => {
    const clock: { -readonly [key in keyof Clock]: Clock[key] } = skewed(0);
    const a = await start(0, { clock });
    const b = await start(0);
    const [token, other] = [a.codec.seal(Buffer.from('asked for')), b.codec.seal(Buffer.from('of somebody else'))];
    let opened = 0;
    clock.schedule = (callback, delayMs) => {
      opened += a.codec.unseal(other).length;
      return fleet.clock.schedule(callback, delayMs);
    };
    fleet.clock.suspend(480);
    expect(open(a, token)).toBe('asked for');
    expect(opened).toBe(16);
  });
});
