import { describe, expect, test } from 'vitest';
import { noteDateHeader, noteDateOf, noteServiceTime } from '../../src/adapter/index.ts';

function told(note: (onServiceDate: (date: Date) => void) => void): string[] {
  const dates: string[] = [];
  note((date) => dates.push(date.toISOString()));
  return dates;
}

test('a Date header is passed on as a date', () => {
  expect(told((to) => noteDateHeader('Sat, 21 Nov 2026 03:00:00 GMT', to))).toEqual(['2026-11-21T03:00:00.000Z']);
});

describe('an invalid date is not passed on', () => {
  for (const header of [undefined, null, '', 'yesterday', 1_795_000_000_000, ['Sat, 21 Nov 2026 03:00:00 GMT']]) {
    test(`header ${String(header)}`, () => expect(told((to) => noteDateHeader(header, to))).toEqual([]));
  }
  for (const ms of [undefined, Number.NaN, Number.POSITIVE_INFINITY, '1795000000000', 1n]) {
    test(`time ${String(ms)}`, () => expect(told((to) => noteServiceTime(ms, to))).toEqual([]));
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
