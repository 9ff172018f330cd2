import { classify, type Failure } from './error-table.ts';

/** An answer that has not been looked at yet, or why there is none. */
export type Outcome = { readonly answer: unknown } | { readonly failure: Failure };

const TIMED_OUT: Failure = Object.freeze({ kind: 'unavailable', detail: 'no answer within timeoutSeconds' });
const ABORTED: Failure = Object.freeze({ kind: 'unavailable', detail: 'aborted by the caller' });

/**
 * Runs one call. Never rejects, and ends in time whether or not `run` heeds the signal it is given, which aborts when
 * nobody waits any more.
 */
export function withDeadline(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<unknown>,
): Promise<Outcome> {
  if (signal?.aborted === true) return Promise.resolve({ failure: ABORTED });
  return new Promise((resolve) => {
    const own = new AbortController();
    const end = (outcome: Outcome): void => {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', abort);
      resolve(outcome);
    };
    const stop = (failure: Failure): void => {
      end({ failure });
      own.abort();
    };
    const abort = (): void => stop(ABORTED);
    const deadline = setTimeout(() => stop(TIMED_OUT), timeoutMs);
    deadline.unref();
    signal?.addEventListener('abort', abort, { once: true });
    run(own.signal).then(
      (answer) => end({ answer }),
      (error: unknown) => end({ failure: classify(error) }),
    );
  });
}
