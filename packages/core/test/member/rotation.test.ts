import { describe, expect, test, vi } from 'vitest';
import { momentOf } from '../../src/base/clock.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { RingConflictError } from '../../src/contracts/ring-store.ts';
import type { WrappedVersion } from '../../src/kms/wraps.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { Rotation } from '../../src/member/rotation.ts';
import { Turns } from '../../src/member/turns.ts';
import type { RingEntry } from '../../src/ring/document.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { rotationDelayMs } from '../../src/ring/schedule.ts';
import { createSnapshot, type RingKey } from '../../src/ring/snapshot.ts';
import { entryBy } from '../support/certified.ts';
import { EventLog } from '../support/event-log.ts';
import { one, ownKey, three, two } from '../support/known-keys.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOUR = 3_600;
const NOW = Date.parse('2026-11-22T12:00:00Z');
/** When a key is old enough: its successor is due 81 900 s after its activation. */
const DUE = 81_900_000;
const failed = new KeyWrapperError('throttled', { provider: 'kms', operation: 'wrap' });

interface Facts {
  readonly keys?: readonly RingKey[];
  readonly carried?: readonly RingEntry[];
  readonly role?: 'member' | 'reader';
  readonly trouble?: string;
  readonly block?: string;
  readonly keyCount?: number;
  readonly versionEverySeconds?: number;
  readonly version?: WrappedVersion;
  readonly wrapped?: readonly WrappedVersion[];
}

const aged = (ms: number, more: Partial<RingKey> = {}): RingKey => ({
  ...ownKey(one),
  created: NOW - ms,
  activates: NOW - ms,
  ...more,
});

function setUp({ keys = [aged(DUE)], carried = [], role = 'member', keyCount = 1, ...more }: Facts = {}) {
  const clock = new VirtualClock(new Date(NOW).toISOString());
  const policy = resolvePolicy(
    { keyVersionEverySeconds: more.versionEverySeconds },
    { storeKind: 's3', createNow: false },
  );
  const done: unknown[] = [];
  const note = (what: string) => vi.fn<(given: unknown) => Promise<void>>(async () => void done.push(what));
  const [read, check] = [note('read'), note('check')];
  const publish = vi.fn<(reason: string) => Promise<void>>(async (reason) => void done.push(reason));
  const newVersion = vi.fn<() => Promise<WrappedVersion | undefined>>(async () => more.version);
  const ended = vi.fn<(error: unknown) => void>();
  const view = {
    isClosed: false,
    snapshot: createSnapshot(keys, carried),
    knownWraps: more.wrapped ?? [],
    now: () => momentOf(clock),
    wallMs: () => clock.wallMs(),
    sealBlock: () => more.block,
    clockTrouble: () => more.trouble,
  };
  const parts = {
    ring: 'payments',
    role,
    policy,
    clock,
    view,
    random: (fill: Uint8Array) => void fill.fill(0).fill(0x80, fill.length - 1),
    sync: { readToWrite: read, check: { run: check } },
    writer: { keyCount, publish },
    wraps: { newVersion },
  };
  const rotation = new Rotation(parts as unknown as MemberParts, new Turns(), ended);
  return { rotation, clock, view, done, check, publish, newVersion, ended, turn: rotationDelayMs(0.5, policy) / 2_000 };
}

describe('a rotation that is due', () => {
  test.each<readonly [string, Facts, readonly string[]]>([
    ['made by a member', {}, ['scheduled']],
    ['made while there is room', { keyCount: 59 }, ['scheduled']],
    ['not made for a younger key', { keys: [aged(DUE - 1)] }, []],
    ['not made without a key', { keys: [] }, []],
    ['not made by a reader', { role: 'reader' }, []],
    ['not made with an unconfirmed clock', { trouble: 'stepped' }, []],
    ['not made by a member that may not seal', { block: 'KMS check too old' }, []],
    ['not made in a ring of 60 keys', { keyCount: 60 }, []],
    ['not made if there is a newer key', { keys: [aged(DUE), aged(0, { id: two.id })] }, []],
    ['not made if a newer entry waits to be unwrapped', { carried: [entryBy(three, [], { activates: NOW })] }, []],
    ['made if the newer key is revoked', { keys: [aged(DUE), aged(0, { id: two.id, revoked: true })] }, ['scheduled']],
    [
      'made if the newer key belongs to another ring',
      { keys: [aged(DUE), aged(0, { id: two.id, isLeft: true })] },
      ['scheduled'],
    ],
  ])('a rotation is %s', async (_, facts, published) => {
    const { rotation, clock, publish } = setUp(facts);
    rotation.consider();
    await clock.advance(HOUR);
    expect(publish.mock.calls.map(([reason]) => reason)).toEqual(published);
  });

  test('a member waits two turns, and checks the KMS at the end of the first', async () => {
    const { rotation, clock, done, ended, turn } = setUp();
    for (const [seconds, expected] of [
      [turn - 0.001, []],
      [0.002, ['read', 'check']],
      [turn - 0.002, ['read', 'check']],
      [0.002, ['read', 'check', 'read', 'scheduled']],
    ] as const) {
      rotation.consider();
      await clock.advance(seconds);
      expect(done).toEqual(expected);
    }
    expect([ended.mock.calls, rotation.isFailing]).toEqual([[[undefined]], false]);
  });

  test('a turn ends without a key if another member rotated meanwhile, or the codec was closed', async () => {
    for (const change of [{ snapshot: createSnapshot([aged(0)]) }, { isClosed: true }]) {
      const { rotation, clock, view, publish } = setUp();
      rotation.consider();
      Object.assign(view, change);
      await clock.advance(HOUR);
      expect(publish).not.toHaveBeenCalled();
    }
    const { rotation, clock, done } = setUp();
    rotation.consider();
    rotation.cancel();
    await clock.advance(HOUR);
    expect(done).toEqual([]);
  });

  test('a failed rotation is reported, and retried after a longer wait each time, until no rotation is due', async () => {
    const log = new EventLog();
    log.listen();
    const { rotation, clock, view, check, ended, turn } = setUp();
    check.mockRejectedValue(failed);
    rotation.consider();
    await clock.advance(turn + 0.001);
    expect([ended.mock.calls, rotation.isFailing]).toEqual([[[failed]], true]);
    // Three quarters of 120 and 240 s.
    for (const [seconds, calls] of [
      [89, 1],
      [1, 2],
      [179, 2],
      [1, 3],
    ] as const) {
      await clock.advance(seconds);
      expect(check).toHaveBeenCalledTimes(calls);
    }
    log.end();
    expect(log.of('rotation-failed')).toHaveLength(3);
    expect(log.of('rotation-failed')[0]).toMatchObject({ reason: 'scheduled', source: 'kms', kind: 'throttled' });
    Object.assign(view, { snapshot: createSnapshot([aged(0)]) });
    rotation.consider();
    expect(rotation.isFailing).toBe(false);
  });

  test('a lost race is not a failure', async () => {
    const { rotation, clock, publish, ended } = setUp();
    publish.mockRejectedValue(new RingConflictError());
    rotation.consider();
    await clock.advance(HOUR);
    expect([rotation.isFailing, ended.mock.calls.length]).toEqual([false, 0]);
  });
});

describe('a new version of the KMS key', () => {
  const version = { provider: 'kms', keyId: 'v2' };
  const old = { keys: [aged(5_400_000)], version };

  test.each<readonly [string, Facts, readonly string[]]>([
    ['leads to a rotation', old, ['key-version']],
    ['leads to a rotation while there is room', { ...old, keyCount: 47 }, ['key-version']],
    ['leads to no rotation in a ring of 48 keys', { ...old, keyCount: 48 }, []],
    ['leads to no rotation if a wrap already names it', { ...old, wrapped: [version] }, []],
    [
      'leads to a rotation if another service has a version of that name',
      { ...old, wrapped: [{ ...version, provider: 'other' }] },
      ['key-version'],
    ],
    [
      'leads to a rotation if the wrap of its service names another version',
      { ...old, wrapped: [{ ...version, keyId: 'v1' }] },
      ['key-version'],
    ],
    ['leads to no rotation for a key that is younger than an hour', { ...old, keys: [aged(0), ...old.keys] }, []],
    [
      'leads to no rotation if a younger entry waits to be unwrapped',
      { ...old, carried: [entryBy(three, [], { created: NOW, activates: 0 })] },
      [],
    ],
    [
      'leads to a rotation if the younger key belongs to another ring',
      { ...old, keys: [...old.keys, aged(0, { id: two.id, isLeft: true })] },
      ['key-version'],
    ],
    ['leads to no rotation if it is not found', { keys: old.keys }, []],
  ])('a new version %s', async (_, facts, published) => {
    const log = new EventLog();
    log.listen();
    const { rotation, clock, publish } = setUp(facts);
    await rotation.lookForNewVersion();
    await clock.advance(HOUR / 2);
    await rotation.lookForNewVersion();
    await clock.advance(500);
    log.end();
    expect(publish.mock.calls.map(([reason]) => reason)).toEqual(published);
    expect(log.of('key-version')).toEqual(facts.version === undefined ? [] : [{ provider: 'kms', version: 'v2' }]);
  });

  test('the KMS is asked for its key version within an hour, and then every 54 to 60 minutes', async () => {
    const { rotation, clock, newVersion } = setUp();
    const seen: number[] = [];
    for (const seconds of [0, 1_799, 1, 3_239, 1]) {
      await clock.advance(seconds);
      await rotation.lookForNewVersion();
      seen.push(newVersion.mock.calls.length);
    }
    expect(seen).toEqual([0, 0, 1, 1, 2]);
  });

  test.each<readonly [string, Facts]>([
    ['by a reader', { role: 'reader' }],
    ['if the policy disables that', { versionEverySeconds: 0 }],
  ])('the KMS is not asked for its key version %s', async (_, facts) => {
    const { rotation, clock, newVersion } = setUp(facts);
    for (let i = 0; i < 3; i++) {
      await rotation.lookForNewVersion();
      await clock.advance(HOUR);
    }
    expect(newVersion).not.toHaveBeenCalled();
  });

  test('a failure of the KMS is ignored, because the call has already reported it, but any other error is thrown', async () => {
    const { rotation, clock, newVersion } = setUp();
    await rotation.lookForNewVersion();
    for (const error of [failed, new RangeError('random')]) {
      await clock.advance(HOUR);
      newVersion.mockRejectedValueOnce(error);
      const outcome = await rotation.lookForNewVersion().catch((thrown: unknown) => thrown);
      expect(outcome).toBe(error === failed ? undefined : error);
    }
  });
});
