import { type Clock, pause, type RandomSource, schedule, uniform } from '../clock.ts';
import { KeyWrapperError, type KeyWrapperErrorKind, type KeyWrapperErrorSummary } from '../key-wrapper.ts';

/** Calls of one member that may be under way at once. */
export const MAX_IN_FLIGHT = 4;
/** Retries of a foreground call (start, publish, prepare); background calls have none: the next refresh is theirs. */
const FOREGROUND_RETRIES = 3;
const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 2_000;

const KINDS: ReadonlySet<unknown> = new Set<KeyWrapperErrorKind>([
  'throttled',
  'unavailable',
  'denied',
  'disabled',
  'not-found',
  'corrupt',
]);

/** How a call to the KMS or the store is made. */
export interface CallOptions {
  /** Whether somebody waits for it: then three retries with full jitter. */
  readonly foreground: boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The only way to the KMS: at most four calls at once, each with our own deadline, so that a service that hangs costs
 * neither memory nor latency.
 */
export class KmsCalls {
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #timeoutMs: number;
  readonly #closing: AbortSignal;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;

  constructor(options: { clock: Clock; random: RandomSource; timeoutSeconds: number; closing: AbortSignal }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#timeoutMs = options.timeoutSeconds * 1_000;
    this.#closing = options.closing;
  }

  /**
   * Makes one call, retrying `throttled` and `unavailable` where somebody waits.
   * @throws {KeyWrapperError} whatever the wrapper threw: an error that is none of ours becomes `unavailable`, without
   * its text, which may be secret.
   */
  async call<T>(
    what: Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>,
    run: (signal: AbortSignal) => Promise<T>,
    options: CallOptions,
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(what, run, options.signal);
      } catch (error) {
        const failure = ours(error, what);
        const passing = failure.kind === 'throttled' || failure.kind === 'unavailable';
        const stopped = this.#closing.aborted || options.signal?.aborted === true;
        if (!options.foreground || !passing || stopped || attempt > FOREGROUND_RETRIES) throw failure;
        const wait = Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 2 ** attempt) * uniform(this.#random);
        await pause(this.#clock, wait, this.#closing);
      }
    }
  }

  async #attempt<T>(
    what: Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>,
    run: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    while (this.#inFlight >= MAX_IN_FLIGHT) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#inFlight += 1;
    const deadline = new AbortController();
    const signals = [deadline.signal, this.#closing, ...(signal === undefined ? [] : [signal])];
    const cancel = schedule(this.#clock, () => deadline.abort(), this.#timeoutMs);
    try {
      // The race ends the wait even when a wrapper ignores its signal.
      return await raced(AbortSignal.any(signals), run, what);
    } finally {
      cancel();
      this.#inFlight -= 1;
      this.#waiting.shift()?.();
    }
  }
}

function raced<T>(
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
  what: Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(new KeyWrapperError('unavailable', { ...what, hint: 'no answer in time' }));
    if (signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener('abort', abort, { once: true });
    // A wrapper of somebody else's may throw synchronously.
    Promise.resolve()
      .then(() => run(signal))
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}

function ours(error: unknown, what: Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>): KeyWrapperError {
  if (error instanceof KeyWrapperError) return error;
  if (isKeyWrapperError(error)) return new KeyWrapperError(error.kind, what);
  return new KeyWrapperError('unavailable', { ...what, hint: 'the key wrapper threw an error of another class' });
}

/** By name and kind: an adapter may carry its own copy of the class. */
function isKeyWrapperError(error: unknown): error is Error & { readonly kind: KeyWrapperErrorKind } {
  return error instanceof Error && error.name === 'KeyWrapperError' && 'kind' in error && KINDS.has(error.kind);
}
