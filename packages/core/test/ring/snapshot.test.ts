import { describe, expect, test } from 'vitest';
import type { RingEntry } from '../../src/ring/document.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import {
  createSnapshot,
  holdsNewest,
  liveKeys,
  type RingKey,
  sealingKeyOf,
  statesOf,
} from '../../src/ring/snapshot.ts';
import { entryBy, T0, testKey } from '../support/certified.ts';
import { four, one, ownKey, three, two } from '../support/known-keys.ts';

const HOUR = 3_600_000;
/** The first two keys are active. */
const NOW = T0 + 2 * HOUR;
const [older, newer] = [ownKey(one), ownKey(two)];

const withKey = (key: RingKey, more: Partial<RingKey>): RingKey => ({ ...key, ...more });

test('a snapshot keeps at most four entries that are not yet unwrapped, preferring those that may be unwrapped later (F23)', () => {
  const entries = Array.from({ length: 6 }, (_, i) => entryBy(testKey(i + 10), []));
  const keptOf = (carried: number, unreadable: number): readonly (readonly RingEntry[])[] => {
    const snapshot = createSnapshot([], entries.slice(0, carried), entries.slice(-unreadable));
    return [snapshot.carried, snapshot.unreadable];
  };
  expect(keptOf(5, 1)).toEqual([entries.slice(0, 4), []]);
  expect(keptOf(3, 3)).toEqual([entries.slice(0, 3), entries.slice(3, 4)]);
});

describe('the key that seals', () => {
  test.each<readonly [string, readonly RingKey[], string | undefined, string | undefined]>([
    ['the newest active key', [older, newer], undefined, two.id],
    ['a key that is held', [older, withKey(newer, { held: undefined })], undefined, one.id],
    ['a key of this ring', [older, withKey(newer, { isLeft: true })], undefined, one.id],
    ['missing if the last key may no longer seal', [older, withKey(newer, { sealsUntil: NOW })], two.id, undefined],
    ['the last key until a late key may seal', [older, withKey(newer, { sealsFromSteadyMs: 1 })], one.id, one.id],
    [
      'the last key, which came late, until the next late key may seal',
      [withKey(older, { sealsFromSteadyMs: 1 }), withKey(newer, { sealsFromSteadyMs: 2 })],
      one.id,
      one.id,
    ],
  ])('the key that seals is %s', (_, keys, last, expected) => {
    expect(sealingKeyOf(createSnapshot(keys), NOW, 0, last)?.id).toBe(expected);
  });
});

test('a key is live if it is neither revoked nor expired, whether it is held or not', () => {
  const keys = [older, withKey(newer, { held: undefined }), withKey(ownKey(three), { revoked: true })];
  const live = liveKeys(createSnapshot([...keys, withKey(ownKey(four), { opensUntil: NOW })]), NOW);
  expect(live.map(({ id }) => id)).toEqual([one.id, two.id]);
});

test.each<readonly [string, boolean, Partial<RingKey>]>([
  ['is held and active', true, {}],
  ['is active from now on', true, { activates: NOW }],
  ['is not active yet', false, { activates: NOW + 1 }],
  ['no longer seals', false, { sealsUntil: NOW }],
  ['is not held', false, { held: undefined }],
  ['belongs to a ring that the member left', false, { isLeft: true }],
])('a member whose only key %s holds the newest: %s', (_, expected, more) => {
  const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
  expect(holdsNewest(createSnapshot([withKey(older, more)]), NOW, policy)).toBe(expected);
});

test('the states of a ring list each key once, by age, and show a key that could not be unwrapped as not held', () => {
  const snapshot = createSnapshot([older, ownKey(three)], [entryBy(one, []), entryBy(two, [])], [entryBy(four, [])]);
  const states = statesOf(snapshot, NOW, 0, undefined);
  expect(states.map(({ key, state }) => [key.id, key.held !== undefined, state])).toEqual([
    [one.id, true, 'verify-only'],
    [two.id, false, 'verify-only'],
    [three.id, true, 'active'],
    [four.id, false, 'propagating'],
  ]);
});
