import { ageMs, type Clock, momentOf, schedule } from './clock.ts';
import type { Closing } from './closing.ts';

/** Why a call was abandoned: its deadline passed, its owner was closed, or the caller aborted it. */
export type GivenUp = 'late' | 'closed' | 'aborted';

/** Limits of one call. */
export interface CallLimits<T> {
  /** A limit for a caller that has less time than a call may take. */
  readonly atMostMs?: number;
  /** The caller's signal, if it has one. */
  readonly signal?: AbortSignal | undefined;
  /** Receives an answer that came too late to be returned, so that a key in it can be overwritten. Must not throw. */
  readonly discard?: ((answer: T) => void) | undefined;
}

/**
 * Gives every call a deadline, and ends all calls when their owner is closed. A single listener serves all
 * calls: a listener on the signal of each call would cost more than the rest of an uneventful refresh.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #closing: Closing;
  readonly #live = new Set<() => void>();

  constructor(clock: Clock, timeoutMs: number, closing: Closing) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#closing = closing;
    closing.addEventListener('abort', () => {
      for (const close of this.#live) close();
    });
  }

  /**
   * Starts a call with a signal that aborts as soon as the answer is no longer awaited. Rejects with `errorOf` at the
   * deadline, on close and when the caller aborts, whether or not the call respects its signal.
   */
  run<T>(
    start: (signal: AbortSignal) => Promise<T>,
    errorOf: (reason: GivenUp) => Error,
    { atMostMs = Number.POSITIVE_INFINITY, signal, discard }: CallLimits<T> = {},
  ): Promise<T> {
    if (this.#closing.aborted) return Promise.reject(errorOf('closed'));
    if (signal?.aborted === true) return Promise.reject(errorOf('aborted'));
    return new Promise<T>((resolve, reject) => {
      const call = new AbortController();
      let isOver = false;
      const end = (): void => {
        isOver = true;
        cancel();
        this.#live.delete(close);
        signal?.removeEventListener('abort', abort);
      };
      const fail = (error: unknown): void => {
        end();
        reject(error);
        call.abort();
      };
      const close = (): void => fail(errorOf('closed'));
      const abort = (): void => fail(errorOf('aborted'));
      const waitMs = Math.min(this.#timeoutMs, atMostMs);
      const cancel = schedule(this.#clock, () => fail(errorOf('late')), waitMs);
      this.#live.add(close);
      signal?.addEventListener('abort', abort);
      const asked = momentOf(this.#clock);
      started(start, call.signal).then((answer) => {
        // When a stopped process resumes, an answer may arrive before the overdue timer fires.
        const isLate = isOver || ageMs(asked, momentOf(this.#clock)) > waitMs;
        if (!isOver && isLate) fail(errorOf('late'));
        if (isLate) discard?.(answer);
        else {
          end();
          resolve(answer);
        }
      }, fail);
    });
  }
}

/** Starts a call as a promise: foreign code may throw synchronously, or return a thenable that is not a promise. */
export function started<T>(start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return Promise.resolve(start(signal));
  } catch (error) {
    return Promise.reject(error);
  }
}
