import { describe, expect, test } from 'vitest';
import { keyWrapperError } from '../../src/adapter/failures.ts';
import {
  findRow,
  kindOfStatus,
  property,
  requestIdOf,
  sameRow,
  statusOf,
  unexplained,
} from '../../src/adapter/foreign-errors.ts';

const REQUEST_ID = '0d2ee5c1-56b1-4a5e-9e0c-0f8a3c1f2b7d';

function throws(): never {
  throw new Error('canary');
}

describe('a property of a foreign object', () => {
  test('a property of a foreign object is read from the object and from its class', () => {
    expect(property({ name: 'own' }, 'name')).toBe('own');
    expect(property(new TypeError('x'), 'name')).toBe('TypeError');
    expect(
      property(
        Object.assign(() => 1, { code: 7 }),
        'code',
      ),
    ).toBe(7);
    expect(property({ name: undefined }, 'name')).toBeUndefined();
  });

  test.each([[undefined], [null], ['text'], [7], [Symbol('x')], [{}], [Object.create(null)]])(
    'a property of a foreign object is absent in %o',
    (holder) => {
      expect(property(holder, 'name')).toBeUndefined();
    },
  );

  test('a property is never read through a getter or a proxy, in the object or in its prototype chain (F33)', () => {
    const own = {
      get name(): string {
        return throws();
      },
    };
    class Inherited {
      get name(): string {
        return throws();
      }
    }
    const proxy = new Proxy({}, { getOwnPropertyDescriptor: throws, getPrototypeOf: throws, get: throws });
    for (const holder of [own, new Inherited(), proxy, Object.create(proxy)]) {
      expect(property(holder, 'name')).toBeUndefined();
    }
  });
});

describe('facts kept from an answer', () => {
  test.each([[100], [204], [599]])('%i is a status', (status) => {
    expect(statusOf(status)).toBe(status);
  });

  test.each([[99], [600], [403.5], [Number.NaN], ['403'], [undefined], [null]])('%o is not a status', (status) => {
    expect(statusOf(status)).toBeUndefined();
  });

  test('a request id is kept only in the form of a UUID, which has no room for a key (F33)', () => {
    expect(requestIdOf(REQUEST_ID)).toBe(REQUEST_ID);
    expect(requestIdOf(REQUEST_ID.toUpperCase())).toBe(REQUEST_ID.toUpperCase());
    for (const text of ['ab'.repeat(32), `${REQUEST_ID}\n`, ` ${REQUEST_ID}`, `x${REQUEST_ID}`, '', 7, undefined]) {
      expect(requestIdOf(text)).toBeUndefined();
    }
  });

  test('a status means denied, not-found or throttled, and any other status means unavailable (adapter rule 2)', () => {
    const kinds = [401, 403, 404, 429, 200, 400, 408, 409, 500, 503, undefined].map((status) => kindOfStatus(status));
    expect(kinds).toEqual(['denied', 'denied', 'not-found', 'throttled', ...Array(7).fill('unavailable')]);
  });

  test('an unexplained failure of a store is unavailable, with its status if that is an error status', () => {
    expect(unexplained(503)).toEqual({ kind: 'unavailable', detail: 'the call failed (status 503)' });
    expect(unexplained(300)).toEqual({ kind: 'unavailable', detail: 'the call failed (status 300)' });
    for (const status of [undefined, 299, 600, '503', 'canary']) {
      expect(unexplained(status)).toEqual({ kind: 'unavailable', detail: 'the call failed' });
    }
  });
});

describe('error tables', () => {
  const table = { A: { kind: 'a' }, B: { kind: 'b' } };

  test('the first candidate with a row determines the result', () => {
    expect(findRow(table, ['B', 'A'])).toEqual({ code: 'B', row: table.B });
    expect(findRow(table, [undefined, 7, 'C', 'A'])).toEqual({ code: 'A', row: table.A });
    expect(findRow(table, ['C'])).toBeUndefined();
    expect(findRow(table, [])).toBeUndefined();
  });

  test('a row that does not apply is skipped', () => {
    expect(findRow(table, ['A', 'B'], ({ kind }) => kind !== 'a')).toEqual({ code: 'B', row: table.B });
    expect(findRow(table, ['A'], () => false)).toBeUndefined();
  });

  test('sameRow gives every code the same row', () => {
    expect(sameRow(['A', 'B'], { kind: 'a' })).toEqual({ A: { kind: 'a' }, B: { kind: 'a' } });
  });

  test.each([['constructor'], ['__proto__'], ['toString'], [Object('A')]])(
    '%o is not a row of any table (F17)',
    (code) => {
      expect(findRow(table, [code])).toBeUndefined();
    },
  );
});

test('the error of a failed call has the facts of the failure and the number of attempts', () => {
  const failure = { kind: 'throttled', code: 'SlowDown', status: 429, requestId: REQUEST_ID, hint: 'wait' } as const;
  const error = keyWrapperError('a-kms', 'wrap', { failure, attempts: 3 });
  expect(error).toMatchObject({ name: 'KeyWrapperError', kind: 'throttled' });
  const { kind: _, ...facts } = failure;
  expect(error.summary).toEqual({ provider: 'a-kms', operation: 'wrap', ...facts, attempts: 3 });
});
