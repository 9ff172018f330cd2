import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { later, type Moment, momentOf } from '../../src/base/clock.ts';
import { CodecClosedError, SealUnavailableError } from '../../src/contracts/errors.ts';
import type { DataKey } from '../../src/keys/data-key.ts';
import { EnvelopeKeyCache } from '../../src/keys/envelope-key-cache.ts';
import type { RingAuthenticator } from '../../src/keys/ring-authenticator.ts';
import { Limits } from '../../src/member/limits.ts';
import { RingClock } from '../../src/member/ring-clock.ts';
import { RingView } from '../../src/member/view.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { removableFrom } from '../../src/ring/schedule.ts';
import { createSnapshot, type RingKey, type RingSnapshot, sealingKeyOf } from '../../src/ring/snapshot.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const RING = 'payments';
const START = '2026-11-21T03:00:00Z';
const T0 = Date.parse(START);
const HOUR = 3_600_000;
const SKEW = 300_000;
const policy = resolvePolicy(undefined, { storeKind: 'redis', createNow: false });
const GONE = /was overwritten/;

/** The owner of the keys that a test makes. */
let cache = new EnvelopeKeyCache(RING);
beforeEach(() => {
  cache = new EnvelopeKeyCache(RING);
});

/** A key and its bytes, whether or not the key is held in the ring. */
type TestKey = RingKey & { readonly dataKey: DataKey; readonly authenticator: RingAuthenticator };

/** A key that has sealed for an hour already, and will for two more. */
function newKey(more: Partial<Omit<RingKey, 'authenticator'>> = {}): TestKey {
  const held = cache.take(randomBytes(32));
  const { id, authenticator } = held;
  const times = { created: T0 - HOUR, activates: T0 - HOUR, sealsUntil: T0 + 2 * HOUR, opensUntil: T0 + 3 * HOUR };
  const facts = { revoked: false, revocation: undefined, vouchers: new Map(), wraps: [] };
  return { id, ...times, ...facts, held, dataKey: held, authenticator, sealsFromSteadyMs: 0, isLeft: false, ...more };
}

/** The same key as revoked. */
function revoked<K extends RingKey>(key: K): K {
  return { ...key, revoked: true, revocation: { at: T0, by: new Map() }, held: undefined };
}

function snapshotOf(...keys: readonly RingKey[]): RingSnapshot {
  return createSnapshot(keys, []);
}

function setUp(options: { readonly role?: 'member' | 'reader'; readonly acceptCreatedFromMs?: number } = {}) {
  const clock = new VirtualClock(START);
  const ringClock = new RingClock(policy, clock);
  const { role = 'member', acceptCreatedFromMs } = options;
  const view = new RingView({ role, policy, ring: RING, clock, ringClock, cache, acceptCreatedFromMs });
  const now = (): Moment => momentOf(clock);
  ringClock.tick(now());
  const install = (...keys: readonly RingKey[]): void => {
    view.install(snapshotOf(...keys));
  };
  /** The effect of a complete refresh. */
  const refresh = (...keys: readonly RingKey[]): void => {
    install(...keys);
    view.limits.kmsCheckPassed(now());
    view.limits.wasRead(now());
    view.limits.completed(now());
  };
  return { view, clock, cache, ringClock, now, install, refresh };
}

describe('a view before the ring was read, and after close', () => {
  test('a view without a ring, before the first read and after close, has no keys, and neither seals nor unseals', () => {
    const { view, now, refresh } = setUp();
    const key = newKey();
    const nothing = (): void => {
      expect(view.hasSnapshot).toBe(false);
      expect(view.canSeal(now())).toBe(false);
      expect(view.isReady(now())).toBe(false);
      expect(() => view.snapshot).toThrow(CodecClosedError);
      expect(() => view.sealingKey(now())).toThrow(CodecClosedError);
      expect(() => view.unsealingKey(key.id, now())).toThrow(CodecClosedError);
      expect(() => view.unsealingKeys(now())).toThrow(CodecClosedError);
      expect(() => view.states(now())).toThrow(CodecClosedError);
    };
    nothing();
    // The result must be the same when the limits allow everything.
    view.limits.kmsCheckPassed(now());
    view.limits.wasRead(now());
    view.limits.completed(now());
    nothing();
    expect([view.isClosed, view.sealedWith]).toEqual([false, undefined]);
    refresh(key);
    expect([view.hasSnapshot, view.canSeal(now()), view.isReady(now())]).toEqual([true, true, true]);
    view.close();
    expect(view.isClosed).toBe(true);
    nothing();
    expect(() => key.dataKey.copyBytes()).toThrow(GONE);
  });

  test('a view restores nothing when a refresh ends after close', () => {
    const { view, refresh, now } = setUp();
    view.close();
    refresh(newKey());
    expect([view.hasSnapshot, view.canSeal(now()), view.signers.size]).toEqual([false, false, 0]);
    expect(() => view.snapshot).toThrow(CodecClosedError);
  });
});

describe('the key that seals', () => {
  test('the key that seals is remembered by its id', () => {
    const { view, now, refresh } = setUp();
    const key = newKey();
    refresh(key);
    expect(view.sealedWith).toBeUndefined();
    expect(view.sealingKey(now())).toMatchObject({ id: key.id, held: key.held });
    expect(view.sealedWith).toBe(key.id);
  });

  test('sealing fails with a reason if no key is active, or if the member is a reader', () => {
    for (const [role, reason] of [
      ['member', 'no active key'],
      ['reader', 'reader'],
    ] as const) {
      const { view, now, refresh } = setUp({ role });
      refresh(newKey({ activates: T0 + HOUR }));
      let error: unknown;
      try {
        view.sealingKey(now());
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(SealUnavailableError);
      expect(error).toHaveProperty('reason', reason);
      expect(view.canSeal(now())).toBe(false);
      expect(view.isReady(now())).toBe(false);
      // A reader is ready as soon as it holds the keys that others may seal with: it only unseals.
      refresh(newKey());
      expect([view.canSeal(now()), view.isReady(now())]).toEqual([role === 'member', true]);
    }
  });

  test('an older key may seal again only if the key that last sealed was revoked (F13)', () => {
    const older = newKey({ activates: T0 - 2 * HOUR });
    const newer = newKey();
    const early = newer.activates - 1;
    expect(sealingKeyOf(snapshotOf(older, newer), early, 0, undefined)?.id).toBe(older.id);
    expect(sealingKeyOf(snapshotOf(older, newer), early, 0, newer.id)?.id).toBe(newer.id);
    expect(sealingKeyOf(snapshotOf(older, revoked(newer)), T0, 0, newer.id)?.id).toBe(older.id);
  });

  test('a late key does not seal before its wait is over, as long as an older key may seal', () => {
    const older = newKey({ activates: T0 - 2 * HOUR });
    const late = newKey({ sealsFromSteadyMs: 5_000 });
    expect(sealingKeyOf(snapshotOf(older, late), T0, 4_999, undefined)?.id).toBe(older.id);
    expect(sealingKeyOf(snapshotOf(older, late), T0, 5_000, undefined)?.id).toBe(late.id);
    expect(sealingKeyOf(snapshotOf(revoked(older), late), T0, 4_999, undefined)?.id).toBe(late.id);
    // It has sealed already, so an older key must not seal.
    expect(sealingKeyOf(snapshotOf(older, late), T0, 4_999, late.id)?.id).toBe(late.id);
  });

  test('a key of a ring that the member left does not seal, but its tokens are still unsealed', () => {
    const { view, now, refresh } = setUp();
    const left = newKey({ isLeft: true });
    refresh(left);
    expect([view.canSeal(now()), view.isReady(now())]).toEqual([false, false]);
    expect(view.unsealingKey(left.id, now())?.id).toBe(left.id);
    const own = newKey({ activates: T0 - 2 * HOUR });
    refresh(left, own);
    expect(view.sealingKey(now()).id).toBe(own.id);
  });
});

describe('the time from which a newly read key seals', () => {
  const planned = { created: T0, activates: T0 + 4_500_000 };
  const hasty = { created: T0, activates: T0 - SKEW };
  /** propagation − 2 R − S. */
  const WAIT = (4_500 - 600 - 300) * 1_000;

  test('a planned key seals only after the wait for late keys, unless the read came after a gap; other keys do not wait', () => {
    const { view, now, refresh, clock } = setUp();
    refresh(newKey());
    expect(view.sealsFrom(newKey(planned), now())).toBe(now().steadyMs + WAIT);
    expect(view.sealsFrom(newKey(hasty), now())).toBe(0);
    expect(view.sealsFrom(newKey({ created: T0, activates: T0 + 4_499_000 }), now())).toBe(0);
    clock.suspend(600);
    expect(view.sealsFrom(newKey(planned), now())).toBe(now().steadyMs + WAIT);
    clock.suspend(0.001);
    expect(view.sealsFrom(newKey(planned), now())).toBe(0);
  });

  test('a planned key that this member tried to publish waits like a late key, even after a gap', () => {
    const { view, now, refresh, clock } = setUp();
    refresh(newKey());
    const key = newKey(planned);
    view.noteAttempt(key.id);
    clock.suspend(3_600);
    expect(view.sealsFrom(key, now())).toBe(now().steadyMs + WAIT);
    for (let i = 0; i < 64; i++) view.noteAttempt(String(i));
    expect(view.sealsFrom(key, now())).toBe(0);
  });

  test('a new key seals at once for a member that never read the ring', () => {
    const { view, now } = setUp();
    expect(view.sealsFrom(newKey(planned), now())).toBe(0);
  });
});

describe('the keys that unseal', () => {
  test('keys that are held, not revoked and not expired unseal, newest first, until the limits have passed', async () => {
    const { view, clock, install, now } = setUp();
    const first = newKey({ activates: T0 - 4 * HOUR });
    const second = newKey({ activates: T0 - 3 * HOUR });
    const over = newKey({ sealsUntil: T0 - 1_000, opensUntil: T0 });
    const all = [second, revoked(newKey()), over, newKey({ held: undefined }), first];
    install(...all);
    const opening = (): readonly string[] => {
      const ids = view.unsealingKeys(now()).map(({ id }) => id);
      expect(view.canUnseal(now())).toBe(ids.length > 0);
      return ids;
    };
    const one = (): readonly string[] => all.map(({ id }) => id).filter((id) => view.unsealingKey(id, now()));
    expect([opening(), one()]).toEqual([[], []]);
    view.limits.kmsCheckPassed(now());
    view.limits.wasRead(now());
    expect(opening()).toEqual([second.id, first.id]);
    expect(one()).toEqual([second.id, first.id]);
    expect(view.unsealingKey(randomBytes(9).toString('base64url'), now())).toBeUndefined();
    // Both clocks, and both keys still have an hour: the limits end here.
    await clock.advance(policy.sealOutageSeconds + policy.tokenLifetimeSeconds + 2 * policy.clockSkewSeconds - 1);
    expect(opening()).toHaveLength(2);
    await clock.advance(1);
    expect([opening(), one()]).toEqual([[], []]);
  });

  test('a member whose keys are all revoked, expired or not held cannot unseal', () => {
    const { view, now, refresh } = setUp();
    refresh(revoked(newKey()), newKey({ opensUntil: T0 }), newKey({ held: undefined }));
    expect(view.canUnseal(now())).toBe(false);
  });

  test('the wraps of a ring come from its keys and from the entries that could not be unwrapped, not from rings that the member left', () => {
    const { view } = setUp();
    const withWrap = (keyId: string, isLeft = false) => {
      const wrap = { provider: 'local', keyId, wrapped: Buffer.of(1), mac: Buffer.of(2), isUnwrapped: false };
      return newKey({ wraps: [wrap], isLeft });
    };
    const [carried, unreadable] = ['c', 'd'].map((keyId) => ({ ...withWrap(keyId), revoked: undefined }));
    view.install(
      createSnapshot([withWrap('a'), withWrap('b', true)], [carried ?? []].flat(), [unreadable ?? []].flat()),
    );
    expect(view.knownWraps.map(({ keyId }) => keyId)).toEqual(['a', 'c', 'd']);
  });

  test('the first use after a gap causes one refresh, whichever use that is (F28)', () => {
    const uses = [
      (view: RingView, now: Moment) => view.sealingKey(now),
      (view: RingView, now: Moment) => view.unsealingKey('unknown', now),
      (view: RingView, now: Moment) => view.unsealingKeys(now),
      (view: RingView) => view.nowToUnseal(),
    ];
    for (const use of uses) {
      const { view, clock, now, refresh } = setUp();
      refresh(newKey());
      let asked = 0;
      view.expectRefreshBefore(later(now(), 600_000), () => {
        asked++;
      });
      clock.suspend(599.999);
      use(view, now());
      expect(asked).toBe(0);
      clock.suspend(0.001);
      use(view, now());
      use(view, now());
      expect(asked).toBe(1);
    }
  });
});

describe('the time that decides the state of keys (F13)', () => {
  test('the time that decides the state of keys is the wall clock, except after an unconfirmed step', () => {
    const { view, clock, ringClock } = setUp();
    expect(view.wallMs()).toBe(T0);
    clock.step(-60);
    expect(view.wallMs()).toBe(T0 - 60_000);
    clock.step(-7_200);
    expect([view.wallMs(), view.clockTrouble()]).toEqual([T0, expect.stringContaining('stepped by 7260 s')]);
    ringClock.note('kms', new Date(clock.wallMs()));
    expect([view.wallMs(), view.clockTrouble()]).toEqual([T0 - 7_260_000, undefined]);
  });

  test('a clock that is wrong for two seconds neither extends nor shortens the time for which keys unseal', async () => {
    for (const step of [8 * 3_600, -8 * 3_600]) {
      const { view, clock, now, refresh } = setUp();
      const key = newKey();
      refresh(key);
      clock.step(step);
      await clock.advance(2);
      expect([view.states(now())[0]?.state, view.isReady(now())]).toEqual(['active', false]);
      clock.step(-step);
      expect([view.unsealingKey(key.id, now())?.id, view.isReady(now())]).toEqual([key.id, true]);
    }
  });
});

describe('a pin on the age of keys', () => {
  test('a pin on the age of keys refuses only keys created before the pinned time', () => {
    const created = [T0 - HOUR - 1_000, T0 - HOUR, T0 - HOUR + 1_000];
    for (const [pin, expected] of [
      [undefined, [false, false, false]],
      [T0 - HOUR, [true, false, false]],
    ] as const) {
      const { view, now } = setUp(pin === undefined ? {} : { acceptCreatedFromMs: pin });
      const keys = created.map((at) => newKey({ created: at }));
      expect(keys.map((key) => view.isPinnedOut(key))).toEqual(expected);
      expect(keys.map((key) => view.judgement(now()).isPinnedOut(key))).toEqual(expected);
    }
  });
});

describe('keys that have expired (F26)', () => {
  const end = removableFrom(newKey(), policy);

  test('keys are dropped once they have expired on the slowest clock of the fleet, and can only certify from then on', () => {
    const { view, clock, now, refresh } = setUp();
    const key = newKey();
    const other = newKey({ opensUntil: T0 + 9 * HOUR });
    const certificate = key.authenticator.mac('fact');
    refresh(key, other);
    expect(end).toBe(T0 + 3 * HOUR + SKEW);
    clock.suspend((end - T0) / 1_000 - 0.001);
    expect(view.isRemovable(key, now())).toBe(false);
    view.dropExpired(now());
    expect(view.snapshot.keys).toHaveLength(2);
    clock.suspend(0.001);
    expect([view.isRemovable(key, now()), view.isRemovable(other, now())]).toEqual([true, false]);
    view.dropExpired(now());
    expect(view.snapshot.keys.map(({ id }) => id)).toEqual([other.id]);
    const signer = view.signers.get(key.id);
    expect(signer).toMatchObject({ id: key.id, created: key.created, opensUntil: key.opensUntil, revoked: false });
    expect(signer?.authenticator.mac('fact')).toEqual(certificate);
    expect(() => key.dataKey.copyBytes()).toThrow(GONE);
    expect(() => key.dataKey.deriveTokenKey(randomBytes(18))).toThrow(GONE);
  });

  test('an unconfirmed time, however late, does not make keys expire', () => {
    const { view, clock, now, refresh } = setUp();
    const key = newKey();
    refresh(key);
    clock.step((end - T0) / 1_000);
    view.dropExpired(now());
    expect(view.snapshot.keys).toHaveLength(1);
    clock.suspend((end - T0) / 1_000);
    view.dropExpired(now());
    expect([view.isRemovable(key, now()), view.snapshot.keys.length]).toEqual([false, 1]);
  });

  test('revoked keys, and keys of a ring that the member left, are not forgotten before they have expired for the whole fleet', () => {
    const { view, clock, now, refresh } = setUp();
    const [gone, left] = [revoked(newKey()), newKey({ isLeft: true })];
    refresh(gone, left);
    clock.suspend((end - T0) / 1_000);
    view.dropExpired(now());
    expect(Array.from(view.signers.values(), ({ id, revoked: isRevoked }) => [id, isRevoked])).toEqual([
      [gone.id, true],
    ]);
    expect([gone, left].map(({ id }) => view.judgement(now()).over?.has(id))).toEqual([true, false]);
  });

  test('the bytes of a key are overwritten when the key expires, before the key is dropped', () => {
    const { view, clock, now, refresh } = setUp();
    const [key, other, none] = [newKey(), newKey({ opensUntil: T0 + 9 * HOUR }), newKey({ held: undefined })];
    refresh(key, other, none);
    const { snapshot } = view;
    clock.suspend(3 * 3_600 - 1);
    view.dropExpired(now());
    expect([view.snapshot, view.msUntilEnd(now())]).toEqual([snapshot, 1_000]);
    expect(view.snapshot).toBe(snapshot);
    clock.suspend(1);
    expect(view.msUntilEnd(now())).toBe(0);
    view.dropExpired(now());
    expect(view.snapshot.keys.map(({ id, held }) => [id, held !== undefined])).toEqual(
      snapshot.keys.map(({ id }) => [id, id === other.id]),
    );
    expect(view.snapshot.keys).toContain(other);
    expect(() => key.dataKey.copyBytes()).toThrow(GONE);
    expect(view.msUntilEnd(now())).toBe(6 * HOUR);
    clock.step(12 * 3_600);
    expect(view.msUntilEnd(now())).toBe(Number.POSITIVE_INFINITY);
    const facts = { ring: RING, clockSkewMs: SKEW };
    expect(view.judgement(now())).toMatchObject({ ...facts, isUnconfirmed: true });
    clock.step(-12 * 3_600);
    expect(view.judgement(now())).toMatchObject({ ...facts, isUnconfirmed: false, nowMs: T0 + 3 * HOUR });
  });

  test('the authenticators of expired keys can be remembered until another ring begins, and are then overwritten', () => {
    const { view, refresh } = setUp();
    const [key, past] = [newKey(), newKey()];
    refresh(key, past);
    view.rememberPast([{ ...past, authenticator: past.authenticator }]);
    expect(() => past.dataKey.copyBytes()).not.toThrow();
    view.install(snapshotOf(key));
    expect(view.past.get(past.id)?.authenticator.mac('fact')).toHaveLength(32);
    view.begin(snapshotOf(key));
    expect(view.past.size).toBe(0);
    expect(() => past.authenticator.mac('fact')).toThrow(GONE);
  });

  test('at most 64 expired keys stay: the oldest are overwritten and dropped, and close overwrites and drops all (F22, F23)', () => {
    const { view, clock, now, refresh } = setUp();
    const made = (i: number): TestKey => newKey({ created: T0 - HOUR + i * 1_000 });
    const first = Array.from({ length: 60 }, (_, i) => made(i));
    refresh(...first);
    clock.suspend((end - T0) / 1_000);
    view.dropExpired(now());
    const last = Array.from({ length: 6 }, (_, i) => made(60 + i));
    const keys = [...first, ...last];
    refresh(...last);
    view.dropExpired(now());
    expect([...view.past.keys()].toSorted()).toEqual(
      keys
        .slice(2)
        .map(({ id }) => id)
        .toSorted(),
    );
    view.install(snapshotOf());
    for (const { authenticator } of keys.slice(0, 2)) expect(() => authenticator.mac('fact')).toThrow(GONE);
    for (const { authenticator } of keys.slice(2)) expect(authenticator.mac('fact')).toHaveLength(32);
    view.close();
    for (const { authenticator } of keys) expect(() => authenticator.mac('fact')).toThrow(GONE);
    expect(view.signers.size).toBe(0);
  });
});

describe('readiness', () => {
  test('requires every key that others may have sealed a live token with', () => {
    const { view, now, refresh } = setUp();
    const entry = { ...newKey(), vouchers: new Map(), revoked: undefined, wraps: [] };
    const carrying = (
      times: { readonly activates: number; readonly sealsUntil?: number },
      held = newKey({ activates: T0 - 2 * HOUR }),
    ): boolean => {
      refresh(held);
      view.install(createSnapshot([held], [{ ...entry, ...times }]));
      return view.isReady(now());
    };
    expect(carrying({ activates: T0 - HOUR })).toBe(false);
    expect(carrying({ activates: T0 - 2 * HOUR })).toBe(false);
    expect(carrying({ activates: T0 })).toBe(false);
    // By another clock it may be active already.
    expect(carrying({ activates: T0 + 300_000 })).toBe(false);
    expect(carrying({ activates: T0 + 300_001 })).toBe(true);
    expect(carrying({ activates: T0 - 2 * HOUR - 1 })).toBe(true);
    // A token lives for an hour, plus twice the difference between two clocks.
    const ago = T0 - HOUR - 600_000;
    expect(carrying({ activates: T0 - 1.5 * HOUR, sealsUntil: T0 })).toBe(false);
    expect(carrying({ activates: T0 - 1.5 * HOUR, sealsUntil: ago + 1 })).toBe(false);
    expect(carrying({ activates: T0 - 1.5 * HOUR, sealsUntil: ago })).toBe(true);
    expect(carrying({ activates: T0 - 2 * HOUR }, newKey({ activates: ago + 1 }))).toBe(false);
    expect(carrying({ activates: T0 - 2 * HOUR }, newKey({ activates: ago }))).toBe(true);
    expect(carrying({ activates: T0 - 2 * HOUR }, newKey({ activates: T0 + 1 }))).toBe(false);
  });
});

describe('the time for which a member continues without the KMS and the store', () => {
  const at = (seconds: number): Moment => ({ wallMs: T0 + seconds * 1_000, steadyMs: 1_000 + seconds * 1_000 });

  test('a member may neither seal nor unseal before the KMS and the store have answered once; the missing KMS check is reported first', () => {
    const limits = new Limits(policy);
    const nothing = [undefined, undefined, undefined, undefined, false, false, false, false];
    const seen = (): readonly unknown[] => [
      limits.lastKmsCheck,
      limits.lastRead,
      limits.lastComplete,
      limits.sealUntilMs,
      limits.mayUnseal(at(0)),
      limits.isCurrent(at(0)),
      limits.isRefused(at(0)),
      limits.isStopped,
    ];
    expect(seen()).toEqual(nothing);
    expect(limits.sealBlock(at(0))).toBe('KMS check too old');
    limits.kmsCheckPassed(at(0));
    expect([limits.mayUnseal(at(0)), limits.sealBlock(at(0))]).toEqual([false, 'ring read too old']);
    limits.wasRead(at(0));
    limits.completed(at(0));
    expect(limits.sealBlock(at(0))).toBeUndefined();
    expect(seen()).toEqual([at(0), at(0), at(0), T0 + 3_600_000, true, true, false, false]);
  });

  test('the limits start once the KMS and the store have both answered, in either order', () => {
    const limits = new Limits(policy);
    limits.wasRead(at(0));
    expect([limits.mayUnseal(at(0)), limits.sealBlock(at(0))]).toEqual([false, 'KMS check too old']);
    limits.kmsCheckPassed(at(0));
    expect([limits.mayUnseal(at(0)), limits.sealBlock(at(0))]).toEqual([true, undefined]);
  });

  test('sealing stops after 3 600 s without a KMS check, or after 21 600 s without a read (F10)', () => {
    const limits = new Limits(policy);
    limits.kmsCheckPassed(at(0));
    limits.wasRead(at(0));
    expect(limits.sealBlock(at(3_599.999))).toBeUndefined();
    expect(limits.sealBlock(at(3_600))).toBe('KMS check too old');
    limits.kmsCheckPassed(at(21_000));
    expect(limits.sealBlock(at(21_599.999))).toBeUndefined();
    expect(limits.sealBlock(at(21_600))).toBe('ring read too old');
    expect(limits.sealBlock(at(30_000))).toBe('KMS check too old');
  });

  test('unsealing continues for a token lifetime plus twice the skew after sealing stops, until either clock passes that limit (F10)', () => {
    const limits = new Limits(policy);
    limits.kmsCheckPassed(at(0));
    limits.wasRead(at(0));
    expect(limits.mayUnseal(at(7_799.999))).toBe(true);
    expect(limits.mayUnseal(at(7_800))).toBe(false);
    // Either clock is enough: monotonic time stops in a suspended machine, and a wall clock may be set back.
    expect(limits.mayUnseal({ ...at(0), wallMs: at(7_800).wallMs })).toBe(false);
    expect(limits.mayUnseal({ ...at(0), steadyMs: at(7_800).steadyMs })).toBe(false);
  });

  test('three refusals stop sealing at once and unsealing after S + R, and one KMS check that passes restores both (F10)', () => {
    const limits = new Limits(policy);
    limits.kmsCheckPassed(at(0));
    limits.wasRead(at(0));
    for (const [i, seconds] of [0, 8, 16].entries()) {
      expect([limits.isRefused(at(seconds)), limits.isStopped]).toEqual([i > 0, false]);
      limits.failed('denied', at(seconds));
    }
    expect([limits.isRefused(at(16)), limits.isStopped]).toEqual([true, true]);
    expect(limits.sealBlock(at(16))).toBe('key refused by the kms');
    expect(limits.mayUnseal(at(16 + 599.999))).toBe(true);
    expect(limits.mayUnseal(at(16 + 600))).toBe(false);
    limits.kmsCheckPassed(at(700));
    expect([limits.isRefused(at(700)), limits.isStopped]).toEqual([false, false]);
    expect([limits.sealBlock(at(700)), limits.mayUnseal(at(700))]).toEqual([undefined, true]);
  });

  test('a refusal counts for a minute, and is ignored after that (F10)', () => {
    const limits = new Limits(policy);
    limits.failed('denied', at(0));
    expect([limits.isRefused(at(60)), limits.isRefused(at(60.001))]).toEqual([true, false]);
  });

  test('failures of the kinds throttled, unavailable and corrupt do not count as refusals', () => {
    const limits = new Limits(policy);
    limits.kmsCheckPassed(at(0));
    limits.wasRead(at(0));
    for (const kind of ['throttled', 'unavailable', 'corrupt'] as const) {
      for (let i = 0; i < 5; i++) limits.failed(kind, at(10 * i));
    }
    expect([limits.isRefused(at(50)), limits.isStopped, limits.sealBlock(at(50))]).toEqual([false, false, undefined]);
  });

  test('after propagation − S without a read, a member is not ready, because others may seal with keys unknown to it', async () => {
    const { view, clock, now, refresh } = setUp();
    refresh(newKey());
    const prove = (): void => view.limits.kmsCheckPassed(now());
    await clock.advance(4_200);
    prove();
    expect([view.limits.isCurrent(now()), view.isReady(now())]).toEqual([true, true]);
    await clock.advance(0.001);
    prove();
    expect([view.limits.isCurrent(now()), view.isReady(now())]).toEqual([false, false]);
  });

  test('a ready member’s clock differs from a service’s by at most the skew, the deadline and a second (F13)', () => {
    for (const sign of [1, -1]) {
      const { view, clock, ringClock, now, refresh } = setUp();
      refresh(newKey());
      const tolerated = (policy.clockSkewSeconds + policy.kmsTimeoutSeconds + 1) * 1_000;
      ringClock.note('kms', new Date(clock.wallMs() - sign * tolerated));
      expect([view.clockTrouble(), view.isReady(now())]).toEqual([undefined, true]);
      ringClock.note('kms', new Date(clock.wallMs() - sign * (tolerated + 1)));
      expect(view.clockTrouble()).toContain(sign > 0 ? '306 s ahead of' : '306 s behind');
      expect(view.isReady(now())).toBe(false);
    }
  });
});
