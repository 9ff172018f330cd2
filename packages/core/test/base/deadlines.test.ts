import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Closing } from '../../src/base/closing.ts';
import { type CallLimits, Deadlines } from '../../src/base/deadlines.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

let clock: VirtualClock;
let closing: Closing;
beforeEach(() => {
  clock = new VirtualClock('2026-11-21T03:00:00Z');
  closing = new Closing();
});

/** A call that answers on request, and its result: the answer, or the reason why it was given up. */
function called(limits?: CallLimits<string>) {
  let answer: (text: string) => void = () => undefined;
  let signal: AbortSignal | undefined;
  const start = (given: AbortSignal): Promise<string> => {
    signal = given;
    return new Promise((resolve) => void (answer = resolve));
  };
  const calls = new Deadlines(clock, 5_000, closing);
  const result = calls.run(start, (reason) => new Error(reason), limits).catch((error: Error) => error.message);
  return { result, answer: (text: string) => answer(text), isAborted: () => signal?.aborted };
}

describe('an answer after the deadline', () => {
  test.each([
    [5, 'answer', []],
    [5.001, 'late', [['answer']]],
  ])('an answer after %d s in a process that was stopped meanwhile gives: %s', async (seconds, expected, discarded) => {
    const discard = vi.fn<(answer: string) => void>();
    const { result, answer } = called({ discard });
    clock.suspend(seconds);
    answer('answer');
    expect(await result).toBe(expected);
    expect(discard.mock.calls).toEqual(discarded);
  });

  test('an answer after the deadline is passed to discard, if there is such a function', async () => {
    const discard = vi.fn<(answer: string) => void>();
    for (const limits of [{ discard }, {}]) {
      const { result, answer, isAborted } = called(limits);
      await clock.advance(5);
      expect([await result, isAborted()]).toEqual(['late', true]);
      answer('answer');
      await clock.advance(0);
    }
    expect(discard.mock.calls).toEqual([['answer']]);
  });
});

test('a call ends for the first reason that occurs, and does not begin if one has already occurred', async () => {
  const controller = new AbortController();
  const aborted = called({ signal: controller.signal });
  const closed = called();
  const soon = called({ atMostMs: 1_000 });
  await clock.advance(1);
  expect([await soon.result, closed.isAborted()]).toEqual(['late', false]);
  const answered = called({ signal: controller.signal });
  answered.answer('answer');
  expect([await answered.result, getEventListeners(controller.signal, 'abort').length]).toEqual(['answer', 1]);
  controller.abort();
  expect([await aborted.result, aborted.isAborted()]).toEqual(['aborted', true]);
  expect(await called({ signal: controller.signal }).result).toBe('aborted');
  closing.abort(undefined);
  expect([await closed.result, await called().result]).toEqual(['closed', 'closed']);
  expect(called().isAborted()).toBeUndefined();
});
