import { ageMs, type Clock, momentOf, schedule } from './clock.ts';
import type { Closing } from './closing.ts';

/**
 * Gives every call a deadline, and ends them all when the codec is closed. One listener for all calls, and none of our
 * own on a call's signal: those cost more than the rest of an uneventful refresh.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #closing: Closing;
  readonly #live = new Set<() => void>();

  constructor(clock: Clock, timeoutSeconds: number, closing: Closing) {
    this.#clock = clock;
    this.#timeoutMs = timeoutSeconds * 1_000;
    this.#closing = closing;
    closing.addEventListener('abort', () => {
      for (const abort of this.#live) abort();
    });
  }

  /**
   * Starts a call with a signal that aborts at the deadline and on close. Rejects with `late()` as soon
   * as it aborts, whether or not the call heeds it. A caller with less time gives `atMostMs`.
   */
  run<T>(
    start: (signal: AbortSignal) => Promise<T>,
    late: () => Error,
    atMostMs: number = Number.POSITIVE_INFINITY,
  ): Promise<T> {
    if (this.#closing.aborted) return Promise.reject(late());
    return new Promise<T>((resolve, reject) => {
      const call = new AbortController();
      const end = (): void => {
        cancel();
        this.#live.delete(abort);
      };
      const abort = (): void => {
        end();
        reject(late());
        call.abort();
      };
      const waitMs = Math.min(this.#timeoutMs, atMostMs);
      const cancel = schedule(this.#clock, abort, waitMs);
      this.#live.add(abort);
      const asked = momentOf(this.#clock);
      started(start, call.signal).then(
        (value) => {
          end();
          // In a process that was stopped, an answer may come before the timer that is overdue.
          if (ageMs(asked, momentOf(this.#clock)) > waitMs) reject(late());
          else resolve(value);
        },
        (error: unknown) => {
          end();
          reject(error);
        },
      );
    });
  }
}

/** Somebody else's code may throw synchronously, or return what is only like a promise. */
export function started<T>(start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return Promise.resolve(start(signal));
  } catch (error) {
    return Promise.reject(error);
  }
}
