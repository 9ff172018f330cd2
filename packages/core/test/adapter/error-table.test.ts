import { expect, test } from 'vitest';
import { errorTable, storeFailure } from '../../src/adapter/error-table.ts';

const store = {
  service: 'the service',
  table: errorTable([
    ['denied', 'no permission', 'A B'],
    ['absent', 'not there', 'C', 404],
  ]),
  byStatus: errorTable([['conflict', 'another one', '409 412']]),
};

test('an error table has a row for each code', () => {
  const row = { kind: 'denied', detail: 'no permission', status: undefined };
  expect(store.table).toEqual({ A: row, B: row, C: { kind: 'absent', detail: 'not there', status: 404 } });
  expect(Object.isFrozen(store.table)).toBe(true);
});

test.each([
  [
    'the first code of the table',
    409,
    ['x', 7, 'B', 'A'],
    { kind: 'denied', detail: 'no permission (B)', serviceCode: 'B' },
  ],
  ['a code under its status', 404, ['C'], { kind: 'absent', detail: 'not there (C)', serviceCode: 'C' }],
  ['a code under another status', 400, ['C'], { kind: 'unavailable', detail: 'the call failed (status 400)' }],
  ['the status', 412, ['C', '409'], { kind: 'conflict', detail: 'another one (status 412)' }],
  ['a status as text', '412', [], { kind: 'unavailable', detail: 'the call failed' }],
  ['a name of Object.prototype', undefined, ['constructor'], { kind: 'unavailable', detail: 'the call failed' }],
])('the kind of a store failure follows from %s', (_, status, codes, failure) => {
  expect(storeFailure(store, undefined, status, codes)).toEqual(failure);
});

test('a failure without a status reports why no answer came, whatever is thrown (F33)', () => {
  const proxy = new Proxy({}, { getOwnPropertyDescriptor: () => expect.unreachable() });
  const lost = { kind: 'unavailable', serviceCode: 'EPIPE' };
  expect(storeFailure(store, { code: 'EPIPE' }, undefined, [])).toMatchObject(lost);
  for (const error of [{ code: 'EPIPE' }, proxy, null])
    expect(storeFailure({ service: '', table: {} }, error, 500, [])).toEqual({
      kind: 'unavailable',
      detail: 'the call failed (status 500)',
    });
  expect(storeFailure(store, proxy, undefined, [])).toEqual({ kind: 'unavailable', detail: 'the call failed' });
});
