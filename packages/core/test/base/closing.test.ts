import { expect, test, vi } from 'vitest';
import { Closing } from '../../src/base/closing.ts';
import { readKernelEntropy } from '../../src/base/kernel-entropy.ts';
import { NewestIds } from '../../src/base/newest-ids.ts';

test('a closing calls each listener once with the first reason, except those that were removed', () => {
  const closing = new Closing();
  const [stays, leaves] = [vi.fn<() => void>(), vi.fn<() => void>()];
  for (const listener of [stays, leaves]) closing.addEventListener('abort', listener);
  closing.removeEventListener('abort', leaves);
  closing.throwIfAborted();
  expect([closing.aborted, closing.reason]).toEqual([false, undefined]);
  for (const reason of ['first', 'second']) closing.abort(reason);
  expect([stays.mock.calls.length, leaves.mock.calls.length]).toEqual([1, 0]);
  expect([closing.aborted, closing.reason]).toEqual([true, 'first']);
  expect(() => closing.throwIfAborted()).toThrow('first');
});

test('the newest ids are remembered up to the limit', () => {
  const ids = new NewestIds(2);
  for (const id of ['a', 'b', 'b', 'c']) ids.add(id);
  expect([...ids]).toEqual(['b', 'c']);
});

test('the random device of the kernel returns 32 bytes, which differ each time', async () => {
  const [one, other] = [await readKernelEntropy(), await readKernelEntropy()];
  expect([one.length, other.length]).toEqual([32, 32]);
  expect(one).not.toEqual(other);
  expect(one).not.toEqual(new Uint8Array(32));
});
