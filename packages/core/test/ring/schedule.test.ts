import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resolvePolicy } from '../../src/ring/policy.ts';
import {
  compareAge,
  isPlanned,
  lateWaitMs,
  longestDelayMs,
  maySeal,
  mayUnseal,
  newest,
  removableFrom,
  rotateAt,
  rotationDelayMs,
  type ScheduledKey,
  stateOf,
  timesOfNewKey,
} from '../../src/ring/schedule.ts';

const T0 = Date.parse('2026-11-21T03:00:00Z');

describe('the schedule', () => {
  const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
  const key: ScheduledKey = {
    id: 'k',
    created: T0,
    activates: T0 + 1_000,
    sealsUntil: T0 + 5_000,
    opensUntil: T0 + 9_000,
    revoked: false,
  };

  const older: ScheduledKey = { ...key, id: 'j', activates: key.activates - 1 };
  const newer: ScheduledKey = { ...key, id: 'l', activates: key.activates + 1 };

  test.each([
    // at, may seal, may unseal, state if it seals itself, if an older one does, if a newer one does, if none does
    // A clock that stepped back: the key has sealed already, and continues.
    [key.activates - 1, false, true, 'active', 'propagating', 'verify-only', 'propagating'],
    // Active, and a key that came late waits for its turn.
    [key.activates, true, true, 'active', 'propagating', 'verify-only', 'verify-only'],
    [key.activates + 1, true, true, 'active', 'propagating', 'verify-only', 'verify-only'],
    [key.sealsUntil - 1, true, true, 'active', 'propagating', 'verify-only', 'verify-only'],
    [key.sealsUntil, false, true, undefined, 'verify-only', 'verify-only', 'verify-only'],
    [key.sealsUntil + 1, false, true, undefined, 'verify-only', 'verify-only', 'verify-only'],
    [key.opensUntil - 1, false, true, undefined, 'verify-only', 'verify-only', 'verify-only'],
    [key.opensUntil, false, false, undefined, 'expired', 'expired', 'expired'],
    [key.opensUntil + 1, false, false, undefined, 'expired', 'expired', 'expired'],
  ] as const)('at %i, a key may seal: %s, and unseal: %s', (at, seals, opens, itself, ifOlder, ifNewer, ifNone) => {
    expect([maySeal(key, at), mayUnseal(key, at)]).toEqual([seals, opens]);
    // A key past its sealing time is never the active one.
    // oxlint-disable-next-line vitest/no-conditional-expect
    if (itself !== undefined) expect(stateOf(key, at, key)).toBe(itself);
    const states = [older, newer, undefined].map((sealing) => stateOf(key, at, sealing));
    expect(states).toEqual([ifOlder, ifNewer, ifNone]);
    const revoked = { ...key, revoked: true };
    expect([maySeal(revoked, at), mayUnseal(revoked, at), stateOf(revoked, at, key)]).toEqual([
      false,
      false,
      'revoked',
    ]);
  });

  test.each([
    ['scheduled', 4_500],
    ['requested', 4_500],
    ['initial', -300],
    ['revocation', -300],
    ['emergency', 300 + 60 + 300],
  ] as const)('the times of a %s key follow the documented formulas', (reason, activatesAfter) => {
    const made = timesOfNewKey(reason, T0, policy);
    const activates = T0 + activatesAfter * 1_000;
    const sealsUntil = activates + (86_400 + 23_400) * 1_000;
    const opensUntil = sealsUntil + (3_600 + 600) * 1_000;
    expect(made).toEqual({ created: T0, activates, sealsUntil, opensUntil });
    expect(rotateAt(made, policy)).toBe(activates + (86_400 - 4_500) * 1_000);
    expect(removableFrom(made, policy)).toBe(opensUntil + 300_000);
  });

  test('a new key is newer than every known key, whatever the clock of its creator shows', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('scheduled', 'initial', 'emergency'),
        fc.nat(1e9),
        fc.nat(1e9),
        (reason, now, known) => {
          const made = timesOfNewKey(reason, now * 1_000, policy, known * 1_000);
          expect(made.created).toBe(Math.max(now, known + 1) * 1_000);
        },
      ),
    );
  });

  test('a planned key is recognized by its times, which include the whole propagation time', () => {
    for (const reason of ['scheduled', 'requested'] as const) {
      expect(isPlanned(timesOfNewKey(reason, T0 + 1, policy, T0 + 5_000), policy)).toBe(true);
    }
    for (const reason of ['initial', 'revocation', 'emergency'] as const) {
      expect(isPlanned(timesOfNewKey(reason, T0 + 1, policy, T0 + 5_000), policy)).toBe(false);
    }
  });

  test.each([
    ['scheduled', undefined, 300],
    ['initial', undefined, 60],
    ['revocation', undefined, 60],
    ['emergency', undefined, 60],
    ['initial', 3, 60],
    ['emergency', 3, 3],
    ['emergency', 300, 60],
  ] as const)('a %s key, at a backoffCap of %s s, may be written until it is %d s old', (reason, cap, seconds) => {
    const given = resolvePolicy({ backoffCapSeconds: cap }, { storeKind: 's3', createNow: false });
    const times = timesOfNewKey(reason, T0 + 1, given, T0 + 5_000);
    expect(longestDelayMs(times, given)).toBe(seconds * 1_000);
  });

  test.each([60, 900, 3_600])('an emergency key waits less than a planned one, even at a backoffCap of %d s', (cap) => {
    const times = { backoffCapSeconds: cap, sealOutageSeconds: cap, kmsCheckEverySeconds: cap / 4 };
    const given = resolvePolicy(times, { storeKind: 's3', createNow: false });
    expect(isPlanned(timesOfNewKey('emergency', T0 + 1, given), given)).toBe(false);
    expect(() =>
      resolvePolicy({ ...times, backoffCapSeconds: cap + 1 }, { storeKind: 's3', createNow: false }),
    ).toThrow(RangeError);
  });

  test('a member that has read a planned key waits for propagation − 2 R − S before it seals with that key', () => {
    expect(lateWaitMs(policy)).toBe((4_500 - 600 - 300) * 1_000);
  });

  test('the times of a new key are whole seconds in order, rounded so that no member seals early or loses a token', () => {
    const reason = fc.constantFrom('scheduled', 'requested', 'initial', 'revocation', 'emergency');
    const fractional = resolvePolicy(
      { clockSkewSeconds: 0.7, refreshEverySeconds: 0.3 },
      { storeKind: 's3', createNow: false },
    );
    fc.assert(
      fc.property(reason, fc.double({ min: 0, max: 4e12, noNaN: true }), fc.boolean(), (why, now, whole) => {
        const own = whole ? policy : fractional;
        const made = timesOfNewKey(why, now, own);
        for (const time of Object.values(made)) expect(time / 1_000).toSatisfy(Number.isSafeInteger);
        expect(made.activates).toBeLessThan(made.sealsUntil);
        expect(made.sealsUntil).toBeLessThan(made.opensUntil);
        expect(made.created).toBeLessThanOrEqual(now);
        const late = why === 'scheduled' || why === 'requested';
        const atOnce = why === 'initial' || why === 'revocation';
        expect(!late || made.activates >= now + own.propagationSeconds * 1_000).toBe(true);
        expect(!atOnce || made.activates <= now - own.clockSkewSeconds * 1_000).toBe(true);
        const life = (own.tokenLifetimeSeconds + 2 * own.clockSkewSeconds) * 1_000;
        expect(made.opensUntil - made.sealsUntil).toBeGreaterThanOrEqual(life - 0.001);
      }),
      { numRuns: 2_000 },
    );
  });

  test('the wait before a rotation is from 0 to R, grows with the number drawn, and is mostly close to R (F6)', () => {
    const r = 300_000;
    expect(rotationDelayMs(0, policy)).toBe(0);
    expect(rotationDelayMs(1 - 2 ** -32, policy)).toBeLessThan(r);
    expect(rotationDelayMs(1 - 2 ** -32, policy)).toBeGreaterThan(r * 0.999_99);
    // R × ln(1 + u(e^10 − 1)) / 10 < x R exactly when u < (e^(10 x) − 1) / (e^10 − 1).
    const share = (x: number) => (Math.exp(10 * x) - 1) / (Math.exp(10) - 1);
    const delays = Array.from({ length: 10_000 }, (_, i) => rotationDelayMs((i + 0.5) / 10_000, policy));
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    for (const x of [0.1, 0.25, 0.5, 0.75, 0.9]) {
      const below = delays.filter((delay) => delay < x * r).length;
      expect(Math.abs(below - 10_000 * share(x))).toBeLessThanOrEqual(1);
    }
    expect(delays.filter((delay) => delay < r / 2)).toHaveLength(67);
    expect(
      rotationDelayMs(0.5, resolvePolicy({ refreshEverySeconds: 30 }, { storeKind: 's3', createNow: false })),
    ).toBeCloseTo(rotationDelayMs(0.5, policy) / 10, 6);
  });

  test('at most a few of 10 000 members publish before the others have read the new ring (F6)', () => {
    // The winner's write is read by members whose timer fires later than the time of a read, 1 s here.
    let seed = 1;
    const uniform = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    const publishers = Array.from({ length: 50 }, () => {
      const delays = Array.from({ length: 10_000 }, () => rotationDelayMs(uniform(), policy));
      const first = delays.reduce((least, delay) => Math.min(least, delay));
      return delays.filter((delay) => delay < first + 1_000).length;
    });
    expect(publishers.reduce((sum, count) => sum + count, 0) / publishers.length).toBeLessThan(3);
  });

  test('keys are ordered by activation, then by id, whatever their original order', () => {
    const some = [
      { activates: 2, id: 'a' },
      { activates: 1, id: 'z' },
      { activates: 2, id: 'b' },
      { activates: 2, id: 'B' },
    ];
    expect(some.toSorted(compareAge).map((each) => each.id)).toEqual(['z', 'B', 'a', 'b']);
    expect(newest(some)?.id).toBe('b');
    expect(newest(some.toReversed())?.id).toBe('b');
    expect(newest([])).toBeUndefined();
    expect(compareAge({ activates: 2, id: 'a' }, { activates: 2, id: 'a' })).toBe(0);
  });
});
