import { inspect } from 'node:util';
import { Pool } from 'pg';
import { describe, expect, test } from 'vitest';
import { connectionOf } from '../src/connection.ts';
import { classify, ERROR_TABLE } from '../src/error-table.ts';
import { migrate, type PostgresPool, postgresRing, postgresSingleUse, schemaSql } from '../src/index.ts';
import { readRingOptions } from '../src/options.ts';

const pool: PostgresPool = { connect: () => Promise.reject(new Error('asked')) };

function answering(rows: readonly unknown[]): PostgresPool {
  const client = { query: async () => ({ rows }), on: () => undefined, off: () => undefined, release: () => undefined };
  return { connect: async () => client };
}

describe('options', () => {
  test.each([
    [undefined, TypeError],
    [null, TypeError],
    [[], TypeError],
    [{}, TypeError],
    [{ pool, connectionString: 'postgres://127.0.0.1' }, TypeError],
    [{ pool: null }, TypeError],
    [{ pool: {} }, TypeError],
    [{ connectionString: 7 }, TypeError],
    [{ connectionString: 'mysql://:canary@127.0.0.1' }, RangeError],
    [{ connectionString: 'canary' }, RangeError],
    [{ pool, callTimeoutSeconds: '5' }, TypeError],
    [{ pool, callTimeoutSeconds: 0 }, RangeError],
    [{ pool, callTimeoutSeconds: Number.NaN }, RangeError],
    [{ pool, table: 7 }, TypeError],
    [{ pool, schema: 'x' }, TypeError],
  ])('%o is rejected by both stores, without showing a secret', (options, type) => {
    for (const make of [postgresRing, postgresSingleUse]) {
      const attempt = () => Reflect.apply(make, undefined, [options]);
      expect(attempt).toThrow(type);
      expect(attempt).not.toThrow(/canary/);
    }
  });

  test.each([
    'ring"; DROP TABLE users; --',
    'a.b.c',
    '.a',
    'a.',
    'A',
    '1a',
    'a-b',
    'a b',
    '"a"',
    'a\0',
    'ring\n',
    'é',
    '',
    'x'.repeat(49),
  ])('%o is rejected as a table name everywhere (F17)', async (table) => {
    expect(() => postgresRing({ pool, table })).toThrow(RangeError);
    expect(() => postgresSingleUse({ pool, table })).toThrow(RangeError);
    expect(() => schemaSql({ ring: table })).toThrow(RangeError);
    expect(() => schemaSql({ singleUse: table })).toThrow(RangeError);
    await expect(migrate({ query: async () => undefined }, { ring: table })).rejects.toBeInstanceOf(RangeError);
  });

  test.each([
    [7, TypeError],
    ['', RangeError],
    ['a b', RangeError],
    ['x'.repeat(65), RangeError],
    ["'", RangeError],
  ])('%o is rejected as a name', (name, type) => {
    expect(() => Reflect.apply(postgresRing, undefined, [{ pool, name }])).toThrow(type);
  });

  test('a createListener that is not a function is rejected', () => {
    expect(() => Reflect.apply(postgresRing, undefined, [{ pool, createListener: {} }])).toThrow(TypeError);
  });
});

test('the listening connection logs in like the pool, whose password is not enumerable', () => {
  const client = connectionOf(readRingOptions({ pool: new Pool({ user: 'me', password: 'secret', host: 'db' }) }));
  expect(client.createListener?.()).toMatchObject({ user: 'me', password: 'secret', host: 'db' });
});

describe('answers that no real server gives', () => {
  const whole = { standby: false, revision: 'r', isTooLarge: false, document: 'd' };

  test.each([
    [[]],
    [[null]],
    [['x']],
    [[{}]],
    [[{ ...whole, standby: null }]],
    [[{ ...whole, standby: true, revision: null }]],
    [[{ ...whole, document: 7 }]],
    [[{ ...whole, revision: 7 }]],
    [[{ ...whole, revision: undefined }]],
  ])('%o is an error, never absent (F9)', async (rows) => {
    const ring = postgresRing({ pool: answering(rows) });
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
  });

  test('an empty document is corrupt, and only a row that reports absence is absent (F9)', async () => {
    const empty = postgresRing({ pool: answering([{ ...whole, document: '' }]) });
    await expect(empty.read()).rejects.toMatchObject({ kind: 'corrupt' });
    const absent = { standby: false, revision: null, isTooLarge: null, document: null };
    expect(await postgresRing({ pool: answering([absent]) }).read()).toBeUndefined();
  });
});

describe('errors', () => {
  test.each(Object.keys(ERROR_TABLE))('%s is recognized by its code', (code) => {
    expect(classify(Object.assign(new Error('canary'), { code }))).toEqual({ ...ERROR_TABLE[code], serviceCode: code });
  });

  test.each([
    [Object.assign(new Error('canary'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    [new Error('The server does not support SSL connections'), 'ERR_POSTGRES_NO_TLS'],
  ])('%o is unavailable, with the code %s', (error, code) => {
    expect(classify(error)).toMatchObject({
      kind: 'unavailable',
      serviceCode: code,
      detail: expect.stringContaining(code),
    });
    expect(JSON.stringify(classify(error))).not.toContain('canary');
  });

  test.each([
    [undefined],
    ['42501'],
    [new Error('42501')],
    [Object.assign(new Error('x'), { code: '__proto__' })],
    [Object.assign(new Error('x'), { code: 42_501 })],
  ])('%o is unavailable, without a code', (error) => {
    expect(classify(error)).toMatchObject({ kind: 'unavailable' });
    expect(classify(error)).not.toHaveProperty('serviceCode');
  });

  test('no text, cause or property of the client’s error is in the store’s error (F33)', async () => {
    const vendor = Object.assign(new Error('canary'), { code: '42501', detail: 'canary', cause: new Error('canary') });
    const ring = postgresRing({ pool: { connect: () => Promise.reject(vendor) } });
    const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'RingStoreError', kind: 'denied' });
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary');
  });
});
