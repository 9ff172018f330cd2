import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { ATTEMPTS, type Calls, keyWrapperCalls, storeCalls } from '../../src/adapter/calls.ts';
import type { ServiceFailure, StoreFailure } from '../../src/adapter/failures.ts';
import { backoffMs } from '../../src/base/retry.ts';

const LIMITS = { timeoutMs: 20, maxAttempts: 3 };
const LONG_MS = 60_000;

/** An error with its own kind, unlike any vendor's. */
class Refusal extends Error {
  readonly kind: ServiceFailure['kind'];
  constructor(kind: ServiceFailure['kind']) {
    super('canary');
    this.kind = kind;
  }
}

function classify(error: unknown): ServiceFailure {
  return { kind: error instanceof Refusal ? error.kind : 'unavailable', code: 'classified' };
}

function classifyForStore(error: unknown): StoreFailure<'denied' | 'unavailable'> {
  return { kind: error instanceof Refusal ? 'denied' : 'unavailable', detail: 'classified' };
}

function failing(kind: ServiceFailure['kind'], asked?: () => void): () => Promise<never> {
  return async () => {
    asked?.();
    throw new Refusal(kind);
  };
}

function withResolvers<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((given) => {
    resolve = given;
  });
  return { promise, resolve };
}

/** A call that never ends, whatever its signal says; `began` resolves to the signal of the first attempt. */
function hanging(): { readonly call: (signal: AbortSignal) => Promise<never>; readonly began: Promise<AbortSignal> } {
  const { promise: began, resolve } = withResolvers<AbortSignal>();
  const call = (signal: AbortSignal): Promise<never> => {
    resolve(signal);
    return new Promise(() => undefined);
  };
  return { call, began };
}

const SORTS: readonly (readonly [string, string, (timeoutMs: number) => Calls<{ readonly kind: string }>])[] = [
  ['a store', 'the store is closed', (timeoutMs) => storeCalls<string>(timeoutMs, classifyForStore)],
  [
    'a key wrapper',
    'the key wrapper is closed',
    (timeoutMs) => Object(keyWrapperCalls({ timeoutMs, maxAttempts: 1 }, classify)),
  ],
];

describe.each(SORTS)('calls of %s', (_, closed, callsWithin) => {
  test('an answer is returned unchanged, and its signal is not aborted', async () => {
    const answer = {};
    let signal: AbortSignal | undefined;
    const outcome = await callsWithin(LONG_MS).run(undefined, async (given) => {
      signal = given;
      return { answer };
    });
    expect(outcome).toEqual({ answer });
    expect(outcome).toHaveProperty('answer', answer);
    expect(signal?.aborted).toBe(false);
  });

  test('a failure that the call returns is passed on, and the signal aborts because the rest of the answer is not read', async () => {
    const failure = { kind: 'corrupt' };
    let signal: AbortSignal | undefined;
    const outcome = await callsWithin(LONG_MS).run(undefined, async (given) => {
      signal = given;
      return { failure };
    });
    expect(outcome).toEqual({ failure, attempts: 1 });
    expect(signal?.aborted).toBe(true);
  });

  test('rejections and synchronous errors are classified, and no part of them is kept', async () => {
    const calls = callsWithin(LONG_MS);
    const thrown = (): never => {
      throw new Refusal('denied');
    };
    for (const call of [failing('denied'), thrown]) {
      const outcome = await calls.run(undefined, call);
      expect(outcome).toMatchObject({ failure: { kind: 'denied' }, attempts: 1 });
      expect(JSON.stringify(outcome)).not.toContain('canary');
    }
  });

  test('a call that ignores its signal ends at its deadline (F29)', async () => {
    const { call, began } = hanging();
    const outcome = await callsWithin(20).run(undefined, call);
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 1 });
    expect(JSON.stringify(outcome)).toContain('no answer within callTimeoutSeconds');
    expect((await began).aborted).toBe(true);
  });

  test('an abort by the caller ends a call at once, and aborts its signal', async () => {
    const controller = new AbortController();
    const { call, began } = hanging();
    const outcome = callsWithin(LONG_MS).run(controller.signal, call);
    const own = await began;
    controller.abort();
    expect(JSON.stringify(await outcome)).toContain('aborted by the caller');
    expect(own.aborted).toBe(true);
  });

  test('an aborted signal prevents any attempt', async () => {
    let asked = 0;
    const outcome = await callsWithin(LONG_MS).run(
      AbortSignal.abort(),
      failing('denied', () => asked++),
    );
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 0 });
    expect(asked).toBe(0);
  });

  test('close ends pending calls, and later calls fail at once', async () => {
    const calls = callsWithin(LONG_MS);
    const { call, began } = hanging();
    const first = calls.run(undefined, call);
    const second = calls.run(undefined, hanging().call);
    const own = await began;
    calls.close();
    for (const outcome of [await first, await second]) {
      expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 1 });
      expect(JSON.stringify(outcome)).toContain(closed);
    }
    expect(own.aborted).toBe(true);
    let asked = 0;
    const later = await calls.run(
      undefined,
      failing('denied', () => asked++),
    );
    expect(JSON.stringify(later)).toContain(closed);
    expect(later).toMatchObject({ attempts: 0 });
    expect(asked).toBe(0);
  });

  test('an answer that comes too late is discarded, and one in time is not (F22)', async () => {
    const calls = callsWithin(20);
    const discarded: unknown[] = [];
    const { promise, resolve } = withResolvers<{ readonly answer: string }>();
    const late = await calls.run(
      undefined,
      () => promise,
      (answer) => discarded.push(answer),
    );
    expect(late).toMatchObject({ failure: { kind: 'unavailable' } });
    resolve({ answer: 'late' });
    await new Promise(setImmediate);
    await calls.run(
      undefined,
      async () => ({ answer: 'in time' }),
      (answer) => discarded.push(answer),
    );
    await new Promise(setImmediate);
    expect(discarded).toEqual(['late']);
  });

  test('the listener on the signal of the caller is removed when the call has ended', async () => {
    const { signal } = new AbortController();
    const calls = callsWithin(20);
    await calls.run(signal, async () => ({ answer: 1 }));
    await calls.run(signal, failing('denied'));
    await calls.run(signal, hanging().call);
    await keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 2 }, classify).run(signal, failing('throttled'));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('attempts of a key wrapper', () => {
  test('pauses have full jitter, double from 100 ms, and are at most 2 s (F6)', () => {
    expect(backoffMs(ATTEMPTS, 1, 0)).toBe(0);
    expect([1, 2, 3, 4, 5, 6, 50].map((failures) => backoffMs(ATTEMPTS, failures, 1))).toEqual([
      100, 200, 400, 800, 1600, 2000, 2000,
    ]);
    expect(backoffMs(ATTEMPTS, 2, 0.25)).toBe(50);
  });

  test.each(['denied', 'disabled', 'not-found', 'corrupt'] as const)(
    'a call that fails as %s is not retried (adapter rule 3)',
    async (kind) => {
      let asked = 0;
      const outcome = await keyWrapperCalls(LIMITS, classify).run(
        undefined,
        failing(kind, () => asked++),
      );
      expect(outcome).toEqual({ failure: { kind, code: 'classified' }, attempts: 1 });
      expect(asked).toBe(1);
    },
  );

  test.each(['throttled', 'unavailable'] as const)(
    'a call that fails as %s is retried, up to maxAttempts attempts (adapter rule 3)',
    async (kind) => {
      let asked = 0;
      const outcome = await keyWrapperCalls(LIMITS, classify).run(
        undefined,
        failing(kind, () => asked++),
      );
      expect(outcome).toEqual({ failure: { kind, code: 'classified' }, attempts: 3 });
      expect(asked).toBe(3);
    },
  );

  test('an answer after a failure is returned', async () => {
    let asked = 0;
    const outcome = await keyWrapperCalls(LIMITS, classify).run(undefined, async () => {
      asked++;
      if (asked === 1) throw new Refusal('throttled');
      return { answer: asked };
    });
    expect(outcome).toEqual({ answer: 2 });
  });

  test('mayPass can end the attempts early, but cannot cause another attempt after a final failure', async () => {
    const asked: [string, number][] = [];
    const calls = keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 10 }, classify, ({ kind }, attempts) => {
      asked.push([kind, attempts]);
      return attempts < 2;
    });
    expect(await calls.run(undefined, failing('unavailable'))).toMatchObject({ attempts: 2 });
    expect(await calls.run(undefined, failing('denied'))).toMatchObject({ attempts: 1 });
    expect(asked).toEqual([
      ['unavailable', 1],
      ['unavailable', 2],
    ]);
  });

  test('an abort by the caller is not passed to mayPass', async () => {
    const asked: string[] = [];
    const calls = keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 10 }, classify, ({ kind }) => {
      asked.push(kind);
      return true;
    });
    const outcome = calls.run(AbortSignal.timeout(20), () => new Promise(() => undefined));
    expect(await outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 1 });
    expect(asked).toEqual([]);
  });

  test('each attempt ends at its own deadline, and a late answer to any of them is discarded (F29)', async () => {
    const answers: Uint8Array[] = [];
    const signals: AbortSignal[] = [];
    const late: (() => void)[] = [];
    const outcome = await keyWrapperCalls(LIMITS, classify).run<Uint8Array>(
      undefined,
      (signal) => {
        signals.push(signal);
        const answer = new Uint8Array(32).fill(7);
        answers.push(answer);
        return new Promise((resolve) => late.push(() => resolve({ answer })));
      },
      (answer) => answer.fill(0),
    );
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 3 });
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true, true]);
    for (const answer of late) answer();
    await new Promise(setImmediate);
    expect(answers).toEqual([new Uint8Array(32), new Uint8Array(32), new Uint8Array(32)]);
  });

  test.each(['abort', 'close'] as const)('%s ends a pause between attempts, and no attempt follows', async (how) => {
    const controller = new AbortController();
    const calls = keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 10 }, classify);
    let asked = 0;
    const outcome = await calls.run(
      controller.signal,
      failing('throttled', () => {
        asked++;
        setImmediate(() => (how === 'abort' ? controller.abort() : calls.close()));
      }),
    );
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' } });
    expect(asked).toBeLessThan(10);
  });
});

describe('timers', () => {
  /** Timers that keep the process alive. */
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const calls = keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 10 }, classify);

  test('a deadline does not keep the process alive', async () => {
    const controller = new AbortController();
    const before = timers();
    const outcome = calls.run(controller.signal, hanging().call);
    expect(timers()).toBe(before);
    controller.abort();
    await outcome;
  });

  test('a pause between attempts keeps the process alive, because no socket does', async () => {
    const controller = new AbortController();
    const before = timers();
    const outcome = calls.run(controller.signal, failing('throttled'));
    // No timer can end meanwhile.
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
    expect(timers()).toBe(before + 1);
    controller.abort();
    await outcome;
    expect(timers()).toBe(before);
  });

  test.each(['abort', 'close'] as const)('no pause follows %s during an attempt', async (how) => {
    const controller = new AbortController();
    const own = keyWrapperCalls({ timeoutMs: LONG_MS, maxAttempts: 10 }, classify);
    const outcome = own.run(controller.signal, hanging().call);
    const before = timers();
    if (how === 'abort') controller.abort();
    else own.close();
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
    expect(timers()).toBe(before);
    expect(await outcome).toMatchObject({ attempts: 1 });
  });
});

test('a store makes one attempt, because the ring repeats the calls that a caller waits for', async () => {
  let asked = 0;
  const outcome = await storeCalls(LONG_MS, classifyForStore).run(undefined, async () => {
    asked++;
    throw new Error('canary');
  });
  expect(outcome).toEqual({ failure: { kind: 'unavailable', detail: 'classified' }, attempts: 1 });
  expect(asked).toBe(1);
});

test('a classification that throws makes the call unavailable, and does not end the process', async () => {
  const calls = storeCalls(LONG_MS, (error): StoreFailure => {
    throw error;
  });
  const outcome = await calls.run(undefined, () => Promise.reject(new Error('canary')));
  expect(outcome).toEqual({ failure: { kind: 'unavailable', detail: 'the call failed' }, attempts: 1 });
});
