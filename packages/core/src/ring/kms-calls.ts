import { type Clock, pause, type RandomSource, uniform } from '../clock.ts';
import { KeyWrapperError, type KeyWrapperErrorKind, type KeyWrapperErrorSummary } from '../key-wrapper.ts';
import { Deadlines, started } from './deadlines.ts';

/** Calls of one member that may be under way at once. */
const MAX_IN_FLIGHT = 4;
/** Calls that may wait for one of them. */
const MAX_WAITING = 256;
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

type Call = Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>;

/** How a call to the KMS or the store is made. */
export interface CallOptions {
  /** Whether somebody waits for it: then three retries with full jitter. */
  readonly foreground: boolean;
}

/**
 * The only way to the KMS: at most four calls at once, each with our own deadline, so that a service that hangs costs
 * neither memory nor latency.
 */
export class KmsCalls {
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #deadlines: Deadlines;
  readonly #closing: AbortSignal;
  readonly #waiting = new Set<() => void>();
  #inFlight = 0;
  /** To be given to every call. */
  readonly onServiceDate: (date: Date) => void;

  constructor(options: {
    readonly clock: Clock;
    readonly random: RandomSource;
    readonly timeoutSeconds: number;
    readonly closing: AbortSignal;
    readonly onServiceDate: (date: Date) => void;
  }) {
    this.onServiceDate = options.onServiceDate;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#closing = options.closing;
    this.#deadlines = new Deadlines(options.clock, options.timeoutSeconds, options.closing);
  }

  /**
   * Makes one call, retrying `throttled` and `unavailable` where somebody waits.
   * @throws {KeyWrapperError} whatever the wrapper threw: an error that is none of ours becomes `unavailable`, without
   * its text, which may be secret.
   */
  async call<T>(what: Call, run: (signal: AbortSignal) => Promise<T>, options: CallOptions): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#deadlines.run(
          (signal) => this.#inSlot(run, signal),
          () => new KeyWrapperError('unavailable', { ...what, hint: 'no answer in time' }),
        );
      } catch (error) {
        const failure = ours(error, what);
        const passing = failure.kind === 'throttled' || failure.kind === 'unavailable';
        if (!options.foreground || !passing || this.#closing.aborted || attempt > FOREGROUND_RETRIES) throw failure;
        const wait = Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 2 ** attempt) * uniform(this.#random);
        await pause(this.#clock, wait, this.#closing);
      }
    }
  }

  /** Makes the call in one of the four slots. */
  #inSlot<T>(run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#inFlight >= MAX_IN_FLIGHT) return this.#turn(signal).then(() => this.#release(started(run, signal)));
    this.#inFlight += 1;
    return this.#release(started(run, signal));
  }

  /** Not the deadline but the call's own end frees its slot: a wrapper that ignores its signal stays within the bound. */
  #release<T>(call: Promise<T>): Promise<T> {
    call.then(this.#handOver, this.#handOver);
    return call;
  }

  /** Waits for a slot to be handed over; gives up when the signal aborts. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(take);
        reject(new Error('no slot in time'));
      };
      const take = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      if (signal.aborted || this.#waiting.size >= MAX_WAITING) {
        giveUp();
        return;
      }
      this.#waiting.add(take);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Hands the slot to whoever waits longest. */
  readonly #handOver = (): void => {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#inFlight -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  };
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
