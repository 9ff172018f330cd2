import { randomFillSync } from 'node:crypto';

/** Where time comes from. Replaced in tests and in the simulator; everything else uses {@link systemClock}. */
export interface Clock {
  /** Milliseconds since the Unix epoch; may step. */
  wallMs(): number;
  /** Nanoseconds since any fixed point; never steps back, and stands still while the machine is suspended. */
  monotonicNs(): bigint;
  /**
   * Runs `callback` once after `delayMs` milliseconds and returns what cancels it. Must not keep the process alive.
   * Default: an unref'ed `setTimeout`.
   */
  schedule?(callback: () => void, delayMs: number): () => void;
}

/** Fills the array with unpredictable bytes, synchronously. */
export type RandomSource = (fill: Uint8Array) => void;

/** One reading of both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicNs: bigint;
}

export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), monotonicNs: clock.monotonicNs() };
}

/** Milliseconds since `then`, by whichever clock says more: monotonic time stands still in a suspended machine. */
export function ageMs(then: Moment, now: Moment): number {
  return Math.max(Number(now.monotonicNs - then.monotonicNs) / 1e6, now.wallMs - then.wallMs);
}

/** The moment `ms` later, by both clocks. */
export function later(moment: Moment, ms: number): Moment {
  return { wallMs: moment.wallMs + ms, monotonicNs: moment.monotonicNs + BigInt(Math.round(ms * 1e6)) };
}

/** Whether either clock has reached `deadline`. */
export function hasPassed(deadline: Moment, now: Moment): boolean {
  return now.monotonicNs >= deadline.monotonicNs || now.wallMs >= deadline.wallMs;
}

export const systemClock: Clock = Object.freeze({
  wallMs: () => Date.now(),
  monotonicNs: () => process.hrtime.bigint(),
});

export const systemRandom: RandomSource = (fill) => {
  randomFillSync(fill);
};

// setTimeout fires at once for anything longer than this.
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** Runs `callback` on the clock's timer, or on an unref'ed timeout where the clock brings none. */
export function schedule(clock: Clock, callback: () => void, delayMs: number): () => void {
  if (clock.schedule !== undefined) return clock.schedule(callback, delayMs);
  const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_TIMEOUT_MS));
  timer.unref();
  return () => clearTimeout(timer);
}

/** Resolves after `delayMs`; rejects with the signal's reason when it aborts first. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const abort = () => {
      cancel();
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
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** A uniform number in [0, 1) with 32 bits, from the injected source. */
export function uniform(random: RandomSource): number {
  const bytes = new Uint8Array(4);
  random(bytes);
  return new DataView(bytes.buffer).getUint32(0) / 2 ** 32;
}
