import { types } from 'node:util';
import { type ClassifiedError, classify } from './error-table.ts';

/** Longest pause after the first failure, and after any, in milliseconds. */
const BACKOFF_BASE_MS = 100;
const BACKOFF_CAP_MS = 2000;

/** Bounds of one call. */
export interface AttemptLimits {
  /** Milliseconds for each attempt. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

/** An answer that has not been looked at yet, or why there is none. */
export type Outcome = { readonly answer: unknown } | { readonly failure: ClassifiedError; readonly attempts: number };

const TIMED_OUT: ClassifiedError = Object.freeze({ kind: 'unavailable', hint: 'no answer within timeoutSeconds' });
const ABORTED: ClassifiedError = Object.freeze({ kind: 'unavailable', hint: 'aborted by the caller' });

/**
 * Sends until there is an answer, a failure that a repetition cannot mend, the last attempt, or an abort.
 * Never rejects, and ends in time whether or not `send` heeds its signal.
 */
export async function attempt(
  send: (signal: AbortSignal) => Promise<unknown>,
  limits: AttemptLimits,
  signal: AbortSignal,
): Promise<Outcome> {
  for (let attempts = 1; ; attempts++) {
    if (signal.aborted) return { failure: ABORTED, attempts: attempts - 1 };
    const outcome = await attemptOnce(send, limits.timeoutMs, signal);
    if ('answer' in outcome) return outcome;
    const mayPass = outcome.failure.kind === 'throttled' || outcome.failure.kind === 'unavailable';
    if (!mayPass || signal.aborted || attempts >= limits.maxAttempts) return { failure: outcome.failure, attempts };
    await pause(backoffMs(attempts, Math.random()), signal);
  }
}

/**
 * Milliseconds to wait after so many failures, for `uniform` in [0, 1): full jitter, so that a fleet that was throttled
 * together does not come back together (AWS Architecture Blog, "Exponential Backoff And Jitter").
 */
export function backoffMs(failures: number, uniform: number): number {
  return uniform * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** (failures - 1));
}

function attemptOnce(
  send: (signal: AbortSignal) => Promise<unknown>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ readonly answer: unknown } | { readonly failure: ClassifiedError }> {
  return new Promise((resolve) => {
    const own = new AbortController();
    const stop = (failure: ClassifiedError): void => {
      release();
      resolve({ failure });
      own.abort();
    };
    const onAbort = (): void => stop(ABORTED);
    const deadline = setTimeout(() => stop(TIMED_OUT), timeoutMs);
    deadline.unref();
    signal.addEventListener('abort', onAbort, { once: true });
    const release = (): void => {
      clearTimeout(deadline);
      signal.removeEventListener('abort', onAbort);
    };

    const settle = async (): Promise<void> => {
      try {
        const answer = await send(own.signal);
        // Too late for anybody to take the key out of it.
        if (own.signal.aborted) overwritePlaintext(answer);
        else resolve({ answer });
      } catch (error) {
        resolve({ failure: classify(error) });
      } finally {
        release();
      }
    };
    void settle();
  });
}

/** Overwrites the key in an answer of the SDK, where there is one. */
export function overwritePlaintext(answer: unknown): void {
  if (typeof answer === 'object' && answer !== null && 'Plaintext' in answer && types.isUint8Array(answer.Plaintext)) {
    answer.Plaintext.fill(0);
  }
}

// Keeps the process alive, unlike a deadline: between two attempts no socket does, and a command-line run whose call
// is still under way would end in silence.
function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal.addEventListener('abort', done, { once: true });
  });
}
