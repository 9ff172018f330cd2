import { expect, test } from 'vitest';
import { CorruptWraps } from '../../src/kms/corrupt-wraps.ts';
import { entryBy, testKey, wrapBy } from '../support/certified.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('a corrupt wrap is remembered for an hour, for its entry and its signature only', async () => {
  const clock = new VirtualClock('2026-11-21T03:00:00Z');
  const corrupt = new CorruptWraps(clock);
  const key = testKey(1);
  const entry = entryBy(key, []);
  const [unsigned, signed, other] = [undefined, Buffer.of(1), Buffer.of(2)].map((signature) =>
    wrapBy(key, signature && { signature }),
  ) as [ReturnType<typeof wrapBy>, ReturnType<typeof wrapBy>, ReturnType<typeof wrapBy>];
  corrupt.note(entry, signed);
  expect([unsigned, signed, other].map((wrap) => corrupt.has(entry, wrap))).toEqual([false, true, false]);
  expect(corrupt.has({ ...entry, created: entry.created - 1_000 }, signed)).toBe(false);
  corrupt.note(entry, unsigned);
  await clock.advance(3_599);
  expect(corrupt.has(entry, unsigned)).toBe(true);
  await clock.advance(1);
  expect(corrupt.has(entry, unsigned)).toBe(false);
});
