import { describe, expect, test } from 'vitest';
import { type RingPolicy, resolvePolicy } from '../../src/ring/policy.ts';

const remote = { storeKind: 'redis', createNow: false };
const resolve = (given: Partial<RingPolicy>) => resolvePolicy(given, remote);

describe('the times that depend on no other time', () => {
  test.each([
    ['backoffCapSeconds', 0.05, 3_600],
    ['createAfterSeconds', 0, 86_400],
    ['kmsTimeoutSeconds', 0.01, 300],
    ['startTimeoutSeconds', 0.01, 86_400],
    ['keyVersionEverySeconds', 0, 366 * 86_400],
    ['missRefreshSeconds', 0, 86_400],
  ] as const)('%s may be from %d to %d', (name, least, most) => {
    for (const seconds of [least, (least + most) / 2, most]) {
      const given = { createAfterSeconds: 360, [name]: seconds };
      expect(resolve(given)).toEqual({ ...resolve({}), ...given });
    }
    for (const seconds of [least - 0.001, most + 0.001]) {
      expect(() => resolve({ [name]: seconds })).toThrow(
        new RegExp(`policy: ${name} must be from ${least} to ${most}`),
      );
    }
  });
});

test('a ring is created after an absence of refreshEvery plus backoffCap, but at once in memory or on request', () => {
  const createAfter = (storeKind: string, createNow: boolean) =>
    resolvePolicy({ refreshEverySeconds: 100, backoffCapSeconds: 30 }, { storeKind, createNow }).createAfterSeconds;
  expect(['redis', 'file', 'memory'].map((kind) => createAfter(kind, false))).toEqual([130, 130, 0]);
  expect(['redis', 'file', 'memory'].map((kind) => createAfter(kind, true))).toEqual([0, 0, 0]);
});

test('a policy that needs more keys than a ring may have is refused with an error that names the times and the number of keys (F23)', () => {
  const day = 86_400;
  expect(() => resolve({ tokenLifetimeSeconds: 60 * day })).toThrow(
    /^policy: tokenLifetimeSeconds \(5184000\) with rotateEverySeconds \(86400\) would need 71 keys .* more than 64$/,
  );
});
