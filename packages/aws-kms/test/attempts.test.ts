import { describe, expect, test } from 'vitest';
import { attempt, backoffMs } from '../src/attempts.ts';

const LIMITS = { timeoutMs: 20, maxAttempts: 3 };

function failing(name: string): () => Promise<never> {
  return () => Promise.reject(Object.assign(new Error(name), { name }));
}

describe('attempts', () => {
  test('F6: pauses have full jitter, double from 100 ms, and end at 2 s', () => {
    expect(backoffMs(1, 0)).toBe(0);
    expect([1, 2, 3, 4, 5, 6, 50].map((failures) => backoffMs(failures, 1))).toEqual([
      100, 200, 400, 800, 1600, 2000, 2000,
    ]);
    expect(backoffMs(2, 0.25)).toBe(50);
  });

  test('an answer is handed on as it is', async () => {
    const answer = {};
    const outcome = await attempt(() => Promise.resolve(answer), LIMITS, new AbortController().signal);
    expect(outcome).toEqual({ answer });
  });

  test.each(['denied', 'disabled', 'not-found', 'corrupt'])('law 3: %s is not tried again', async (kind) => {
    const names = {
      denied: 'AccessDeniedException',
      disabled: 'DisabledException',
      'not-found': 'NotFoundException',
      corrupt: 'InvalidCiphertextException',
    };
    const name = new Map(Object.entries(names)).get(kind) ?? '';
    const outcome = await attempt(failing(name), LIMITS, new AbortController().signal);
    expect(outcome).toMatchObject({ failure: { kind, code: name }, attempts: 1 });
  });

  test.each([
    ['throttled', 'ThrottlingException'],
    ['unavailable', 'KeyUnavailableException'],
  ])('law 3: %s is tried again, maxAttempts times in all', async (kind, name) => {
    let calls = 0;
    const send = (): Promise<never> => {
      calls++;
      return failing(name)();
    };
    const outcome = await attempt(send, LIMITS, new AbortController().signal);
    expect(outcome).toMatchObject({ failure: { kind, code: name }, attempts: 3 });
    expect(calls).toBe(3);
  });

  test('F29: each attempt ends at its deadline and is told so, and one that answers after it has its key overwritten', async () => {
    const answers: Uint8Array[] = [];
    const signals: AbortSignal[] = [];
    const late: (() => void)[] = [];
    const send = (signal: AbortSignal): Promise<unknown> => {
      signals.push(signal);
      const Plaintext = new Uint8Array(32).fill(7);
      answers.push(Plaintext);
      return new Promise((resolve) => late.push(() => resolve({ Plaintext })));
    };
    const outcome = await attempt(send, LIMITS, new AbortController().signal);
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 3 });
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true, true]);
    for (const answer of late) answer();
    await new Promise(setImmediate);
    expect(answers).toEqual([new Uint8Array(32), new Uint8Array(32), new Uint8Array(32)]);
  });

  test('an abort ends a pause between attempts, and no attempt follows', async () => {
    const controller = new AbortController();
    let calls = 0;
    const send = (): Promise<never> => {
      calls++;
      setImmediate(() => controller.abort());
      return failing('ThrottlingException')();
    };
    const outcome = await attempt(send, { timeoutMs: 1000, maxAttempts: 10 }, controller.signal);
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' } });
    expect(calls).toBeLessThan(10);
  });

  test('an aborted signal makes no attempt at all', async () => {
    const outcome = await attempt(failing('never'), LIMITS, AbortSignal.abort());
    expect(outcome).toMatchObject({ failure: { kind: 'unavailable' }, attempts: 0 });
  });
});
