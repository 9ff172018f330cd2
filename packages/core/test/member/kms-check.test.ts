import { expect, test, vi } from 'vitest';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { KmsCheck } from '../../src/member/kms-check.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot, type RingKey } from '../../src/ring/snapshot.ts';
import { T0 } from '../support/certified.ts';
import { one, ownKey, three, two } from '../support/known-keys.ts';

const NOW = T0 + 7_200_000;
const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });

function setUp(keys: readonly RingKey[], checkedMsAgo?: number, isRefused = false) {
  const unwrap = vi.fn<(key: RingKey, held: unknown, options: object) => Promise<string>>(
    async ({ id }) => `a wrap of ${id}`,
  );
  const [passed, failed] = [vi.fn<() => void>(), vi.fn<(kind: string) => void>()];
  const last = checkedMsAgo === undefined ? undefined : { wallMs: NOW - checkedMsAgo, steadyMs: -checkedMsAgo };
  const limits = { lastKmsCheck: last, isRefused: () => isRefused, kmsCheckPassed: passed, failed };
  const now = { wallMs: NOW, steadyMs: 0 };
  const view = { snapshot: createSnapshot(keys), limits, now: () => now, wallMs: () => NOW };
  const random = (fill: Uint8Array): void => void fill.fill(0x80);
  const check = new KmsCheck({ policy, random, wraps: { check: unwrap }, view } as unknown as MemberParts);
  return { check, unwrap, passed, failed };
}

test.each<readonly [string, number, number | undefined, boolean, number]>([
  ['only once there is a key', 0, 5, false, Number.POSITIVE_INFINITY],
  ['at once before the first check', 1, undefined, false, 0],
  ['at once after a refusal', 1, 5, true, 0],
  // 900 s, less a tenth by this draw.
  ['15 minutes after the last check, less the jitter', 1, 10_000, false, 800_000],
  ['at once when it is overdue', 1, 900_000, false, 0],
])('a KMS check is due %s', (_, keys, checkedMsAgo, isRefused, expected) => {
  const { check } = setUp([ownKey(one)].slice(0, keys), checkedMsAgo, isRefused);
  expect(Math.round(check.msUntilDue() / 1_000) * 1_000).toBe(expected);
});

test.each<readonly [string, readonly RingKey[], string | undefined]>([
  ['the newest key', [ownKey(one), ownKey(two)], two.id],
  ['a key that is held', [ownKey(one), { ...ownKey(two), held: undefined }], one.id],
  ['a key that has not expired', [ownKey(one), { ...ownKey(two), opensUntil: NOW }], one.id],
  ['a key of this ring', [ownKey(one), { ...ownKey(two), isLeft: true }], one.id],
  ['a key of the ring that was left, if there is no other', [{ ...ownKey(three), isLeft: true }], three.id],
  ['no key, if none is held', [], undefined],
])('a KMS check unwraps %s', async (_, keys, expected) => {
  const { check, unwrap, passed } = setUp(keys);
  expect(await check.run({ foreground: false })).toBe(expected && `a wrap of ${expected}`);
  expect(unwrap.mock.calls.map(([{ id }]) => id)).toEqual([expected].filter((id) => id !== undefined));
  expect(passed).toHaveBeenCalledTimes(expected === undefined ? 0 : 1);
});

test('a failed KMS check counts as a failure only if the error comes from the KMS', async () => {
  const { check, unwrap, passed, failed } = setUp([ownKey(one)]);
  for (const error of [new KeyWrapperError('denied', { provider: 'kms', operation: 'unwrap' }), new RangeError('x')]) {
    unwrap.mockRejectedValueOnce(error);
    await expect(check.run({ foreground: false })).rejects.toBe(error);
  }
  expect([failed.mock.calls.map(([kind]) => kind), passed.mock.calls.length]).toEqual([['denied'], 0]);
});

test.each([
  ['in turn', false, false, false],
  ['at once if a caller waits', true, false, true],
  ['at once while refusals are counted, because slow ones must not delay the next check', false, true, true],
])('a KMS check calls several key wrappers %s', async (_, foreground, isRefused, hedged) => {
  const { check, unwrap } = setUp([ownKey(one)], 5, isRefused);
  await check.run({ foreground });
  expect(unwrap.mock.calls.map(([, , options]) => options)).toEqual([{ foreground, hedged }]);
});
