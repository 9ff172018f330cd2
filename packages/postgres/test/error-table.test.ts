import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE } from '../src/error-table.ts';

// Repeated here on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: readonly (readonly [code: string, kind: string, hint: RegExp])[] = [
  ['28000', 'denied', /refused the user/],
  ['28P01', 'denied', /refused the user/],
  ['42501', 'denied', /permission/],
  ['42P01', 'unavailable', /migration/],
  ['3F000', 'unavailable', /migration/],
  ['3D000', 'unavailable', /database is missing/],
  ['42703', 'corrupt', /migration/],
  ['42804', 'corrupt', /migration/],
  ['42883', 'corrupt', /migration/],
  ['42P10', 'corrupt', /migration/],
  ['23502', 'corrupt', /migration/],
  ['23514', 'too-large', /bound/],
  ['25006', 'unavailable', /read-only/],
  ['40001', 'unavailable', /another transaction/],
  ['40P01', 'unavailable', /another transaction/],
  ['53100', 'unavailable', /disk/],
  ['53200', 'unavailable', /memory/],
  ['53300', 'unavailable', /connections/],
  ['55P03', 'unavailable', /held the row/],
  ['57014', 'unavailable', /statement_timeout/],
  ['57P01', 'unavailable', /at the moment/],
  ['57P02', 'unavailable', /at the moment/],
  ['57P03', 'unavailable', /at the moment/],
  ['08000', 'unavailable', /at the moment/],
  ['08003', 'unavailable', /at the moment/],
  ['08006', 'unavailable', /at the moment/],
];

describe('errors are classified by SQLSTATE', () => {
  test.each(EXPECTED)('%s is %s', (code, kind, hint) => {
    const failure = classify({ code, message: 'canary text' });
    expect(failure).toEqual({ kind, serviceCode: code, detail: expect.stringMatching(hint) });
    expect(failure.detail).not.toContain('canary');
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(EXPECTED.map(([code]) => code).toSorted());
  });

  test.each([['28'], ['XX000'], ['42P02'], ['__proto__'], [28_000], [undefined]])(
    'the code %o is unavailable, never absent',
    (code) => {
      expect(classify({ code })).toMatchObject({ kind: 'unavailable' });
      expect(classify({ code }).serviceCode).toBeUndefined();
    },
  );

  test('a server without TLS is recognized by the whole message alone', () => {
    const message = 'The server does not support SSL connections';
    expect(classify(new Error(message))).toMatchObject({ kind: 'unavailable', serviceCode: 'ERR_POSTGRES_NO_TLS' });
    expect(classify(new Error(`${message}.`)).serviceCode).toBeUndefined();
  });

  test.each([[undefined], [null], ['28000'], [7]])('%o has no code', (thrown) => {
    expect(classify(thrown)).toMatchObject({ kind: 'unavailable' });
  });
});
