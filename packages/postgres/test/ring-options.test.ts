import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { RingConflictError } from '@sealring/core';
import { Pool } from 'pg';
import { describe, expect, test } from 'vitest';
import { connectionOf } from '../src/connection.ts';
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
    [{ connectionString: 'mysql://canary@/x' }, RangeError],
    [{ pool, callTimeoutSeconds: '5' }, TypeError],
    [{ pool, callTimeoutSeconds: 0 }, RangeError],
    [{ pool, callTimeoutSeconds: Number.NaN }, RangeError],
    [{ pool, table: 7 }, TypeError],
    [{ pool, schema: 'x' }, TypeError],
  ])('both stores reject %o without showing a secret', (options, type) => {
    for (const make of [postgresRing, postgresSingleUse]) {
      const attempt = () => Reflect.apply(make, undefined, [options]);
      expect(attempt).toThrow(type);
      expect(attempt).toThrow(new RegExp(`^${make.name}: `));
      expect(attempt).not.toThrow(/canary/);
    }
  });

  test.each([
    ['pool', { pool: {} }, /a pg.Pool/],
    ['connectionString', { connectionString: 7 }, /a string/],
    ['connectionString', { connectionString: 'mysql://127.0.0.1' }, /postgres:\/\//],
    ['table', { pool, table: 'A' }, /\[a-z0-9_\]/],
    ['connectionString', {}, /either pool/],
    ['name', { pool, name: '' }, /1 to 64/],
    ['createListener', { pool, createListener: {} }, /a function/],
  ])('the error about a wrong %s names the option and the expected value', (name, options, wanted) => {
    expect(() => Reflect.apply(postgresRing, undefined, [options])).toThrow(wanted);
    expect(() => Reflect.apply(postgresRing, undefined, [options])).toThrow(name);
  });

  test.each([
    [{ connectionString: 'postgresql://user:canary@127.0.0.1:1/x' }, '"sealring_ring", row default'],
    [
      { connectionString: 'postgres://u:canary@/x?host=/cloudsql/shop:europe-west1:db' },
      '"sealring_ring", row default',
    ],
    [{ connectionString: 'postgres:///x?host=/var/run/postgresql' }, '"sealring_ring", row default'],
    [{ pool, table: 'a1_.b2_', name: 'n' }, '"a1_"."b2_", row n'],
    [{ pool, table: `${'_'.repeat(48)}.${'z'.repeat(48)}` }, `"${'_'.repeat(48)}"."${'z'.repeat(48)}", row default`],
  ])(
    'a ring with the options %j shows its place but no secret, is frozen, and can be closed before it connects',
    async (options, at) => {
      const ring = postgresRing(options);
      expect(ring).toMatchObject({ kind: 'postgres', location: `postgres table ${at}` });
      expect(Object.isFrozen(ring)).toBe(true);
      await ring.close?.();
      await ring.close?.();
      await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the store is closed' });
    },
  );

  test('a wrong argument is rejected before any call, with an error that names the function (F17)', async () => {
    const ring = postgresRing({ pool, createListener: () => expect.unreachable() });
    const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
    for (const wrong of [
      call('read', { key: 'k' }),
      call('write', 7, { expected: undefined }),
      call('write', 'a\0b', { expected: undefined }),
      call('watch', 7),
    ]) {
      await expect(wrong).rejects.toBeInstanceOf(TypeError);
      await expect(wrong).rejects.toThrow(/^postgresRing: /);
    }
    await expect(ring.write('x', { expected: 'a\0b' })).rejects.toBeInstanceOf(RingConflictError);
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
  ])('every function rejects %o as a table name (F17)', async (table) => {
    expect(() => postgresRing({ pool, table })).toThrow(RangeError);
    expect(() => postgresSingleUse({ pool, table })).toThrow(RangeError);
    for (const option of ['ring', 'singleUse']) {
      expect(() => schemaSql({ [option]: table })).toThrow(RangeError);
      expect(() => schemaSql({ [option]: table })).toThrow(`schemaSql: ${option}`);
    }
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
});

test('a connection string without a host connects to the socket in its parameter', () => {
  const connectionString = 'postgres://u:secret@/x?host=/cloudsql/shop:europe-west1:db';
  const client = connectionOf(readRingOptions({ connectionString })).createListener?.();
  expect(client).toMatchObject({
    user: 'u',
    password: 'secret',
    host: '/cloudsql/shop:europe-west1:db',
    database: 'x',
  });
});

test('the listening connection uses the password of the pool, although it is not enumerable', () => {
  const client = connectionOf(readRingOptions({ pool: new Pool({ user: 'me', password: 'secret', host: 'db' }) }));
  expect(client.createListener?.()).toMatchObject({
    user: 'me',
    password: 'secret',
    host: 'db',
    _connectionTimeoutMillis: 5_000,
    connection: { _keepAlive: true },
  });
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
  ])('%o is reported as an error, never as an absent ring (F9)', async (rows) => {
    const ring = postgresRing({ pool: answering(rows) });
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
  });

  test('an empty document is reported as corrupt, and a ring as absent only if the row says so (F9)', async () => {
    const empty = postgresRing({ pool: answering([{ ...whole, document: '' }]) });
    await expect(empty.read()).rejects.toMatchObject({ kind: 'corrupt' });
    const dates: Date[] = [];
    const absent = { standby: false, revision: null, isTooLarge: null, document: null, serverMs: '1795000000000' };
    const onServiceDate = (date: Date): void => void dates.push(date);
    expect(await postgresRing({ pool: answering([absent]) }).read({ onServiceDate })).toBeUndefined();
    expect(dates).toEqual([new Date(1_795_000_000_000)]);
  });
});

test('no text, cause or property of the client’s error is in the store’s error (F33)', async () => {
  const vendor = Object.assign(new Error('canary'), { code: '42501', detail: 'canary', cause: new Error('canary') });
  const ring = postgresRing({ pool: { connect: () => Promise.reject(vendor) } });
  const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'RingStoreError', kind: 'denied' });
  expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary');
});

test('a connection returns to the pool after an answer or if no statement was sent, and ends otherwise', async () => {
  const released: unknown[] = [];
  const answers: (() => Promise<{ readonly rows: readonly unknown[] }>)[] = [];
  const client = Object.assign(new EventEmitter(), {
    query: () => (answers.shift() ?? expect.unreachable)(),
    release: (destroy?: boolean) => void released.push([destroy, client.listenerCount('error')]),
  });
  let connected = (): void => undefined;
  const connection = connectionOf(readRingOptions({ pool: { connect: async () => client } }));
  const query = (signal?: AbortSignal) => connection.query(signal, { text: '', values: [] });
  answers.push(
    async () => ({ rows: [7] }),
    () => Promise.reject(new Error('lost')),
    () => new Promise(() => undefined),
  );
  expect(await query()).toEqual({ answer: [7] });
  expect(await query()).toMatchObject({ failure: { kind: 'unavailable' } });
  expect(await query(AbortSignal.timeout(20))).toMatchObject({ failure: { kind: 'unavailable' } });
  const busy = { connect: () => new Promise<typeof client>((resolve) => (connected = () => resolve(client))) };
  const controller = new AbortController();
  const late = connectionOf(readRingOptions({ pool: busy })).query(controller.signal, { text: '', values: [] });
  controller.abort();
  connected();
  expect(await late).toMatchObject({ failure: { kind: 'unavailable' } });
  await expect
    .poll(() => released)
    .toEqual([
      [undefined, 0],
      [true, 1],
      [true, 2],
      [undefined, 2],
    ]);
});
