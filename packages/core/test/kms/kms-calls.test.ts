import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { later, momentOf, pause, type RandomSource } from '../../src/base/clock.ts';
import { Closing } from '../../src/base/closing.ts';
import { KeyWrapperError, type KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { type CallOptions, KmsCalls, LastAnswer } from '../../src/kms/kms-calls.ts';
import { EventLog } from '../support/event-log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const FOREGROUND: CallOptions = { foreground: true };
const BACKGROUND: CallOptions = { foreground: false };
const WHAT = { provider: 'aws-kms', operation: 'unwrap' } as const;
const KINDS: readonly KeyWrapperErrorKind[] = [
  'throttled',
  'unavailable',
  'denied',
  'disabled',
  'not-found',
  'corrupt',
];

/** A virtual clock that counts the timers that have neither run nor been cancelled. */
class TimerCount extends VirtualClock {
  readonly #live = new Set<object>();

  get timers(): number {
    return this.#live.size;
  }

  override schedule(callback: () => void, delayMs: number): () => void {
    const timer = {};
    this.#live.add(timer);
    const cancel = super.schedule(() => {
      this.#live.delete(timer);
      callback();
    }, delayMs);
    return () => {
      this.#live.delete(timer);
      cancel();
    };
  }
}

/** Draws the same bytes every time: 0xff makes the longest wait, 0 none. */
function always(...bytes: readonly number[]): RandomSource {
  return (fill) => {
    for (let i = 0; i < fill.length; i++) fill[i] = bytes[i % bytes.length] ?? 0;
  };
}

function setUp(random: RandomSource = always(0xff)) {
  const clock = new TimerCount('2026-11-21T03:00:00Z');
  const closing = new Closing();
  const onServiceDate = (): void => undefined;
  const calls = new KmsCalls({ ring: 'r', clock, random, timeoutSeconds: 5, closing, onServiceDate });
  const began = momentOf(clock);
  const passedMs = (): number => Math.round(momentOf(clock).steadyMs - began.steadyMs);
  return { calls, clock, closing, passedMs };
}

function fails(kind: KeyWrapperErrorKind): KeyWrapperError {
  return new KeyWrapperError(kind, WHAT);
}

/** The current state of a promise. */
function watch<T>(promise: Promise<T>): { value?: T; error?: unknown } {
  const seen: { value?: T; error?: unknown } = {};
  promise.then(
    (value) => {
      seen.value = value;
    },
    (error: unknown) => {
      seen.error = error;
    },
  );
  return seen;
}

const unavailable = expect.objectContaining({ name: 'KeyWrapperError', kind: 'unavailable' });

describe('a call that a caller waits for', () => {
  for (const kind of ['throttled', 'unavailable'] as const) {
    test(`a foreground call is made four times in all while the KMS answers ${kind}, after at most 200, 400 and 800 ms`, async () => {
      for (const [random, expected] of [
        [always(0xff), [0, 200, 600, 1_400]],
        // Full jitter: a member that draws 0 does not wait.
        [always(0), [0, 0, 0, 0]],
      ] as const) {
        const { calls, clock, passedMs } = setUp(random);
        const attempts: number[] = [];
        const failure = fails(kind);
        const run = async (): Promise<never> => {
          attempts.push(passedMs());
          throw failure;
        };
        const seen = watch(calls.call(WHAT, run, FOREGROUND));
        await clock.advance(10);
        expect(attempts).toEqual(expected);
        expect(seen.error).toBe(failure);
      }
    });
  }

  test('resolves with the first answer', async () => {
    const { calls, clock } = setUp();
    let attempts = 0;
    const run = async (): Promise<string> => {
      if (++attempts < 4) throw fails('unavailable');
      return 'answer';
    };
    const seen = watch(calls.call(WHAT, run, FOREGROUND));
    await clock.advance(10);
    expect(seen).toEqual({ value: 'answer' });
  });

  test('a foreground call is made only once if a retry cannot change the answer', async () => {
    for (const kind of KINDS.slice(2)) {
      const { calls, clock } = setUp();
      let attempts = 0;
      const failure = fails(kind);
      const run = async (): Promise<never> => {
        attempts++;
        throw failure;
      };
      const seen = watch(calls.call(WHAT, run, FOREGROUND));
      await clock.advance(10);
      expect([kind, attempts, seen.error]).toEqual([kind, 1, failure]);
    }
  });

  test('a foreground call is not repeated if the waiting caller has given up by then', async () => {
    // A wait of 100 ms: half of 200, and so on. A deadline at exactly that time leaves no time for another call.
    for (const [untilMs, expected] of [
      [100, [0]],
      [101, [0, 100]],
      [300, [0, 100]],
      [301, [0, 100, 300]],
    ] as const) {
      const { calls, clock, passedMs } = setUp(always(0, 0, 0, 0x80));
      const attempts: number[] = [];
      const run = async (): Promise<never> => {
        attempts.push(passedMs());
        throw fails('unavailable');
      };
      const until = later(momentOf(clock), untilMs);
      const seen = watch(calls.call(WHAT, run, { foreground: true, until }));
      await clock.advance(10);
      expect(attempts).toEqual(expected);
      expect(seen.error).toEqual(unavailable);
    }
  });

  test('no call begins once the caller has given up', async () => {
    const { calls, clock } = setUp();
    let attempts = 0;
    const run = async (): Promise<string> => {
      attempts++;
      return 'answer';
    };
    for (const [untilMs, expected] of [
      [1, 1],
      [0, 1],
      [-1, 1],
    ] as const) {
      watch(calls.call(WHAT, run, { until: later(momentOf(clock), untilMs) }));
      await clock.advance(0);
      expect(attempts).toBe(expected);
    }
    const seen = watch(calls.call(WHAT, run, { until: momentOf(clock) }));
    await clock.advance(0);
    expect(seen.error).toEqual(unavailable);
  });

  test('a background call is made only once, because the next refresh repeats it', async () => {
    const { calls, clock } = setUp();
    let attempts = 0;
    const run = async (): Promise<never> => {
      attempts++;
      throw fails('throttled');
    };
    watch(calls.call(WHAT, run, BACKGROUND));
    await clock.advance(10);
    expect(attempts).toBe(1);
  });

  test('a call is neither repeated nor begun once the codec is closed', async () => {
    const { calls, clock, closing } = setUp();
    let attempts = 0;
    const run = async (): Promise<never> => {
      attempts++;
      throw fails('unavailable');
    };
    const waiting = watch(calls.call(WHAT, run, FOREGROUND));
    await clock.advance(0.1);
    closing.abort(new Error('closed'));
    const late = watch(calls.call(WHAT, run, FOREGROUND));
    await clock.advance(10);
    expect(attempts).toBe(1);
    expect(waiting.error).toBeInstanceOf(Error);
    expect(late.error).toEqual(unavailable);
  });
});

describe('a call that hangs (F29)', () => {
  const forever = (): Promise<never> => new Promise(() => undefined);

  test('a call that hangs ends at its deadline, or earlier when the waiting caller gives up, and its signal aborts then', async () => {
    for (const [until, seconds] of [
      [undefined, 5],
      [2_000, 2],
      [9_000, 5],
    ] as const) {
      const { calls, clock } = setUp();
      let given: AbortSignal | undefined;
      const options = until === undefined ? {} : { until: later(momentOf(clock), until) };
      const run = (signal: AbortSignal): Promise<never> => {
        given = signal;
        return forever();
      };
      const seen = watch(calls.call(WHAT, run, { foreground: false, ...options }));
      await clock.advance(seconds - 0.001);
      expect([seen.error, given?.aborted]).toEqual([undefined, false]);
      await clock.advance(0.001);
      expect([seen.error, given?.aborted]).toEqual([unavailable, true]);
      expect(seen.error).toHaveProperty('summary.provider', WHAT.provider);
      expect(seen.error).toHaveProperty('summary.operation', WHAT.operation);
      expect(seen.error).toHaveProperty('summary.hint', 'no answer in time');
    }
  });

  test('a call that hangs ends at once on close, and leaves no timer behind', async () => {
    const { calls, clock, closing } = setUp();
    let given: AbortSignal | undefined;
    const run = (signal: AbortSignal): Promise<never> => {
      given = signal;
      return forever();
    };
    const seen = watch(calls.call(WHAT, run, FOREGROUND));
    expect(clock.timers).toBe(1);
    closing.abort(new Error('closed'));
    await clock.advance(0);
    expect([seen.error, given?.aborted, clock.timers]).toEqual([unavailable, true, 0]);
  });

  test('holds its slot until it has really ended: of six calls, four begin and two give up waiting', async () => {
    const { calls, clock } = setUp();
    const ends: (() => void)[] = [];
    const run = (): Promise<string> =>
      new Promise((resolve) => {
        ends.push(() => resolve('late'));
      });
    const six = Array.from({ length: 6 }, () => watch(calls.call(WHAT, run, BACKGROUND)));
    await clock.advance(6);
    expect(ends).toHaveLength(4);
    for (const { error } of six) expect(error).toEqual(unavailable);
    const next = watch(calls.call(WHAT, run, BACKGROUND));
    await clock.advance(1);
    expect(ends).toHaveLength(4);
    // The slot goes to the waiting calls. Calls that gave up do not begin, and do not keep the slot.
    ends[0]?.();
    await clock.advance(0);
    expect(ends).toHaveLength(5);
    ends[4]?.();
    await clock.advance(0);
    expect(next).toEqual({ value: 'late' });
    const after = watch(calls.call(WHAT, async () => 'free', BACKGROUND));
    await clock.advance(0);
    expect(after).toEqual({ value: 'free' });
  });

  test('keeps other calls waiting in order, and lets the next one begin when it ends, however it ends', async () => {
    const { calls, clock } = setUp();
    const begun: number[] = [];
    const ends: ((how: 'resolve' | 'reject') => void)[] = [];
    const seen = Array.from({ length: 10 }, (_, i) => {
      const run = (): Promise<number> => {
        begun.push(i);
        return new Promise((resolve, reject) => {
          ends.push((how) => (how === 'resolve' ? resolve(i) : reject(fails('denied'))));
        });
      };
      return watch(calls.call(WHAT, run, BACKGROUND));
    });
    for (let ended = 0; ended < 10; ended++) {
      await clock.advance(0);
      expect(begun).toEqual(Array.from({ length: Math.min(10, ended + 4) }, (_, i) => i));
      ends[ended]?.(ended % 2 === 0 ? 'resolve' : 'reject');
    }
    await clock.advance(0);
    expect(seen.map(({ value }) => value)).toEqual([
      0,
      undefined,
      2,
      undefined,
      4,
      undefined,
      6,
      undefined,
      8,
      undefined,
    ]);
    expect(clock.timers).toBe(0);
  });

  test('at most 256 calls wait, and the next one is refused at once (F23)', async () => {
    const { calls, clock } = setUp();
    let begun = 0;
    const run = (): Promise<never> => {
      begun++;
      return forever();
    };
    const all = Array.from({ length: 4 + 256 }, () => watch(calls.call(WHAT, run, BACKGROUND)));
    const tooMany = watch(calls.call(WHAT, run, BACKGROUND));
    await clock.advance(0);
    expect([begun, tooMany.error]).toEqual([4, unavailable]);
    expect(tooMany.error).toHaveProperty('message', expect.stringContaining('too many calls at once'));
    expect(all.every(({ error }) => error === undefined)).toBe(true);
  });

  test('a call leaves no timer when it has ended, and its signal aborts if it failed, but not if it succeeded', async () => {
    const { calls, clock, closing } = setUp();
    const signals: AbortSignal[] = [];
    const answers = watch(calls.call(WHAT, async (signal) => [signals.push(signal)], BACKGROUND));
    const refuses = watch(
      calls.call(
        WHAT,
        async (signal) => {
          signals.push(signal);
          throw fails('denied');
        },
        BACKGROUND,
      ),
    );
    await clock.advance(0);
    expect([answers.value, refuses.error]).toEqual([[1], fails('denied')]);
    expect(clock.timers).toBe(0);
    closing.abort(new Error('closed'));
    await clock.advance(10);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test('discards an answer that comes after its deadline or close, but never one that is used (F22)', async () => {
    const { calls, clock, closing } = setUp();
    const discarded: string[] = [];
    const call = (answer: string, seconds: number): { readonly value?: string; readonly error?: unknown } =>
      watch(
        calls.call(
          WHAT,
          () => pause(clock, seconds * 1_000).then(() => answer),
          BACKGROUND,
          (late) => void discarded.push(late),
        ),
      );
    const [taken, late] = [call('taken', 4), call('late', 6)];
    await clock.advance(5.5);
    const closed = call('closed', 1);
    closing.abort(new Error('closed'));
    await clock.advance(2);
    expect([taken.value, late.error, closed.error]).toEqual(['taken', unavailable, unavailable]);
    expect(discarded).toEqual(['late', 'closed']);
  });
});

describe('an error thrown by a key wrapper', () => {
  /** An error as thrown by an adapter's own copy of this package. */
  function foreign(name: string, more: object): Error {
    return Object.assign(new Error('canary'), { name }, more);
  }

  async function failureOf(thrown: unknown, how: 'reject' | 'throw' = 'reject'): Promise<unknown> {
    const { calls, clock } = setUp();
    const run = (): Promise<never> => {
      if (how === 'throw') throw thrown;
      return Promise.reject(thrown);
    };
    const seen = watch(calls.call(WHAT, run, BACKGROUND));
    await clock.advance(0);
    return seen.error;
  }

  test('a KeyWrapperError is passed on unchanged, whether it is thrown synchronously or later', async () => {
    const failure = fails('denied');
    expect(await failureOf(failure)).toBe(failure);
    expect(await failureOf(failure, 'throw')).toBe(failure);
  });

  test('a KeyWrapperError of another copy of the class is recognized by name and kind, and loses its text', async () => {
    for (const kind of KINDS) {
      const failure = await failureOf(foreign('KeyWrapperError', { kind }));
      expect(failure).toBeInstanceOf(KeyWrapperError);
      // It must be an error: anything else would count as an unknown answer.
      expect(failure).toEqual(fails(kind));
      expect(failure).toHaveProperty('summary', WHAT);
      expect(String(failure)).not.toContain('canary');
    }
  });

  test.each([
    ['an error', foreign('Error', {})],
    ['an error of another class with a kind', foreign('AccessDeniedException', { kind: 'denied' })],
    ['an error with a kind that we do not know', foreign('KeyWrapperError', { kind: 'gone' })],
    ['an error with a kind that every object has', foreign('KeyWrapperError', { kind: 'constructor' })],
    ['an error without a kind', foreign('KeyWrapperError', {})],
    ['a value that is not an error', { name: 'KeyWrapperError', kind: 'denied', message: 'canary' }],
    ['a text', 'canary'],
    ['nothing', undefined],
    ['null', null],
  ])('a value that is not a KeyWrapperError is never a refusal: %s (F10)', async (_, thrown) => {
    for (const how of ['reject', 'throw'] as const) {
      const failure = await failureOf(thrown, how);
      expect(failure).toBeInstanceOf(KeyWrapperError);
      expect(failure).toMatchObject({ kind: 'unavailable', summary: WHAT });
      expect(String(failure)).not.toContain('canary');
    }
  });
});

describe('the last answer of a key wrapper', () => {
  test('the last failure counts the attempts of all calls since the last success', () => {
    const answer = new LastAnswer();
    expect(answer.failure).toBeUndefined();
    answer.failed(fails('throttled'));
    answer.failed(new KeyWrapperError('denied', { ...WHAT, attempts: 3 }));
    expect(answer.failure).toMatchObject({ kind: 'denied', summary: { ...WHAT, attempts: 4 } });
    answer.succeeded();
    expect(answer.failure).toBeUndefined();
    answer.failed(fails('denied'));
    expect(answer.failure?.summary.attempts).toBe(1);
  });

  test.each<readonly [string, number, boolean, KeyWrapperErrorKind]>([
    ['keeps an earlier failure if the caller had less time than a call may take', 4.9, true, 'denied'],
    ['is the missing answer if the call had its whole time', 5, true, 'unavailable'],
    ['is the missing answer if no other is known', 4.9, false, 'unavailable'],
  ])('the last answer %s', async (_, seconds, hasFailed, kind) => {
    const { calls, clock } = setUp();
    const answer = new LastAnswer();
    if (hasFailed) answer.failed(fails('denied'));
    const options = { foreground: true, until: later(momentOf(clock), seconds * 1_000) };
    const seen = watch(calls.call(WHAT, () => new Promise<never>(() => undefined), options, undefined, answer));
    await clock.advance(5);
    expect(seen.error).toMatchObject({ kind: 'unavailable' });
    expect(answer.failure?.kind).toBe(kind);
  });

  test('a success clears the last answer', async () => {
    const { calls } = setUp();
    const answer = new LastAnswer();
    answer.failed(fails('denied'));
    await calls.call(WHAT, async () => 'answer', BACKGROUND, undefined, answer);
    expect(answer.failure).toBeUndefined();
  });
});

describe('the events of calls', () => {
  const events = new EventLog();
  beforeEach(() => {
    events.clear();
    events.listen();
  });
  afterEach(() => events.end());

  test('each call emits its outcome and its duration, until the codec is closed', async () => {
    const { calls, clock, closing } = setUp();
    const slow = watch(calls.call(WHAT, () => pause(clock, 500), BACKGROUND));
    await clock.advance(0.5);
    expect(slow).toEqual({ value: undefined });
    const failing = () => calls.call(WHAT, () => Promise.reject(fails('denied')), BACKGROUND);
    await expect(failing()).rejects.toMatchObject({ kind: 'denied' });
    const seen = [
      { ...WHAT, seconds: 0.5, ok: true },
      { ...WHAT, seconds: 0, ok: false, kind: 'denied' },
    ];
    expect(events.of('kms-call')).toEqual(seen);
    closing.abort(undefined);
    await expect(failing()).rejects.toBeDefined();
    expect(events.of('kms-call')).toEqual(seen);
  });
});

describe('a pause that may end early', () => {
  test('a call outlasts a pause only if it has neither resolved nor rejected when the pause ends', async () => {
    const { calls, clock } = setUp();
    const asked = [new Promise(() => undefined), Promise.resolve(), Promise.reject(fails('denied'))];
    const seen = asked.map((call) => watch(calls.outlasts(call, 500)));
    await clock.advance(0.5);
    expect(seen).toEqual([{ value: true }, { value: false }, { value: false }]);
  });

  test('a pause ends when its time is over', async () => {
    const { calls, clock } = setUp();
    const seen = watch(calls.pauseOr(500, new Promise(() => undefined)).then(() => 'over'));
    await clock.advance(0.499);
    expect(seen).toEqual({});
    await clock.advance(0.001);
    expect(seen).toEqual({ value: 'over' });
  });

  test('a pause ends early with its event, and leaves no timer behind', async () => {
    const { calls, clock } = setUp();
    const seen = watch(calls.pauseOr(500, Promise.resolve()).then(() => 'over'));
    await clock.advance(0);
    expect(seen).toEqual({ value: 'over' });
    expect(clock.timers).toBe(0);
  });
});
