import { expect, test } from 'vitest';
import { judgeBoundary, measureBoundary } from './boundary.ts';

test('flows with and without the boundary complete, and both are timed', async () => {
  const report = await measureBoundary({ turns: 6 });
  for (const { low, median, high } of Object.values(report)) {
    expect(low).toBeGreaterThan(0);
    expect(low).toBeLessThanOrEqual(median);
    expect(median).toBeLessThanOrEqual(high);
  }
});

test('the verdict rejects boundary results beyond their limits', () => {
  const of = (median: number) => ({ median, low: median, high: median });
  const verdicts = (ratio: number, stateless: number) =>
    judgeBoundary({ bare: of(1), guarded: of(1), ratio: of(ratio), busyRatio: of(1), statelessRatio: of(stateless) });
  expect(verdicts(1.15, 1.05).map(({ met }) => met)).toEqual([true, true]);
  expect(verdicts(1.16, 1.05).map(({ met }) => met)).toEqual([false, true]);
  expect(verdicts(1.15, 1.06).map(({ met }) => met)).toEqual([true, false]);
});
