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
