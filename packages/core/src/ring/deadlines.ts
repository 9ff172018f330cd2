import { type Clock, schedule } from '../clock.ts';

/**
 * Gives every call a deadline, and ends them all when the codec is closed. One listener for all calls: a composite
 * signal for each costs more than the rest of an uneventful refresh.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #closing: AbortSignal;
  readonly #live = new Set<AbortController>();

  constructor(clock: Clock, timeoutSeconds: number, closing: AbortSignal) {
    this.#clock = clock;
    this.#timeoutMs = timeoutSeconds * 1_000;
    this.#closing = closing;
    closing.addEventListener('abort', () => {
      for (const call of this.#live) call.abort();
    });
  }

  /**
   * Starts a call with a signal that aborts at the deadline, on close, and with `also`. Rejects with `late()` as soon
   * as it aborts, whether or not the call heeds it.
   */
  run<T>(start: (signal: AbortSignal) => Promise<T>, late: () => Error, also?: AbortSignal): Promise<T> {
    const call = new AbortController();
    const { signal } = call;
    const abort = (): void => call.abort();
    const cancel = schedule(this.#clock, abort, this.#timeoutMs);
    this.#live.add(call);
    also?.addEventListener('abort', abort, { once: true });
    if (this.#closing.aborted || also?.aborted === true) abort();
    return new Promise<T>((resolve, reject) => {
      const done = (): void => {
        cancel();
        this.#live.delete(call);
        also?.removeEventListener('abort', abort);
      };
      const onAbort = (): void => {
        done();
        reject(late());
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener('abort', onAbort, { once: true });
      // Somebody else's code may throw synchronously; that is a rejection like any other.
      Promise.resolve(signal)
        .then(start)
        .then(
          (value) => {
            done();
            resolve(value);
          },
          (error: unknown) => {
            done();
            reject(error);
          },
        );
    });
  }
}
