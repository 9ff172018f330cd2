import { describe, expect, test } from 'vitest';
import { backoffMs, retry } from '../../src/base/retry.ts';

describe('backoffMs', () => {
  test('doubles from the first wait to the cap, with full jitter', () => {
    const backoff = { firstMs: 100, capMs: 1_000 };
    expect([1, 2, 3, 4, 5, 2_000].map((failures) => backoffMs(backoff, failures, 1))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
    expect([0, 0.25, 0.5].map((uniform) => backoffMs(backoff, 2, uniform))).toEqual([0, 50, 100]);
  });

  test('a backoff is never shorter than the minimum share of the longest wait', () => {
    const backoff = { firstMs: 100, capMs: 1_000, leastShare: 0.5 };
    expect([0, 0.5, 1].map((uniform) => backoffMs(backoff, 2, uniform))).toEqual([100, 150, 200]);
  });

  test('a backoff is never shorter than leastMs, even if the cap is below leastMs', () => {
    expect([0, 0.5, 1].map((uniform) => backoffMs({ firstMs: 100, capMs: 400, leastMs: 50 }, 3, uniform))).toEqual([
      50, 225, 400,
    ]);
    expect([0, 1].map((uniform) => backoffMs({ firstMs: 100, capMs: 400, leastMs: 500 }, 9, uniform))).toEqual([
      500, 500,
    ]);
  });
});

describe('retry', () => {
  test('makes attempts until one succeeds, and waits between them as the rules require', async () => {
    const waits: number[] = [];
    const asked: [unknown, number][] = [];
    let attempts = 0;
    const attempt = async (): Promise<string> => {
      attempts += 1;
      if (attempts < 3) throw new Error(`failure ${attempts}`);
      return 'answer';
    };
    const answer = await retry(attempt, {
      waitMs: (error, failures) => {
        asked.push([String(error), failures]);
        return failures * 10;
      },
      pause: async (delayMs) => void waits.push(delayMs),
    });
    expect([answer, attempts, waits]).toEqual(['answer', 3, [10, 20]]);
    expect(asked).toEqual([
      ['Error: failure 1', 1],
      ['Error: failure 2', 2],
    ]);
  });

  test('throws a failure that the rules declare final', async () => {
    const failing = async (): Promise<never> => Promise.reject(new Error('final'));
    await expect(retry(failing, { waitMs: () => undefined, pause: async () => undefined })).rejects.toThrow('final');
  });

  test('a retry whose pause is interrupted rejects with the error of the pause', async () => {
    const failing = async (): Promise<never> => Promise.reject(new Error('failure'));
    const pause = async (): Promise<never> => Promise.reject(new Error('closed'));
    await expect(retry(failing, { waitMs: () => 1, pause })).rejects.toThrow('closed');
  });
});
