import { beforeAll, describe, expect, test } from 'vitest';
import { type GrowthReport, judgeGrowth, measureGrowth } from './growth.ts';
import { slopeOf } from './growth-slope.ts';

const ROUNDS = 6;
let report: GrowthReport;
let told: number[];
beforeAll(async () => {
  told = [];
  report = await measureGrowth(
    { keys: [1, 8], salts: [1, 20], rounds: ROUNDS, tokens: 1_000, warmUp: 500, samples: 10 },
    (done) => told.push(done),
  );
});

describe('the costs of a growing ring and fleet', () => {
  test('every ring size is measured with every number of other processes, without a KMS call', () => {
    expect(report.opening.map(({ keys, salts, kmsCalls }) => [keys, salts, kmsCalls])).toEqual([
      [1, 1, 0],
      [1, 20, 0],
      [8, 1, 0],
      [8, 20, 0],
    ]);
    expect(report.rings.map(({ keys }) => keys)).toEqual([1, 8]);
    expect(told.at(-1)).toBe(1);
  });

  test('a key takes less than 50 kB of memory, and a salt less than 10 kB', () => {
    const { perKey, perSalt } = report.memory;
    for (const bytes of [perKey, perSalt]) expect(bytes).toBeGreaterThan(100);
    expect(perKey).toBeLessThan(50_000);
    expect(perSalt).toBeLessThan(10_000);
    expect(report.heap.samples).toHaveLength(10);
  });

  test('each limit can fail, and is named when it does', () => {
    const level = { median: 1, low: 1, high: 1 };
    const fine: GrowthReport = {
      ...report,
      opening: report.opening.map((cost) => ({ ...cost, firstTimesWarm: level, nextTimesBare: level })),
      heap: { ...report.heap, perMillionTokens: { median: 0, low: -1, high: 1 } },
    };
    expect(judgeGrowth(fine).filter(({ met }) => !met)).toEqual([]);
    const [one, many, ...others] = fine.opening;
    if (one === undefined || many === undefined) throw new Error('nothing was opened');
    const slow = { ...level, median: 2.51 };
    expect(judgeGrowth({ ...fine, opening: [{ ...one, firstTimesWarm: slow }, many] })).toEqual(
      judgeGrowth({ ...fine, opening: [one, many] }),
    );
    const broken: readonly GrowthReport[] = [
      { ...fine, opening: [one, { ...many, firstTimesWarm: slow }, ...others] },
      { ...fine, opening: [{ ...one, nextTimesBare: { ...level, median: 1.11 } }, many, ...others] },
      { ...fine, opening: [{ ...one, kmsCalls: 1 }, many, ...others] },
      { ...fine, heap: { ...fine.heap, perMillionTokens: { median: 2, low: 1, high: 3 } } },
    ];
    const laws = broken.map((bad) => judgeGrowth(bad).filter(({ met }) => !met));
    expect(laws.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
    expect(new Set(laws.map(([verdict]) => verdict?.law)).size).toBe(broken.length);
  });
});

describe('a slope', () => {
  const noise = [3, -1, 4, -1, -5, 9, -2, 6, -5, 3, 5, -8, 9, -7, 9, -3, 2, 3, -8, 4];

  test('the bounds of a slope include zero for pure noise, but not for noise on a rising line', () => {
    expect(slopeOf(noise).low).toBeLessThan(0);
    expect(slopeOf(noise).high).toBeGreaterThan(0);
    const rising = slopeOf(noise.map((value, i) => value + 3 * i));
    expect(rising.low).toBeGreaterThan(0);
    expect(rising.low).toBeLessThan(3);
    expect(rising.high).toBeGreaterThan(3);
  });

  test('an outlier does not change the slope of a straight line', () => {
    const line = Array.from({ length: 30 }, (_, i) => (i === 7 ? 1e6 : 2 * i));
    expect(slopeOf(line)).toEqual({ median: 2, low: 2, high: 2 });
  });

  test('is rejected if there are only nine values', () => {
    expect(() => slopeOf(noise.slice(0, 9))).toThrow(RangeError);
  });
});
