import { describe, expect, test } from 'vitest';
import { hasNoAnswer } from '../../src/adapter/aws-errors.ts';
import { noteDateHeader, noteDateOf, noteServiceTime } from '../../src/adapter/service-date.ts';

function told(note: (onServiceDate: (date: Date) => void) => void): string[] {
  const dates: string[] = [];
  note((date) => dates.push(date.toISOString()));
  return dates;
}

test('a Date header is passed on as a date', () => {
  expect(told((to) => noteDateHeader('Sat, 21 Nov 2026 03:00:00 GMT', to))).toEqual(['2026-11-21T03:00:00.000Z']);
});

describe('an invalid date', () => {
  for (const header of [undefined, null, '', 'yesterday', 1_795_000_000_000, ['Sat, 21 Nov 2026 03:00:00 GMT']]) {
    test(`an invalid Date header is not passed on: ${String(header)}`, () =>
      expect(told((to) => noteDateHeader(header, to))).toEqual([]));
  }
  for (const ms of [undefined, Number.NaN, Number.POSITIVE_INFINITY, '1795000000000', 1n]) {
    test(`an invalid time is not passed on: ${String(ms)}`, () =>
      expect(told((to) => noteServiceTime(ms, to))).toEqual([]));
  }
});

test('a missing listener is accepted', () => {
  noteServiceTime(0, undefined);
  noteDateHeader('Sat, 21 Nov 2026 03:00:00 GMT', undefined);
  const command = { input: {} };
  expect(noteDateOf(command, undefined)).toBe(command);
});

test('a command without middleware is left unchanged', () => {
  for (const command of [{}, { middlewareStack: null }, { middlewareStack: { add: 1 } }]) {
    const before = JSON.stringify(command);
    expect(noteDateOf(command, () => undefined)).toBe(command);
    expect(JSON.stringify(command)).toBe(before);
  }
});

/** A command that keeps the middleware that is added to it. */
function commandWith(added: unknown[][]) {
  return { middlewareStack: { add: (...given: unknown[]) => void added.push(given) } };
}

type Middleware = (next: unknown, context?: object) => (args: unknown) => Promise<unknown>;

test('the date of an answer to a command is passed on, and the answer is returned', async () => {
  const added: unknown[][] = [];
  const command = commandWith(added);
  const dates: Date[] = [];
  expect(noteDateOf(command, (date) => dates.push(date))).toBe(command);
  const [[middleware, options]] = added as [[Middleware, unknown]];
  expect(options).toEqual({ step: 'deserialize', priority: 'low', name: 'sealringServiceDate' });
  const answers = [{ response: { headers: { date: 'Thu, 01 Jan 1970 00:00:01 GMT' } } }, { response: {} }, {}];
  for (const answer of answers) expect(await middleware(async () => answer)('x')).toBe(answer);
  expect(dates).toEqual([new Date(1_000)]);
});

test('an error is marked if no answer preceded it in the same call, and is passed on', async () => {
  const added: unknown[][] = [];
  noteDateOf(commandWith(added), undefined);
  const [[noteAnswer], [noteFailure, options]] = added as [[Middleware], [Middleware, unknown]];
  expect(options).toEqual({ step: 'initialize', priority: 'high', name: 'sealringNoAnswer' });
  const refused = new Error('refused by the service');
  const noCredentials = new Error('refused by another service');
  const answered = {};
  const answer = noteAnswer(async () => ({}), answered);
  const refusal = async (args: unknown): Promise<never> => {
    await answer(args);
    throw refused;
  };
  await expect(noteFailure(refusal, answered)('x')).rejects.toBe(refused);
  await expect(noteFailure(() => Promise.reject(noCredentials), {})('x')).rejects.toBe(noCredentials);
  await expect(noteFailure(() => Promise.reject('text'), {})('x')).rejects.toBe('text');
  expect([refused, noCredentials, 'text', undefined].map(hasNoAnswer)).toEqual([false, true, false, false]);
});
