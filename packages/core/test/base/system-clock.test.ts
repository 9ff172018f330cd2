import { performance } from 'node:perf_hooks';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Clock, coarseMomentOf, momentOf, systemClock } from '../../src/base/clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** A wall clock and a monotonic one that the test sets. */
function shown(wallMs: number, steadyMs: number) {
  const wall = vi.spyOn(Date, 'now').mockReturnValue(wallMs);
  const steady = vi.spyOn(performance, 'now').mockReturnValue(steadyMs);
  return { wall, steady };
}

describe('the moment of a token (F13)', () => {
  test('the moment of a token has both clocks of the system, the monotonic one in milliseconds', () => {
    shown(1_795_000_000_000, 12.5);
    expect(momentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 12.5 });
    expect(coarseMomentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 12.5 });
  });

  test('an unseal reads the monotonic clock once for each millisecond of the wall clock', () => {
    const { wall, steady } = shown(1_795_000_000_000, 100);
    momentOf(systemClock);
    steady.mockReturnValue(100.9);
    expect(coarseMomentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 100 });
    for (const [wallMs, steadyMs] of [
      [1_795_000_000_001, 101],
      // Stepped back, and suspended.
      [1_794_999_000_000, 101.1],
      [1_795_009_000_000, 101.2],
    ] as const) {
      wall.mockReturnValue(wallMs);
      steady.mockReturnValue(steadyMs);
      expect(coarseMomentOf(systemClock)).toEqual({ wallMs, steadyMs });
    }
  });

  test('continues if the wall clock stops, because every other read of the time counts', () => {
    const { steady } = shown(1_795_000_000_000, 100);
    coarseMomentOf(systemClock);
    steady.mockReturnValue(600_000);
    momentOf(systemClock);
    steady.mockReturnValue(600_001);
    expect(coarseMomentOf(systemClock).steadyMs).toBe(600_000);
  });

  test('a custom clock is read for every moment', () => {
    let ns = 0n;
    const clock: Clock = { wallMs: () => 5, monotonicNs: () => (ns += 1_000_000n) };
    expect([coarseMomentOf(clock), coarseMomentOf(clock), momentOf(clock)]).toEqual([
      { wallMs: 5, steadyMs: 1 },
      { wallMs: 5, steadyMs: 2 },
      { wallMs: 5, steadyMs: 3 },
    ]);
  });
});
