import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  type Clock,
  coarseMomentOf,
  momentOf,
  msUntil,
  pause,
  systemClock,
  systemRandom,
} from '../../src/base/clock.ts';
import { Closing } from '../../src/base/closing.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

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
  test('the moment of a token has the times of both system clocks, the monotonic one in milliseconds', () => {
    shown(1_795_000_000_000, 12.5);
    expect(momentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 12.5 });
    expect(coarseMomentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 12.5 });
  });

  test('unseals read the monotonic clock at most once per millisecond of the wall clock', () => {
    const { wall, steady } = shown(1_795_000_000_000, 100);
    momentOf(systemClock);
    steady.mockReturnValue(100.9);
    expect(coarseMomentOf(systemClock)).toEqual({ wallMs: 1_795_000_000_000, steadyMs: 100 });
    for (const [wallMs, steadyMs] of [
      [1_795_000_000_001, 101],
      // The clock was stepped back, and the machine was suspended.
      [1_794_999_000_000, 101.1],
      [1_795_009_000_000, 101.2],
    ] as const) {
      wall.mockReturnValue(wallMs);
      steady.mockReturnValue(steadyMs);
      expect(coarseMomentOf(systemClock)).toEqual({ wallMs, steadyMs });
    }
  });

  test('advances even if the wall clock stops, because each precise reading of the clocks updates it', () => {
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

test('the system clock shows the time of this machine, and the system’s random source returns random bytes', () => {
  expect(Math.abs(systemClock.wallMs() - Date.now())).toBeLessThan(1_000);
  expect(Math.abs(Number(systemClock.monotonicNs() - process.hrtime.bigint()))).toBeLessThan(1e9);
  expect(Math.abs((systemClock.uptimeMs?.() ?? 0) - uptime() * 1_000)).toBeLessThan(1_000);
  const bytes = new Uint8Array(32);
  systemRandom(bytes);
  expect(bytes).not.toEqual(new Uint8Array(32));
});

test('the time to a deadline is the shorter of the times by the two clocks, and 0 once the deadline has passed', () => {
  const now = { wallMs: 100, steadyMs: 10 };
  expect(msUntil({ wallMs: 130, steadyMs: 30 }, now)).toBe(20);
  expect(msUntil({ wallMs: 105, steadyMs: 30 }, now)).toBe(5);
  expect(msUntil({ wallMs: 90, steadyMs: 30 }, now)).toBe(0);
});

describe('a pause', () => {
  /** A signal that counts its listeners. */
  function listening(signal: AbortSignal | Closing): Set<unknown> {
    const listeners = new Set<unknown>();
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (name: 'abort', listener: () => void) => add(name, (listeners.add(listener), listener));
    signal.removeEventListener = (name: 'abort', listener: () => void) =>
      remove(name, (name === 'abort' && listeners.delete(listener), listener));
    return listeners;
  }

  test.each<
    readonly [string, () => { readonly signal: AbortSignal | Closing; readonly abort: (reason: unknown) => void }]
  >([
    [
      'an AbortSignal',
      () => {
        const controller = new AbortController();
        return { signal: controller.signal, abort: (reason) => controller.abort(reason) };
      },
    ],
    [
      'a Closing',
      () => {
        const closing = new Closing();
        return { signal: closing, abort: (reason) => closing.abort(reason) };
      },
    ],
  ])('a pause ends when its time is over or %s aborts, and leaves neither a timer nor a listener', async (_, make) => {
    const clock = new VirtualClock('2026-11-21T03:00:00Z');
    const cancelled = vi.fn<() => void>();
    const counting: Clock = {
      wallMs: () => clock.wallMs(),
      monotonicNs: () => clock.monotonicNs(),
      schedule: (callback, delayMs) => {
        const cancel = clock.schedule(callback, delayMs);
        return () => {
          cancelled();
          cancel();
        };
      },
    };
    const { signal, abort } = make();
    const listeners = listening(signal);
    const ended = pause(counting, 500, signal);
    expect(listeners.size).toBe(1);
    await clock.advance(0.5);
    await ended;
    expect([listeners.size, cancelled.mock.calls.length]).toEqual([0, 0]);
    const aborted = Promise.allSettled([pause(counting, 500, signal)]);
    abort('reason');
    const later = Promise.allSettled([pause(counting, 500, signal)]);
    await clock.advance(0.5);
    const rejected = [{ status: 'rejected', reason: 'reason' }];
    expect([await aborted, await later]).toEqual([rejected, rejected]);
    expect([listeners.size, cancelled.mock.calls.length]).toEqual([0, 1]);
  });

  test('a pause without a signal ends when its time is over', async () => {
    const clock = new VirtualClock('2026-11-21T03:00:00Z');
    const ended = pause(clock, 500);
    await clock.advance(0.5);
    expect(await ended).toBeUndefined();
  });
});
