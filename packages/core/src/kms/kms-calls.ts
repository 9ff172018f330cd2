import {
  type Clock,
  type Deadline,
  type Moment,
  momentOf,
  msUntil,
  pause,
  type RandomSource,
  schedule,
  secondsSince,
  uniform,
} from '../base/clock.ts';
import type { Closing } from '../base/closing.ts';
import { Deadlines, started } from '../base/deadlines.ts';
import { type Backoff, backoffMs, retry } from '../base/retry.ts';
import { kindOfNamed } from '../contracts/errors.ts';
import { channels } from '../contracts/events.ts';
import {
  KEY_WRAPPER_ERROR_KINDS,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
} from '../contracts/key-wrapper.ts';

/** Maximum number of concurrent calls of one member. */
const MAX_IN_FLIGHT = 4;
/** Number of calls that may wait for a slot. */
const MAX_WAITING = 256;
/**
 * Retries of a foreground call (start, publish, prepare). Background calls are not retried: the next refresh repeats
 * them.
 */
const FOREGROUND_RETRIES = 3;
const RETRIES: Backoff = { firstMs: 200, capMs: 2_000 };

type Call = Pick<KeyWrapperErrorSummary, 'provider' | 'operation'>;

/** Options of a call to the KMS or the store. */
export interface CallOptions {
  /** Whether a caller waits for the call: if so, it is retried up to three times, with full jitter. Default: false. */
  readonly foreground?: boolean;
  /** Whether the next key wrapper is called before the one before it has failed. Default: the value of `foreground`. */
  readonly hedged?: boolean;
  /** The time at which the caller gives up: no call lasts longer, and neither a call nor a retry begins later. */
  readonly until?: Deadline;
}

/** The last failure that a key wrapper returned, and the number of attempts since that wrapper last succeeded. */
export class LastAnswer {
  #failure: KeyWrapperError | undefined;
  #attempts = 0;

  /** Undefined if the last call succeeded, or if no call was made. */
  get failure(): KeyWrapperError | undefined {
    const last = this.#failure;
    return last && new KeyWrapperError(last.kind, { ...last.summary, attempts: this.#attempts });
  }

  failed(failure: KeyWrapperError): void {
    this.#failure = failure;
    this.#attempts += failure.summary.attempts ?? 1;
  }

  succeeded(): void {
    this.#failure = undefined;
    this.#attempts = 0;
  }
}

/**
 * Makes all calls to the KMS: at most four at once, each with its own deadline, so that a service that hangs costs
 * neither memory nor latency.
 */
export class KmsCalls {
  readonly #ring: string;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #deadlines: Deadlines;
  readonly #timeoutMs: number;
  readonly #closing: Closing;
  readonly #waiting = new Set<() => void>();
  #inFlight = 0;
  /** Receives the date of each answer of the KMS. Pass it to the methods of a key wrapper. */
  readonly onServiceDate: (date: Date) => void;

  constructor(options: {
    /** Name of the ring, for events. */
    readonly ring: string;
    readonly clock: Clock;
    readonly random: RandomSource;
    readonly timeoutSeconds: number;
    readonly closing: Closing;
    readonly onServiceDate: (date: Date) => void;
  }) {
    this.onServiceDate = options.onServiceDate;
    this.#ring = options.ring;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#closing = options.closing;
    this.#timeoutMs = options.timeoutSeconds * 1_000;
    this.#deadlines = new Deadlines(options.clock, this.#timeoutMs, options.closing);
  }

  /**
   * Makes one call, and retries `throttled` and `unavailable` if a caller waits. `discard` gets every answer that comes too
   * late, so that it can overwrite a key in it; it must not throw. `lastAnswer` gets every outcome, but an attempt that
   * timed out because the caller had too little time left does not replace an earlier failure.
   * @throws {KeyWrapperError} as the wrapper threw it; any other error becomes `unavailable`, without its text, which may be
   * secret.
   */
  call<T>(
    what: Call,
    run: (signal: AbortSignal) => Promise<T>,
    options: CallOptions,
    discard?: (answer: T) => void,
    lastAnswer: LastAnswer = new LastAnswer(),
  ): Promise<T> {
    return this.retried(() => this.#once(what, run, options, discard, lastAnswer), options);
  }

  /** Repeats a call that failed with `throttled` or `unavailable`, if a caller waits for it and time is left. */
  retried<T>(attempt: () => Promise<T>, options: CallOptions): Promise<T> {
    return retry(attempt, {
      waitMs: (failure, failures) => {
        const isFinal = !mayPass(failure) || this.#closing.aborted || failures > FOREGROUND_RETRIES;
        if (options.foreground !== true || isFinal) return undefined;
        const wait = backoffMs(RETRIES, failures, uniform(this.#random));
        return wait < this.#msLeft(options) ? wait : undefined;
      },
      pause: (delayMs) => pause(this.#clock, delayMs, this.#closing),
    });
  }

  async #once<T>(
    what: Call,
    run: (signal: AbortSignal) => Promise<T>,
    options: CallOptions,
    discard: ((answer: T) => void) | undefined,
    lastAnswer: LastAnswer,
  ): Promise<T> {
    const atMostMs = this.#msLeft(options);
    if (atMostMs === 0) throw new KeyWrapperError('unavailable', { ...what, hint: 'no time left for a call' });
    let isCutShort = false;
    const asked = channels['kms-call'].isHeard ? momentOf(this.#clock) : undefined;
    try {
      const answer = await this.#deadlines.run(
        (signal) => this.#inSlot(what, run, signal),
        () => {
          isCutShort = atMostMs < this.#timeoutMs;
          return new KeyWrapperError('unavailable', { ...what, hint: 'no answer in time' });
        },
        { atMostMs, discard },
      );
      lastAnswer.succeeded();
      this.#emit(what, asked, undefined);
      return answer;
    } catch (error) {
      const failure = ours(error, what);
      if (!isCutShort || lastAnswer.failure === undefined) lastAnswer.failed(failure);
      this.#emit(what, asked, failure.kind);
      throw failure;
    }
  }

  /** Resolves after `delayMs`, or as soon as `sooner` settles. On close, the calls fail by themselves. */
  pauseOr(delayMs: number, sooner: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = schedule(this.#clock, resolve, delayMs);
      const settled = (): void => {
        cancel();
        resolve();
      };
      sooner.then(settled, settled);
    });
  }

  /** Whether `call` is still in progress after `delayMs`. */
  async outlasts(call: Promise<unknown>, delayMs: number): Promise<boolean> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    await this.pauseOr(delayMs, call.then(over, over));
    return !isOver;
  }

  /** Emits the outcome of a call, unless closing the codec ended it: such an outcome says nothing about the KMS. */
  #emit({ provider, operation }: Call, asked: Moment | undefined, kind: KeyWrapperErrorKind | undefined): void {
    if (asked === undefined || this.#closing.aborted) return;
    const seconds = secondsSince(asked, momentOf(this.#clock));
    const call = { ringName: this.#ring, provider, operation, seconds };
    channels['kms-call'].publish(() => (kind === undefined ? { ...call, ok: true } : { ...call, ok: false, kind }));
  }

  #msLeft({ until }: CallOptions): number {
    return until === undefined ? Number.POSITIVE_INFINITY : msUntil(until, momentOf(this.#clock));
  }

  /** Makes the call in one of the four slots. */
  #inSlot<T>(what: Call, run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#turn(what, signal).then(() => this.#release(started(run, signal)));
    }
    this.#inFlight += 1;
    return this.#release(started(run, signal));
  }

  /**
   * A slot is freed when its call ends, not at the deadline, so that a wrapper that ignores its signal stays within the
   * limit.
   */
  #release<T>(call: Promise<T>): Promise<T> {
    call.then(this.#handOver, this.#handOver);
    return call;
  }

  /** Waits for a slot; gives up when the signal aborts. */
  #turn(what: Call, signal: AbortSignal): Promise<void> {
    return new Promise<void>((take, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(take);
        reject(new KeyWrapperError('unavailable', { ...what, hint: 'too many calls at once' }));
      };
      if (signal.aborted || this.#waiting.size >= MAX_WAITING) {
        giveUp();
        return;
      }
      this.#waiting.add(take);
      // Has no effect once the slot is taken. The signal belongs to this call alone, so the listener can stay.
      signal.addEventListener('abort', giveUp);
    });
  }

  /** Hands the slot to the call that has waited longest. */
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

function mayPass(failure: unknown): boolean {
  return failure instanceof KeyWrapperError && (failure.kind === 'throttled' || failure.kind === 'unavailable');
}

function ours(error: unknown, what: Call): KeyWrapperError {
  if (error instanceof KeyWrapperError) return error;
  const kind = kindOfNamed(error, 'KeyWrapperError', KEY_WRAPPER_ERROR_KINDS);
  if (kind !== undefined) return new KeyWrapperError(kind, what);
  return new KeyWrapperError('unavailable', {
    ...what,
    hint: 'the key wrapper threw an error that is not a KeyWrapperError',
  });
}
