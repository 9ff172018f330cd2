import { describe, expect, test, vi } from 'vitest';
import { momentOf } from '../../src/base/clock.ts';
import { Closing } from '../../src/base/closing.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../../src/contracts/ring-store.ts';
import { Operations } from '../../src/member/operations.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { Turns } from '../../src/member/turns.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot, type RingKey } from '../../src/ring/snapshot.ts';
import { EventLog } from '../support/event-log.ts';
import { first, newestKey, one, ownKey, second, stranger, three, two } from '../support/known-keys.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const START = '2026-11-21T05:00:00Z';
const NOW = Date.parse(START);
const lost = new RingConflictError();
const silent = new RingStoreError('unavailable', 'no answer in time');

function setUp(keys: readonly RingKey[] = [ownKey(three)]) {
  const clock = new VirtualClock(START);
  const read = vi.fn<() => Promise<void>>(async () => undefined);
  const publish = vi.fn<(reason: string) => Promise<void>>(async () => undefined);
  const revoke = vi.fn<(keys: readonly RingKey[]) => Promise<void>>(async () => undefined);
  const view = {
    isClosed: false,
    snapshot: createSnapshot(keys, [first], [second]),
    now: () => momentOf(clock),
    wallMs: () => NOW,
  };
  const sync = { wasAnswered: true, read, readToWrite: read };
  const parts = {
    ring: 'payments',
    policy: resolvePolicy(undefined, { storeKind: 's3', createNow: false }),
    clock,
    closing: new Closing(),
    random: (fill: Uint8Array) => void fill.fill(0xff),
    view,
    sync,
    writer: { publish, revoke },
  };
  const operations = new Operations(parts as unknown as MemberParts, new Turns());
  /** The name or kind of the error; virtual time passes. */
  const outcomeOf = async (work: Promise<void>, seconds = 100): Promise<string> => {
    let outcome = 'pending';
    work.then(
      () => void (outcome = 'done'),
      (error: Error) => void (outcome = 'kind' in error ? String(error.kind) : error.name),
    );
    for (let passed = 0; passed < seconds; passed++) await clock.advance(1);
    return outcome;
  };
  const revoked = () => revoke.mock.calls.map(([given]) => given.map(({ id }) => id));
  return { operations, view, sync, read, publish, revoke, outcomeOf, revoked };
}

describe('a revocation that an operator requests', () => {
  const isKey =
    ({ id }: { readonly id: string }) =>
    (key: RingKey): boolean =>
      key.id === id;

  test.each([
    ['a known key', three],
    ['an entry that waits to be unwrapped', one],
    ['an entry that cannot be unwrapped', two],
  ])('%s can be revoked by its id', async (_, key) => {
    const { operations, outcomeOf, revoked } = setUp();
    expect(await outcomeOf(operations.revoke(isKey(key), key.id))).toBe('done');
    expect(revoked()).toEqual([[key.id]]);
  });

  test('a key that the ring does not have cannot be revoked, and nothing is written if no key matches', async () => {
    const { operations, outcomeOf, revoked } = setUp();
    expect(await outcomeOf(operations.revoke(isKey(stranger), stranger.id))).toBe('RangeError');
    expect(await outcomeOf(operations.revoke(() => false))).toBe('done');
    expect(revoked()).toEqual([]);
  });

  test('successors that appeared meanwhile and are active at once stay, but other new keys are revoked', async () => {
    const { operations, view, revoke, outcomeOf, revoked } = setUp();
    const atOnce = { ...ownKey(newestKey), activates: newestKey.created };
    revoke.mockImplementationOnce(async () => {
      view.snapshot = createSnapshot([ownKey(three), atOnce, { ...ownKey(stranger), activates: stranger.created + 1 }]);
      throw lost;
    });
    expect(await outcomeOf(operations.revoke(() => true))).toBe('done');
    expect(revoked()[1]?.toSorted()).toEqual([three.id, stranger.id].toSorted());
  });

  test.each<readonly [string, Error, boolean, string, number]>([
    ['fails if the store does not answer', silent, false, 'unavailable', 0],
    ['succeeds if the content cannot be read', new RingStoreError('corrupt', 'x'), true, 'done', 1],
    [
      'succeeds if the KMS does not unwrap the entries',
      new KeyWrapperError('denied', { provider: 'kms', operation: 'unwrap' }),
      true,
      'done',
      1,
    ],
    ['fails if it loses the race every time', lost, true, 'RingConflictError', 0],
  ])('a revocation %s', async (_, error, wasAnswered, outcome, revocations) => {
    const { operations, sync, read, outcomeOf, revoked } = setUp();
    sync.wasAnswered = wasAnswered;
    read.mockRejectedValue(error);
    expect(await outcomeOf(operations.revoke(() => true))).toBe(outcome);
    expect(revoked()).toHaveLength(revocations);
  });

  test('a store that does not answer is called again for 20 s, but a store that refuses is not', async () => {
    const log = new EventLog();
    log.listen();
    for (const [error, seconds, outcome] of [
      [silent, 19, 'pending'],
      [silent, 22, 'unavailable'],
      [new RingStoreError('denied', 'x'), 1, 'denied'],
    ] as const) {
      const { operations, revoke, outcomeOf } = setUp();
      revoke.mockRejectedValue(error);
      expect(
        await outcomeOf(
          operations.revoke(() => true),
          seconds,
        ),
      ).toBe(outcome);
      expect(revoke.mock.calls.length > 1).toBe(error === silent);
    }
    log.end();
    expect(log.of('rotation-failed').map(({ reason, kind }) => [reason, kind])).toEqual([
      ['revocation', 'unavailable'],
      ['revocation', 'denied'],
    ]);
  });
});

describe('a rotation that an operator requests', () => {
  test.each<readonly [string, Partial<RingKey>, number]>([
    ['is not repeated if the winner’s key seals early enough', { activates: NOW + 4_800_000 }, 1],
    ['is repeated if the winner’s key seals too late', { activates: NOW + 4_800_001 }, 2],
    ['is repeated if the winner’s key is revoked', { activates: NOW, revoked: true }, 2],
  ])('a rotation that lost the race %s', async (_, winner, calls) => {
    const { operations, view, publish, outcomeOf } = setUp();
    publish.mockImplementationOnce(async () => {
      view.snapshot = createSnapshot([...view.snapshot.keys, { ...ownKey(newestKey), ...winner }]);
      throw lost;
    });
    expect(await outcomeOf(operations.rotate('requested'))).toBe('done');
    expect(publish.mock.calls).toEqual(Array.from({ length: calls }, () => ['requested']));
  });

  test('a rotation gives up after 65 lost races, stops if the store is silent, and reports nothing once closed', async () => {
    const log = new EventLog();
    log.listen();
    const { operations, view, publish, outcomeOf } = setUp();
    publish.mockRejectedValue(lost);
    expect(await outcomeOf(operations.rotate('emergency'))).toBe('RingConflictError');
    expect(publish).toHaveBeenCalledTimes(65);
    publish.mockRejectedValue(silent);
    view.isClosed = true;
    expect(await outcomeOf(operations.rotate('emergency'), 1)).toBe('unavailable');
    expect(publish).toHaveBeenCalledTimes(66);
    log.end();
    expect(log.of('rotation-failed')).toMatchObject([{ reason: 'emergency', source: 'store', kind: 'conflict' }]);
  });
});
