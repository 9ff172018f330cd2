import { expect, test } from 'vitest';
import { healthOf } from '../../src/codec/codec-health.ts';
import type { RingKeeper } from '../../src/member/keeper.ts';
import type { KeyState } from '../../src/ring/schedule.ts';

const now = { wallMs: 1_000, steadyMs: 0 };

interface Facts {
  readonly canSeal?: boolean;
  readonly sealUntilMs?: number;
  /** For each key: its state, whether it is held, and when it no longer seals. */
  readonly keys?: readonly (readonly [KeyState, boolean, number])[];
}

function healthWith({ canSeal = true, sealUntilMs, keys = [] }: Facts) {
  const states = keys.map(([state, isHeld, sealsUntil], i) => ({
    state,
    key: { id: `k${i}`, held: isHeld ? {} : undefined, created: 1, activates: 2, sealsUntil, opensUntil: 90_000 },
  }));
  const view = {
    now: () => now,
    states: () => states,
    limits: { sealUntilMs, lastComplete: undefined, lastKmsCheck: now },
    canSeal: () => canSeal,
    isReady: () => true,
    canUnseal: () => true,
  };
  const condition = { problems: () => [], status: () => 'ok', lastFailure: undefined };
  return healthOf({ view, condition } as unknown as RingKeeper);
}

test.each<readonly [string, Facts, number | undefined]>([
  ['is unknown before the KMS and the store have answered', { keys: [['active', true, 5_000]] }, undefined],
  ['is the limit of the member, if no key ends before', { sealUntilMs: 4_000, keys: [['active', true, 5_000]] }, 4_000],
  ['is the end of the last key', { sealUntilMs: 9_000, keys: [['active', true, 5_000]] }, 5_000],
  [
    'is the end of a key that propagates, whichever comes first',
    {
      sealUntilMs: 9_000,
      keys: [
        ['active', true, 5_000],
        ['propagating', true, 7_000],
        ['verify-only', true, 8_000],
      ],
    },
    7_000,
  ],
  [
    'ignores a key that is not held',
    {
      sealUntilMs: 9_000,
      keys: [
        ['active', true, 5_000],
        ['propagating', false, 7_000],
      ],
    },
    5_000,
  ],
  ['is the limit of the member if no key may seal', { sealUntilMs: 4_000, keys: [['revoked', false, 5_000]] }, 4_000],
])('the time until which a member seals %s', (_, facts, expected) => {
  expect(healthWith(facts).sealUntil?.getTime()).toBe(expected);
});

test('the health of a member shows its keys with their times, and the one that seals', () => {
  const keys: Facts['keys'] = [
    ['verify-only', false, 3],
    ['active', true, 5_000],
  ];
  const { sealingKey, lastRefresh, lastKmsCheck, keys: shown } = healthWith({ keys });
  expect([sealingKey, lastRefresh, lastKmsCheck]).toEqual(['k1', undefined, new Date(1_000)]);
  expect(healthWith({ canSeal: false, keys }).sealingKey).toBeUndefined();
  expect(healthWith({ keys: keys.slice(0, 1) }).sealingKey).toBeUndefined();
  const [created, activates, unsealsUntil] = [new Date(1), new Date(2), new Date(90_000)];
  expect(shown).toEqual([
    { id: 'k0', state: 'verify-only', held: false, created, activates, sealsUntil: new Date(3), unsealsUntil },
    { id: 'k1', state: 'active', held: true, created, activates, sealsUntil: new Date(5_000), unsealsUntil },
  ]);
});
