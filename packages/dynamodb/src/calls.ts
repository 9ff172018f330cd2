import { classify, type Failure } from './error-table.ts';

/** What a call came to. */
export type Outcome<T> = { readonly answer: T } | { readonly failure: Failure };

const TIMED_OUT: Failure = Object.freeze({ kind: 'unavailable', detail: 'no answer within timeoutSeconds' });
const ABORTED: Failure = Object.freeze({ kind: 'unavailable', detail: 'aborted by the caller' });
const CLOSED: Failure = Object.freeze({ kind: 'unavailable', detail: 'the store is closed' });

/** The calls of one store: each has a deadline, and `close` ends those that are under way. */
export class Calls {
  readonly #timeoutMs: number;
  readonly #underWay = new Set<() => void>();
  #isClosed = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Runs one call. Never rejects, and ends in time whether or not `call` heeds its signal, which aborts whenever there
   * is no answer: the socket is then of no use to anybody, even in the middle of a body.
   */
  run<T>(signal: AbortSignal | undefined, call: (signal: AbortSignal) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    if (this.#isClosed) return Promise.resolve({ failure: CLOSED });
    if (signal?.aborted === true) return Promise.resolve({ failure: ABORTED });
    return new Promise((resolve) => {
      const own = new AbortController();
      const end = (outcome: Outcome<T>): void => {
        clearTimeout(deadline);
        signal?.removeEventListener('abort', onAbort);
        this.#underWay.delete(onClose);
        resolve(outcome);
        if ('failure' in outcome) own.abort();
      };
      const onAbort = (): void => end({ failure: ABORTED });
      const onClose = (): void => end({ failure: CLOSED });
      const deadline = setTimeout(() => end({ failure: TIMED_OUT }), this.#timeoutMs);
      deadline.unref();
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#underWay.add(onClose);
      call(own.signal).then(end, (error: unknown) => end({ failure: classify(error) }));
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const onClose of this.#underWay) onClose();
  }
}
