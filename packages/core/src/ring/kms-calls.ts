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

/** Calls that may wait for one of them. */
const MAX_WAITING = 256;

type Call = Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>;

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
  readonly #waiting = new Set<() => void>();
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
  async call<T>(what: Call, run: (signal: AbortSignal) => Promise<T>, options: CallOptions): Promise<T> {
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

  async #attempt<T>(what: Call, run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const deadline = new AbortController();
    const ends = AbortSignal.any([deadline.signal, this.#closing, ...(signal === undefined ? [] : [signal])]);
    const cancel = schedule(this.#clock, () => deadline.abort(), this.#timeoutMs);
    try {
      await this.#slot(what, ends);
      // Not the race's but the call's own end frees the slot: a wrapper that ignores its signal stays within the bound.
      const call = Promise.resolve().then(() => run(ends));
      call.then(this.#release, this.#release);
      return await orAborted(call, what, ends);
    } finally {
      cancel();
    }
  }

  /** Waits for one of the four slots. @throws {KeyWrapperError} `unavailable` when none comes free in time. */
  async #slot(what: Call, ends: AbortSignal): Promise<void> {
    if (this.#inFlight < MAX_IN_FLIGHT) {
      this.#inFlight += 1;
      return;
    }
    if (this.#waiting.size >= MAX_WAITING)
      throw new KeyWrapperError('unavailable', { ...what, hint: 'too many calls' });
    let give = nothing;
    const given = new Promise<void>((resolve) => {
      give = resolve;
    });
    this.#waiting.add(give);
    try {
      await orAborted(given, what, ends);
    } catch (error) {
      // Given up: a slot that was handed over in the same moment goes on to the next.
      if (!this.#waiting.delete(give)) this.#release();
      throw error;
    }
  }

  /** Hands the slot to whoever waits longest. */
  readonly #release = (): void => {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#inFlight -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  };
}

function nothing(): void {
  // Replaced before anybody can call it.
}

/** What `promise` says, or `unavailable` as soon as `signal` aborts. */
function orAborted<T>(promise: Promise<T>, what: Call, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(new KeyWrapperError('unavailable', { ...what, hint: 'no answer in time' }));
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function ours(error: unknown, what: Call): KeyWrapperError {
  if (error instanceof KeyWrapperError) return error;
  if (isKeyWrapperError(error)) return new KeyWrapperError(error.kind, what);
  return new KeyWrapperError('unavailable', { ...what, hint: 'the key wrapper threw an error of another class' });
}

/** By name and kind: an adapter may carry its own copy of the class. */
function isKeyWrapperError(error: unknown): error is Error & { readonly kind: KeyWrapperErrorKind } {
  return error instanceof Error && error.name === 'KeyWrapperError' && 'kind' in error && KINDS.has(error.kind);
}
