import { randomBytes, randomFillSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { later, type Moment, momentOf } from '../src/clock.ts';
import { CodecClosedError, SealUnavailableError } from '../src/errors.ts';
import { EnvelopeKeyCache, HeldKey, wrapIdentity } from '../src/key-cache.ts';
import { type RingDocument, type RingEntry, type RingWrap, wrapContext } from '../src/ring/document.ts';
import { KmsCalls } from '../src/ring/kms-calls.ts';
import { Limits } from '../src/ring/limits.ts';
import { isFull, withoutRemovable } from '../src/ring/merge.ts';
import { resolvePolicy } from '../src/ring/policy.ts';
import { ServiceClock } from '../src/ring/service-clock.ts';
import { createSnapshot, sealingKeyOf } from '../src/ring/snapshot.ts';
import { RingView } from '../src/ring/view.ts';
import { KeyWraps } from '../src/ring/wraps.ts';
import { VirtualClock } from './support/virtual-clock.ts';

const RING = 'payments';
const START = '2026-11-21T03:00:00Z';
const T0 = Date.parse(START);
const HOUR = 3_600_000;
const SKEW = 300_000;
const policy = resolvePolicy(undefined, { storeKind: 'redis', createNow: false });
const GONE = /was overwritten/;

interface Key {
  readonly entry: RingEntry;
  readonly held: HeldKey;
}

/** A key that has sealed for an hour already, and will for two more. */
function newKey(more: Partial<RingEntry> = {}): Key {
  const held = new HeldKey(randomBytes(32), RING);
  const wrap: RingWrap = { provider: 'local', keyId: 'one', wrapped: randomBytes(60), unknown: {} };
  const times = { created: T0 - HOUR, activates: T0 - HOUR, sealsUntil: T0 + 2 * HOUR, opensUntil: T0 + 3 * HOUR };
  return { held, entry: { id: held.id, ...times, revoked: undefined, wraps: [wrap], unknown: {}, ...more } };
}

function documentOf(keys: readonly Key[]): RingDocument {
  return { ring: RING, epoch: 1, entries: keys.map(({ entry }) => entry), unknown: {}, body: '', macs: new Map() };
}

function setUp(options: { readonly role?: 'member' | 'reader'; readonly acceptCreatedFromMs?: number } = {}) {
  const clock = new VirtualClock(START);
  const cache = new EnvelopeKeyCache(clock);
  const random = (fill: Uint8Array): void => void randomFillSync(fill);
  const closing = new AbortController().signal;
  const calls = new KmsCalls({ clock, random, timeoutSeconds: 5, closing, onServiceDate: () => undefined });
  const wraps = new KeyWraps({ ring: RING, wrappers: [], quorum: 0, trustStore: false, calls, cache, random });
  const serviceClock = new ServiceClock(policy, () => clock.wallMs());
  const acceptCreatedFromMs = options.acceptCreatedFromMs;
  const view = new RingView({
    role: options.role ?? 'member',
    policy,
    clock,
    serviceClock,
    wraps,
    cache,
    acceptCreatedFromMs,
  });
  const now = (): Moment => momentOf(clock);
  const hold = ({ entry, held }: Key): void => {
    for (const wrap of entry.wraps) cache.set(wrapIdentity(wrap, wrapContext(RING, entry)), held, entry.opensUntil);
  };
  /** What a refresh does that goes through whole. */
  const refresh = (...keys: readonly Key[]): void => {
    for (const key of keys) hold(key);
    view.install(documentOf(keys), 'revision');
    view.limits.proved(now());
    view.limits.wasRead(now());
    view.limits.completed(now());
  };
  return { view, clock, cache, serviceClock, now, hold, refresh };
}

describe('before the ring was read, and after close', () => {
  test('nothing is known, and nothing seals or opens', () => {
    const { view, now, refresh } = setUp();
    const key = newKey();
    const nothing = (): void => {
      expect(view.hasSnapshot).toBe(false);
      expect(view.canSeal(now())).toBe(false);
      expect(view.isReady(now())).toBe(false);
      expect(() => view.snapshot).toThrow(CodecClosedError);
      expect(() => view.sealingKey(now())).toThrow(CodecClosedError);
      expect(() => view.openingKey(key.entry.id, now())).toThrow(CodecClosedError);
      expect(() => view.openingKeys(now())).toThrow(CodecClosedError);
      expect(() => view.states(now())).toThrow(CodecClosedError);
    };
    nothing();
    // Whatever the limits allow.
    view.limits.proved(now());
    view.limits.wasRead(now());
    view.limits.completed(now());
    nothing();
    expect([view.isClosed, view.sealedWith]).toEqual([false, undefined]);
    refresh(key);
    expect([view.hasSnapshot, view.canSeal(now()), view.isReady(now())]).toEqual([true, true, true]);
    view.close();
    expect(view.isClosed).toBe(true);
    nothing();
    expect(() => key.held.copyDataKey()).toThrow(GONE);
  });

  test('a refresh that ends after close brings nothing back', () => {
    const { view, refresh, now } = setUp();
    view.close();
    refresh(newKey());
    expect([view.hasSnapshot, view.canSeal(now()), view.pastSigners()]).toEqual([false, false, []]);
    expect(() => view.snapshot).toThrow(CodecClosedError);
  });
});

describe('the key that seals', () => {
  test('is remembered by its id', () => {
    const { view, now, refresh } = setUp();
    const key = newKey();
    refresh(key);
    expect(view.sealedWith).toBeUndefined();
    expect(view.sealingKey(now())).toMatchObject({ id: key.entry.id, held: key.held });
    expect(view.sealedWith).toBe(key.entry.id);
  });

  test('is missing, with the reason, when none is active, and for a reader', () => {
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
      // A reader is ready without: it only opens.
      expect(view.isReady(now())).toBe(role === 'reader');
    }
  });

  test('F13 may be the older one again when the one that sealed was revoked, and only then', () => {
    const older = newKey({ activates: T0 - 2 * HOUR });
    const newer = newKey();
    const keys = (revoked: number | undefined) =>
      createSnapshot(
        documentOf([older, { ...newer, entry: { ...newer.entry, revoked } }]),
        undefined,
        (entry) => (entry.id === older.entry.id ? older.held : newer.held),
        (entry) => entry.revoked !== undefined,
      );
    const early = newer.entry.activates - 1;
    expect(sealingKeyOf(keys(undefined), early, undefined)?.id).toBe(older.entry.id);
    expect(sealingKeyOf(keys(undefined), early, newer.entry.id)?.id).toBe(newer.entry.id);
    expect(sealingKeyOf(keys(T0), T0, newer.entry.id)?.id).toBe(older.entry.id);
  });
});

describe('the keys that open', () => {
  test('are those that are held, unrevoked and not over, newest first, and none once the limits have passed', () => {
    const { view, clock, hold, now } = setUp();
    const first = newKey({ activates: T0 - 4 * HOUR });
    const second = newKey({ activates: T0 - 3 * HOUR });
    const revoked = newKey({ revoked: T0 - 1_000 });
    const over = newKey({ sealsUntil: T0 - 1_000, opensUntil: T0 });
    const missing = newKey();
    for (const key of [first, second, revoked, over]) hold(key);
    view.install(documentOf([second, revoked, over, missing, first]), 'revision');
    const all = [first, second, revoked, over, missing];
    const opening = (): readonly string[] => view.openingKeys(now()).map(({ id }) => id);
    const one = (): readonly string[] => all.map(({ entry }) => entry.id).filter((id) => view.openingKey(id, now()));
    expect([opening(), one()]).toEqual([[], []]);
    view.limits.proved(now());
    view.limits.wasRead(now());
    expect(opening()).toEqual([second.entry.id, first.entry.id]);
    expect(one()).toEqual([first.entry.id, second.entry.id]);
    expect(view.openingKey(randomBytes(9).toString('base64url'), now())).toBeUndefined();
    // Both clocks, and both keys still have an hour: it is the limits that end here.
    clock.step(policy.sealOutageSeconds + policy.tokenLifetimeSeconds + 2 * policy.clockSkewSeconds - 1);
    expect(opening()).toHaveLength(2);
    clock.step(1);
    expect([opening(), one()]).toEqual([[], []]);
  });

  test('F28 the first use after a gap, whichever it is, asks for a refresh, and no further one does', () => {
    const uses = [
      (view: RingView, now: Moment) => view.sealingKey(now),
      (view: RingView, now: Moment) => view.openingKey('unknown', now),
      (view: RingView, now: Moment) => view.openingKeys(now),
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

describe('F13 the time that keys are judged by', () => {
  test('is the wall clock, but never further back than the skew from the highest it has shown', () => {
    const { view, clock } = setUp();
    expect(view.wallMs()).toBe(T0);
    clock.step(-60);
    expect(view.wallMs()).toBe(T0 - 60_000);
    clock.step(-7_200);
    expect(view.wallMs()).toBe(T0 - SKEW);
    expect(view.wallMs()).toBe(T0 - SKEW);
    clock.step(7_320);
    expect(view.wallMs()).toBe(T0 + 60_000);
    clock.step(-7_200);
    expect(view.wallMs()).toBe(T0 + 60_000 - SKEW);
  });
});

describe('a pin on the age of keys', () => {
  test('counts keys created before it as revoked, and no others', () => {
    const created = [T0 - HOUR - 1_000, T0 - HOUR, T0 - HOUR + 1_000];
    for (const [pin, expected] of [
      [undefined, [false, false, false]],
      [T0 - HOUR, [true, false, false]],
    ] as const) {
      const { view, now, refresh } = setUp(pin === undefined ? {} : { acceptCreatedFromMs: pin });
      const keys = created.map((at) => newKey({ created: at }));
      refresh(...keys);
      expect(keys.map(({ entry }) => view.isPinnedOut(entry))).toEqual(expected);
      expect(keys.map(({ entry }) => view.isRevoked(entry))).toEqual(expected);
      expect(keys.map(({ entry }) => view.openingKey(entry.id, now()) === undefined)).toEqual(expected);
      expect(view.isRevoked({ ...newKey().entry, revoked: T0 })).toBe(true);
    }
  });
});

describe('F26 keys that signed the ring once', () => {
  test('still check documents when they have left it, and can do nothing else', () => {
    const { view, refresh } = setUp();
    const key = newKey();
    const mac = Buffer.from(key.held.secret('ring-mac'));
    refresh(key);
    refresh(newKey());
    expect(() => key.held.copyDataKey()).toThrow(GONE);
    const [signer] = view.pastSigners();
    expect(signer?.id).toBe(key.entry.id);
    expect(signer?.secret('ring-mac')).toEqual(mac);
    expect(() => signer?.copyDataKey()).toThrow(GONE);
    expect(() => signer?.deriveTokenKey(randomBytes(18))).toThrow(GONE);
  });

  test('F22, F23 are 128 at most: the oldest is overwritten and dropped, and all are on close', () => {
    const { view, refresh } = setUp();
    const keys = Array.from({ length: 130 }, () => newKey());
    for (const key of keys.slice(0, 128)) refresh(key);
    const first = view.pastSigners();
    expect(first.map(({ id }) => id)).toEqual(keys.slice(0, 128).map(({ entry }) => entry.id));
    for (const key of keys.slice(128)) refresh(key);
    const left = view.pastSigners();
    expect(left.map(({ id }) => id)).toEqual(keys.slice(2).map(({ entry }) => entry.id));
    for (const signer of first.slice(0, 2)) expect(() => signer.secret('ring-mac')).toThrow(GONE);
    for (const signer of left) expect(signer.secret('ring-mac')).toHaveLength(32);
    view.close();
    for (const signer of left) expect(() => signer.secret('ring-mac')).toThrow(GONE);
  });
});

describe('how long a member goes on without the KMS and the store', () => {
  const at = (seconds: number): Moment => ({ wallMs: T0 + seconds * 1_000, steadyMs: 1_000 + seconds * 1_000 });

  test('is not at all before both have answered once, and the proof is the first to be missed', () => {
    const limits = new Limits(policy);
    const nothing = [undefined, undefined, undefined, undefined, false, false, false, false];
    const seen = (): readonly unknown[] => [
      limits.lastProof,
      limits.lastRead,
      limits.lastComplete,
      limits.sealUntilMs,
      limits.mayOpen(at(0)),
      limits.isCurrent(at(0)),
      limits.isRefused,
      limits.isStopped,
    ];
    expect(seen()).toEqual(nothing);
    expect(limits.sealBlock(at(0))).toBe('key proof too old');
    limits.proved(at(0));
    expect([limits.mayOpen(at(0)), limits.sealBlock(at(0))]).toEqual([false, 'ring read too old']);
    limits.wasRead(at(0));
    limits.completed(at(0));
    expect(limits.sealBlock(at(0))).toBeUndefined();
    expect(seen()).toEqual([at(0), at(0), at(0), T0 + 3_600_000, true, true, false, false]);
  });

  test('begins with both, whichever came first', () => {
    const limits = new Limits(policy);
    limits.wasRead(at(0));
    expect([limits.mayOpen(at(0)), limits.sealBlock(at(0))]).toEqual([false, 'key proof too old']);
    limits.proved(at(0));
    expect([limits.mayOpen(at(0)), limits.sealBlock(at(0))]).toEqual([true, undefined]);
  });

  test('F10 is told by what is missing: 3 600 s without a proof, 21 600 s without a read', () => {
    const limits = new Limits(policy);
    limits.proved(at(0));
    limits.wasRead(at(0));
    expect(limits.sealBlock(at(3_599.999))).toBeUndefined();
    expect(limits.sealBlock(at(3_600))).toBe('key proof too old');
    limits.proved(at(21_000));
    expect(limits.sealBlock(at(21_599.999))).toBeUndefined();
    expect(limits.sealBlock(at(21_600))).toBe('ring read too old');
    expect(limits.sealBlock(at(30_000))).toBe('key proof too old');
  });

  test('F10 opening goes on for a token life and twice the skew, and not as long as the clock does not say so', () => {
    const limits = new Limits(policy);
    limits.proved(at(0));
    limits.wasRead(at(0));
    expect(limits.mayOpen(at(7_799.999))).toBe(true);
    expect(limits.mayOpen(at(7_800))).toBe(false);
    // Either clock is enough: monotonic time stands still in a suspended machine, and a wall clock may be set back.
    expect(limits.mayOpen({ ...at(0), wallMs: at(7_800).wallMs })).toBe(false);
    expect(limits.mayOpen({ ...at(0), steadyMs: at(7_800).steadyMs })).toBe(false);
  });

  test('F10 three refusals stop sealing, and opening S + R later; one proof ends both stops', () => {
    const limits = new Limits(policy);
    limits.proved(at(0));
    limits.wasRead(at(0));
    for (const [i, seconds] of [0, 8, 16].entries()) {
      expect([limits.isRefused, limits.isStopped]).toEqual([i > 0, false]);
      limits.failed('denied', at(seconds));
    }
    expect([limits.isRefused, limits.isStopped]).toEqual([true, true]);
    expect(limits.sealBlock(at(16))).toBe('key refused by the kms');
    expect(limits.mayOpen(at(16 + 599.999))).toBe(true);
    expect(limits.mayOpen(at(16 + 600))).toBe(false);
    limits.proved(at(700));
    expect([limits.isRefused, limits.isStopped]).toEqual([false, false]);
    expect([limits.sealBlock(at(700)), limits.mayOpen(at(700))]).toEqual([undefined, true]);
  });

  test('what may pass is no refusal', () => {
    const limits = new Limits(policy);
    limits.proved(at(0));
    limits.wasRead(at(0));
    for (const kind of ['throttled', 'unavailable', 'corrupt'] as const) {
      for (let i = 0; i < 5; i++) limits.failed(kind, at(10 * i));
    }
    expect([limits.isRefused, limits.isStopped, limits.sealBlock(at(50))]).toEqual([false, false, undefined]);
  });

  test('readiness ends when others may seal with keys that this member has not heard of: propagation − S', () => {
    const { view, clock, now, refresh } = setUp();
    refresh(newKey());
    const prove = (): void => view.limits.proved(now());
    clock.step(4_200);
    prove();
    expect([view.limits.isCurrent(now()), view.isReady(now())]).toEqual([true, true]);
    clock.step(0.001);
    prove();
    expect([view.limits.isCurrent(now()), view.isReady(now())]).toEqual([false, false]);
  });

  test('F13 a clock that differs from that of a service by the skew, the deadline and a second is fit, and no more', () => {
    for (const sign of [1, -1]) {
      const { view, clock, serviceClock, now, refresh } = setUp();
      refresh(newKey());
      const tolerated = (policy.clockSkewSeconds + policy.kmsTimeoutSeconds + 1) * 1_000;
      serviceClock.note('kms', new Date(clock.wallMs() - sign * tolerated));
      expect([view.clockTrouble, view.isReady(now())]).toEqual([undefined, true]);
      serviceClock.note('kms', new Date(clock.wallMs() - sign * (tolerated + 1)));
      expect(view.clockTrouble).toContain(sign > 0 ? '306 s ahead of' : '306 s behind');
      expect(view.isReady(now())).toBe(false);
    }
  });
});

describe('what a writer may take out of the ring', () => {
  test('F31 is a key whose end has passed on the slowest clock of the fleet, and no other', () => {
    const keys = [newKey(), newKey({ opensUntil: T0 + 4 * HOUR }), newKey()].map(({ entry }) => entry);
    const end = T0 + 3 * HOUR + SKEW;
    expect(withoutRemovable(keys, end - 1, policy)).toEqual(keys);
    expect(withoutRemovable(keys, end, policy)).toEqual([keys[1]]);
    expect(withoutRemovable(keys, end + HOUR, policy)).toEqual([]);
  });

  test('F23 a ring of 64 keys is full', () => {
    const { entry } = newKey();
    const full = [0, 63, 64, 65].filter((count) => isFull(Array.from({ length: count }, () => entry)));
    expect(full).toEqual([64, 65]);
  });
});
