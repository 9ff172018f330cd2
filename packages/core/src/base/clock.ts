import { randomFillSync } from 'node:crypto';
import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Closing } from './closing.ts';

/** The source of time. Tests and the simulator replace it; everything else uses {@link systemClock}. */
export interface Clock {
  /** Milliseconds since the Unix epoch; may step. */
  wallMs(): number;
  /** Nanoseconds since an arbitrary fixed point; never steps back, and stops while the machine is suspended. */
  monotonicNs(): bigint;
  /**
   * Milliseconds since the machine started, including time in which it was suspended. Distinguishes a suspension from a
   * wrong clock if neither the KMS nor the store returns dates. Default: `os.uptime()` for the system's clock; unknown
   * for any other clock.
   */
  uptimeMs?(): number;
  /**
   * Runs `callback` once after `delayMs` milliseconds, and returns a function that cancels the timer, which must not
   * keep the process alive. Default: an unref'ed `setTimeout`.
   */
  schedule?(callback: () => void, delayMs: number): () => void;
}

/** Fills the array with unpredictable bytes, synchronously. */
export type RandomSource = (fill: Uint8Array) => void;

/** One reading of both clocks. */
export interface Moment {
  readonly wallMs: number;
  /** The monotonic clock in milliseconds, because comparing numbers takes a tenth of the time of comparing bigints. */
  readonly steadyMs: number;
}

/** The last reading of {@link systemClock}. */
let lastMoment: Moment = { wallMs: Number.NaN, steadyMs: Number.NaN };

export function momentOf(clock: Clock): Moment {
  const wallMs = clock.wallMs();
  if (clock !== systemClock) return { wallMs, steadyMs: Number(clock.monotonicNs()) / 1e6 };
  // The same system clock, read as a number: creating a bigint costs more than reading the time.
  lastMoment = { wallMs, steadyMs: performance.now() };
  return lastMoment;
}

/**
 * Like {@link momentOf}, but for unsealing a token: while the system's wall clock shows the same millisecond, its
 * monotonic clock is not read again. Each reading takes a fiftieth of the time of an unseal.
 */
export function coarseMomentOf(clock: Clock): Moment {
  return clock === systemClock && clock.wallMs() === lastMoment.wallMs ? lastMoment : momentOf(clock);
}

/** A future moment, in milliseconds of both clocks. */
export interface Deadline {
  readonly wallMs: number;
  readonly steadyMs: number;
}

/** Seconds from one moment to another by the monotonic clock: how long something took. */
export function secondsSince(began: Moment, now: Moment): number {
  return (now.steadyMs - began.steadyMs) / 1_000;
}

/** Milliseconds since `then`, by the clock that shows more, because monotonic time stops during a suspension. */
export function ageMs(then: Moment, now: Moment): number {
  return Math.max(now.steadyMs - then.steadyMs, now.wallMs - then.wallMs);
}

/** The deadline `ms` after a moment, or after another deadline. */
export function later(moment: Deadline, ms: number): Deadline {
  return { wallMs: moment.wallMs + ms, steadyMs: moment.steadyMs + ms };
}

/** Milliseconds until `deadline`, by the clock that shows less; 0 when it has passed. */
export function msUntil(deadline: Deadline, now: Moment): number {
  return Math.max(0, Math.min(deadline.wallMs - now.wallMs, deadline.steadyMs - now.steadyMs));
}

/** A deadline that passes as soon as either of two deadlines passes. */
export function earlier(a: Deadline, b: Deadline): Deadline {
  return { wallMs: Math.min(a.wallMs, b.wallMs), steadyMs: Math.min(a.steadyMs, b.steadyMs) };
}

/** Whether either clock has reached `deadline`. */
export function hasPassed(deadline: Deadline, now: Moment): boolean {
  return now.wallMs >= deadline.wallMs || now.steadyMs >= deadline.steadyMs;
}

export const systemClock: Clock = Object.freeze({
  wallMs: () => Date.now(),
  monotonicNs: () => process.hrtime.bigint(),
  uptimeMs: () => uptime() * 1_000,
});

export const systemRandom: RandomSource = (fill) => {
  randomFillSync(fill);
};

// setTimeout fires at once for any longer delay.
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** Runs `callback` with the clock's timer, or with an unref'ed timeout if the clock has none. */
export function schedule(clock: Clock, callback: () => void, delayMs: number): () => void {
  if (clock.schedule !== undefined) return clock.schedule(callback, delayMs);
  const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_TIMEOUT_MS));
  timer.unref();
  return () => clearTimeout(timer);
}

/** Resolves after `delayMs`; rejects with the signal's reason when it aborts first. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal | Closing): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const abort = () => {
      cancel();
      signal?.removeEventListener('abort', abort);
      reject(signal?.reason);
    };
    const cancel = schedule(
      clock,
      () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      },
      delayMs,
    );
    signal?.addEventListener('abort', abort);
  });
}

const drawn = new Uint32Array(1);
const drawnBytes = new Uint8Array(drawn.buffer);

/** A uniformly distributed number in [0, 1) with 32 random bits from the given source. */
export function uniform(random: RandomSource): number {
  random(drawnBytes);
  return (drawn[0] as number) / 2 ** 32;
}
