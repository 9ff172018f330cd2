import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE } from '../src/error-table.ts';

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED = [
  ['denied', /refused the login/, '28000 28P01'],
  ['denied', /permission/, '42501'],
  ['unavailable', /migration/, '42P01 3F000'],
  ['unavailable', /database is missing/, '3D000'],
  ['corrupt', /migration/, '42703 42804 42883 42P10 23502'],
  ['too-large', /size limit/, '23514'],
  ['unavailable', /read-only/, '25006'],
  ['unavailable', /another transaction/, '40001 40P01'],
  ['unavailable', /disk/, '53100'],
  ['unavailable', /memory/, '53200'],
  ['unavailable', /connections/, '53300'],
  ['unavailable', /held the row/, '55P03'],
  ['unavailable', /statement_timeout/, '57014'],
  ['unavailable', /at the moment/, '57P01 57P02 57P03 08000 08003 08006'],
] as const;
const ROWS = EXPECTED.flatMap(([kind, hint, codes]) => codes.split(' ').map((code) => ({ code, kind, hint })));
const NO_TLS = 'The server does not support SSL connections';

describe('classification of errors by SQLSTATE', () => {
  test.each(ROWS)('$code is classified as $kind, with a hint that names the fix', ({ code, kind, hint }) => {
    const failure = classify({ code, message: 'canary text' });
    expect(failure).toEqual({ kind, serviceCode: code, detail: expect.stringMatching(hint) });
    expect(failure.detail).not.toContain('canary');
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(({ code }) => code).toSorted());
  });

  test.each([
    [{ code: 'ECONNREFUSED', message: 'canary' }, /^the server cannot be reached: .+ECONNREFUSED/],
    [new Error(NO_TLS), /^the server does not use TLS: .+ERR_POSTGRES_NO_TLS/],
  ])('%o is classified as unavailable, with a hint that names the fix', (error, hint) => {
    expect(classify(error)).toMatchObject({ kind: 'unavailable', detail: expect.stringMatching(hint) });
  });

  test.each(['28', 'XX000', '42P02', '__proto__', 42_501, undefined])(
    'the code %o is classified as unavailable',
    (code) => {
      expect(classify({ code, message: `${NO_TLS}.` })).toEqual({ kind: 'unavailable', detail: 'the call failed' });
    },
  );
});
