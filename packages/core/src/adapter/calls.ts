import { systemClock } from '../base/clock.ts';
import { Closing } from '../base/closing.ts';
import { Deadlines, type GivenUp } from '../base/deadlines.ts';
import { type Backoff, backoffMs, retry } from '../base/retry.ts';
import type { ServiceFailure, StoreFailure } from './failures.ts';

/** The pauses between the attempts of a call. */
export const ATTEMPTS: Backoff = { firstMs: 100, capMs: 2_000 };

/** The result of one attempt. */
export type Outcome<T, Failure> = { readonly answer: T } | { readonly failure: Failure };

/** The result of a call; for a failure, with the number of attempts. */
export type CallOutcome<T, Failure> = { readonly answer: T } | { readonly failure: Failure; readonly attempts: number };

/** Settings of {@link Calls}. */
export interface CallsOptions<Failure> {
  /** Longest wait for each attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** The name that messages use for the object that {@link Calls.close} closes, such as `store`. */
  readonly owner: string;
  /** Classifies a rejection by the vendor's SDK. */
  readonly classify: (error: unknown) => Failure;
  /** The failure of an abandoned call, with a fixed reason. */
  readonly unavailable: (reason: string) => Failure;
  /** When to repeat a failed call. Default: never. */
  readonly retries?: RetryOptions<Failure>;
}

/** When a call is repeated. */
export interface RetryOptions<Failure> {
  /** Attempts per call, including the first. */
  readonly maxAttempts: number;
  /** Whether another attempt may succeed after `attempts` attempts. */
  readonly mayPass: (failure: Failure, attempts: number) => boolean;
}

/** Carries a failure through the retries; never thrown to a caller. */
class Failed<Failure> extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super();
    this.failure = failure;
  }
}

/**
 * The calls of one store or key wrapper. Each attempt has a deadline, attempts are repeated within bounds, and `close`
 * ends all calls in progress. See {@link storeCalls} and {@link keyWrapperCalls}.
 */
export class Calls<Failure> {
  readonly #options: CallsOptions<Failure>;
  readonly #closing = new Closing();
  readonly #deadlines: Deadlines;

  constructor(options: CallsOptions<Failure>) {
    this.#options = options;
    this.#deadlines = new Deadlines(systemClock, options.timeoutMs, this.#closing);
  }

  /**
   * Makes one call, which ends with an answer, a failure that a retry cannot fix, the last attempt, an abort or
   * {@link Calls.close}. Never rejects, and ends in time whether or not `call` respects its signal. The signal aborts
   * whenever the call ends without an answer, so that the socket is released even in the middle of a body.
   *
   * @param signal - The caller's signal.
   * @param call - Makes one attempt; any error that it throws is classified.
   * @param discard - Receives an answer that came too late to be returned, so that a key in it can be overwritten. Must
   * not throw.
   */
  async run<T>(
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Outcome<T, Failure>>,
    discard?: (answer: T) => void,
  ): Promise<CallOutcome<T, Failure>> {
    let attempts = 0;
    const attempt = (): Promise<T> => {
      if (!this.#isEnded(signal)) attempts += 1;
      return this.#attempt(signal, call, discard);
    };
    try {
      const answer = await retry(attempt, {
        waitMs: (error) => {
          // An abort is not a failure of the service, so `mayPass` is not called for it.
          if (this.#isEnded(signal) || !(error instanceof Failed)) return undefined;
          const mayRepeat = this.#mayRepeat(error.failure as Failure, attempts);
          return mayRepeat ? backoffMs(ATTEMPTS, attempts, Math.random()) : undefined;
        },
        pause: (delayMs) => this.#pause(delayMs, signal),
      });
      return { answer };
    } catch (error) {
      const failure =
        error instanceof Failed ? (error.failure as Failure) : this.#options.unavailable('the call failed');
      return { failure, attempts };
    }
  }

  /** Ends the calls in progress as `unavailable`; later calls end in the same way. */
  close(): void {
    this.#closing.abort(undefined);
  }

  #isEnded(signal: AbortSignal | undefined): boolean {
    return this.#closing.aborted || signal?.aborted === true;
  }

  #mayRepeat(failure: Failure, attempts: number): boolean {
    const { retries } = this.#options;
    return retries !== undefined && attempts < retries.maxAttempts && retries.mayPass(failure, attempts);
  }

  /** @throws {Failed} */
  #attempt<T>(
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Outcome<T, Failure>>,
    discard: ((answer: T) => void) | undefined,
  ): Promise<T> {
    const { classify, unavailable } = this.#options;
    const answered = async (own: AbortSignal): Promise<T> => {
      let outcome: Outcome<T, Failure>;
      try {
        outcome = await call(own);
      } catch (error) {
        outcome = { failure: classify(error) };
      }
      if ('failure' in outcome) throw new Failed(outcome.failure);
      return outcome.answer;
    };
    const errorOf = (reason: GivenUp): Error => new Failed(unavailable(this.#textOf(reason)));
    return this.#deadlines.run(answered, errorOf, { signal, discard });
  }

  #textOf(reason: GivenUp): string {
    if (reason === 'closed') return `the ${this.#options.owner} is closed`;
    return reason === 'aborted' ? 'aborted by the caller' : 'no answer within callTimeoutSeconds';
  }

  // Unlike the timer of a deadline, this timer keeps the process alive: no socket is in use between two attempts, so a
  // command-line program would otherwise end silently while its call is still pending.
  #pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        this.#closing.removeEventListener('abort', done);
        resolve();
      };
      signal?.addEventListener('abort', done);
      this.#closing.addEventListener('abort', done);
      const timer = setTimeout(done, delayMs);
    });
  }
}

/**
 * Creates the calls of a store. Each call makes one attempt, because the ring repeats the calls that a caller waits
 * for.
 *
 * @param timeoutMs - The longest wait for each call, in milliseconds.
 * @param classify - Classifies a rejection: see `findRow` and `unexplained`.
 *
 * @example
 * ```ts
 * const outcome = await calls.run(signal, async (abortSignal) => ({ answer: await client.get(key, { abortSignal }) }));
 * if ('failure' in outcome) throw new RingStoreError(outcome.failure.kind, outcome.failure.detail);
 * ```
 */
export function storeCalls<Kind extends string>(
  timeoutMs: number,
  classify: (error: unknown) => StoreFailure<Kind>,
): Calls<StoreFailure<Kind | 'unavailable'>> {
  return new Calls({
    timeoutMs,
    owner: 'store',
    classify,
    unavailable: (detail): StoreFailure<Kind | 'unavailable'> => ({ kind: 'unavailable', detail }),
  });
}

/**
 * Creates the calls of a key wrapper. A call that fails with `throttled` or `unavailable` is tried again, after pauses
 * with full jitter of at most 0.1, 0.2, 0.4 … 2 seconds.
 *
 * @param limits - Longest wait for each attempt, in milliseconds, and attempts per call, including the first.
 * @param classify - Classifies a rejection: see `findRow` and `kindOfStatus`.
 * @param mayPass - Whether to retry a failure of either kind after this many attempts; by default, it is retried.
 *
 * @example
 * ```ts
 * const outcome = await calls.run(
 *   signal,
 *   async (abortSignal) => ({ answer: await client.decrypt(request, { abortSignal }) }),
 *   (late) => overwrite(late.plaintext),
 * );
 * if ('failure' in outcome) throw keyWrapperError('my-kms', 'unwrap', outcome);
 * ```
 */
export function keyWrapperCalls(
  limits: { readonly timeoutMs: number; readonly maxAttempts: number },
  classify: (error: unknown) => ServiceFailure,
  mayPass: (failure: ServiceFailure, attempts: number) => boolean = () => true,
): Calls<ServiceFailure> {
  return new Calls({
    timeoutMs: limits.timeoutMs,
    owner: 'key wrapper',
    classify,
    unavailable: (hint): ServiceFailure => ({ kind: 'unavailable', hint }),
    retries: {
      maxAttempts: limits.maxAttempts,
      mayPass: (failure, attempts) =>
        (failure.kind === 'throttled' || failure.kind === 'unavailable') && mayPass(failure, attempts),
    },
  });
}
