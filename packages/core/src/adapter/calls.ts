import type { ServiceFailure, StoreFailure } from './failures.ts';

/** Longest pause after the first failure, and after any, in milliseconds. */
const BACKOFF_BASE_MS = 100;
const BACKOFF_CAP_MS = 2000;

/** What one attempt came to. */
export type Outcome<T, Failure> = { readonly answer: T } | { readonly failure: Failure };

/** What a call came to, and after how many attempts it failed. */
export type CallOutcome<T, Failure> = { readonly answer: T } | { readonly failure: Failure; readonly attempts: number };

/** How calls are made. */
export interface CallsOptions<Failure> {
  /** Longest wait for each attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** What is closed by {@link Calls.close}, for its message: `store`. */
  readonly owner: string;
  /** What a rejection of the vendor's means. */
  readonly classify: (error: unknown) => Failure;
  /** The failure of a call that was given up, for a fixed reason. */
  readonly unavailable: (reason: string) => Failure;
  /** When to try again. Default never. */
  readonly retries?: RetryOptions<Failure>;
}

/** When a call is tried again. */
export interface RetryOptions<Failure> {
  /** Attempts per call, the first one included. */
  readonly maxAttempts: number;
  /** Whether another attempt may mend it, after so many. */
  readonly mayPass: (failure: Failure, attempts: number) => boolean;
}

/**
 * The calls of one store or key wrapper. Each attempt has a deadline, attempts are repeated within bounds, and `close`
 * ends whatever is under way. See {@link storeCalls} and {@link keyWrapperCalls}.
 */
export class Calls<Failure> {
  readonly #options: CallsOptions<Failure>;
  readonly #underWay = new Set<() => void>();
  #isClosed = false;

  constructor(options: CallsOptions<Failure>) {
    this.#options = options;
  }

  /**
   * Makes one call: until there is an answer, a failure that a repetition cannot mend, the last attempt, an abort or
   * {@link Calls.close}. Never rejects, and ends in time whether or not `call` heeds its signal, which aborts whenever
   * there is no answer: the socket is then of no use to anybody, even in the middle of a body.
   *
   * @param signal - The caller's.
   * @param call - One attempt; what it throws is classified.
   * @param discard - Is given an answer that came too late for anybody to take: for overwriting a key in it.
   */
  async run<T>(
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Outcome<T, Failure>>,
    discard?: (answer: T) => void,
  ): Promise<CallOutcome<T, Failure>> {
    for (let attempts = 1; ; attempts++) {
      const reason = this.#reasonToStop(signal);
      if (reason !== undefined) return { failure: this.#options.unavailable(reason), attempts: attempts - 1 };
      const outcome = await this.#attempt(signal, call, discard);
      if ('answer' in outcome) return outcome;
      const { failure } = outcome;
      if (this.#reasonToStop(signal) !== undefined || !this.#mayRepeat(failure, attempts)) return { failure, attempts };
      await this.#pause(backoffMs(attempts, Math.random()), signal);
    }
  }

  /** Ends the calls under way, as `unavailable`, and all later ones. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#underWay) stop();
  }

  #reasonToStop(signal: AbortSignal | undefined): string | undefined {
    if (this.#isClosed) return `the ${this.#options.owner} is closed`;
    return signal?.aborted === true ? 'aborted by the caller' : undefined;
  }

  #mayRepeat(failure: Failure, attempts: number): boolean {
    const { retries } = this.#options;
    return retries !== undefined && attempts < retries.maxAttempts && retries.mayPass(failure, attempts);
  }

  #attempt<T>(
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<Outcome<T, Failure>>,
    discard: ((answer: T) => void) | undefined,
  ): Promise<Outcome<T, Failure>> {
    const { classify, timeoutMs, unavailable } = this.#options;
    return new Promise((resolve) => {
      const own = new AbortController();
      let hasEnded = false;
      const end = (outcome: Outcome<T, Failure>): void => {
        if (hasEnded) {
          if ('answer' in outcome) discard?.(outcome.answer);
          return;
        }
        hasEnded = true;
        clearTimeout(deadline);
        unwatch();
        resolve(outcome);
        if ('failure' in outcome) own.abort();
      };
      const giveUp = (reason: string): void => end({ failure: unavailable(reason) });
      const unwatch = this.#watch(signal, () => giveUp(this.#reasonToStop(signal) ?? ''));
      const deadline = setTimeout(() => giveUp('no answer within callTimeoutSeconds'), timeoutMs);
      deadline.unref();

      const settle = async (): Promise<void> => {
        try {
          end(await call(own.signal));
        } catch (error) {
          end({ failure: classify(error) });
        }
      };
      // What `classify` or `discard` throws would end the process.
      settle().catch(() => giveUp('the call failed'));
    });
  }

  // Keeps the process alive, unlike a deadline: between two attempts no socket does, and a command-line run whose call
  // is still under way would end in silence.
  #pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        unwatch();
        resolve();
      };
      const unwatch = this.#watch(signal, done);
      const timer = setTimeout(done, delayMs);
    });
  }

  /** Calls `stop` when the caller aborts or the owner is closed, until the returned function is called. */
  #watch(signal: AbortSignal | undefined, stop: () => void): () => void {
    signal?.addEventListener('abort', stop, { once: true });
    this.#underWay.add(stop);
    return () => {
      signal?.removeEventListener('abort', stop);
      this.#underWay.delete(stop);
    };
  }
}

/**
 * Calls of a store: one attempt each, because the ring repeats those that somebody waits for.
 *
 * @param timeoutMs - Longest wait for each, in milliseconds.
 * @param classify - What a rejection means: see `findRow` and `unexplained`.
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
 * Calls of a key wrapper: `throttled` and `unavailable` are tried again, after pauses with full jitter of at most 0.1,
 * 0.2, 0.4 … 2 seconds.
 *
 * @param limits - Longest wait for each attempt, in milliseconds, and attempts per call, the first one included.
 * @param classify - What a rejection means: see `findRow` and `kindOfStatus`.
 * @param mayPass - Whether such a failure is worth another attempt after so many; by default it is.
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

/**
 * Milliseconds to wait after so many failures, for `uniform` in [0, 1): full jitter, so that a fleet that was throttled
 * together does not come back together (AWS Architecture Blog, "Exponential Backoff And Jitter").
 */
export function backoffMs(failures: number, uniform: number, capMs: number = BACKOFF_CAP_MS): number {
  return uniform * Math.min(capMs, BACKOFF_BASE_MS * 2 ** (failures - 1));
}
