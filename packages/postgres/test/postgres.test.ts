import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { RingConflictError, type RingStoreErrorKind } from '@sealring/core';
import { Client, Pool } from 'pg';
import { afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startPostgres } from '../../../test/support/postgres.ts';
import { migrate, type PostgresPool, postgresRing, schemaSql } from '../src/index.ts';

const connectionString = inject('postgres');
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

const closing: (() => Promise<unknown> | void | undefined)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

function poolOf(options: object = {}, at: string = connectionString): Pool {
  const pool = new Pool({ connectionString: at, ...options });
  pool.on('error', () => undefined);
  closing.push(() => pool.end());
  return pool;
}

/** The permissions of the README on the ring's table. */
async function grantOfReadme(role: string): Promise<string> {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  return new RegExp(`^GRANT (.+ ON sealring_ring) TO ${role};$`, 'm').exec(readme)?.[1] ?? '';
}

const freshName = (): string => randomUUID();

/** A connection string for a new role with these permissions. */
async function roleWith(pool: Pool, grants: readonly string[], settings: readonly string[] = []): Promise<string> {
  const role = `r${randomUUID().replaceAll('-', '')}`;
  await pool.query(`CREATE ROLE ${role} LOGIN`);
  for (const grant of grants) await pool.query(`GRANT ${grant} TO ${role}`);
  for (const setting of settings) await pool.query(`ALTER ROLE ${role} SET ${setting}`);
  const url = new URL(connectionString);
  url.username = role;
  return url.href;
}

// Skipped only if this machine lacks PostgreSQL; under CI=true the set-up fails instead.
describe.skipIf(connectionString === '')('postgresRing on PostgreSQL', () => {
  beforeAll(async () => {
    const client = new Client({ connectionString });
    await client.connect();
    await migrate(client);
    await client.end();
  });

  test('the caller’s pool is used and not closed, and push uses none of its connections', async () => {
    const pool = poolOf({ max: 1 });
    const ring = postgresRing({ pool, name: freshName() });
    let heard = 0;
    ring.watch?.(() => heard++);
    await expect.poll(() => heard).toBe(1);
    const { revision } = await ring.write('{}\n€', { expected: undefined });
    await expect.poll(() => heard).toBe(2);
    expect(await ring.read()).toEqual({ document: '{}\n€', revision });
    expect(pool.totalCount).toBe(1);
    await ring.close?.();
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  test('a pool whose options are unknown has push only with createListener', async () => {
    const pool = poolOf();
    const bare: PostgresPool = { connect: () => pool.connect() };
    expect(postgresRing({ pool: bare })).not.toHaveProperty('watch');
    const ring = postgresRing({
      pool: bare,
      name: freshName(),
      createListener: () => new Client({ connectionString }),
    });
    closing.push(() => ring.close?.());
    let heard = 0;
    ring.watch?.(() => heard++);
    await expect.poll(() => heard).toBe(1);
  });

  test('a ring without its table is reported as unavailable, and the table is not created (F9)', async () => {
    const pool = poolOf();
    for (const table of ['not_there', 'no_schema.sealring_ring']) {
      const ring = postgresRing({ pool, table });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    }
    const { rows } = await pool.query("SELECT to_regclass('not_there') AS found");
    expect(rows).toEqual([{ found: null }]);
  });

  test('a table with other columns is reported as corrupt (F9)', async () => {
    const pool = poolOf();
    await pool.query('CREATE TABLE IF NOT EXISTS misshapen (name text PRIMARY KEY, value text)');
    await expect(postgresRing({ pool, table: 'misshapen' }).read()).rejects.toMatchObject(failed('corrupt'));
  });

  test('a document over the limit is not transferred (F23)', async () => {
    const pool = poolOf();
    await pool.query('DROP TABLE IF EXISTS unbounded');
    await pool.query('CREATE TABLE unbounded (name text PRIMARY KEY, document text, revision uuid)');
    await pool.query(
      "INSERT INTO unbounded VALUES ('long', repeat('x', 262145), gen_random_uuid()) ON CONFLICT DO NOTHING",
    );
    const answers: unknown[] = [];
    const recording: PostgresPool = {
      async connect() {
        const client = await pool.connect();
        const query = client.query.bind(client);
        return Object.assign(Object.create(client) as typeof client, {
          async query(text: { text: string; values: unknown[] }) {
            const result = await query(text);
            answers.push(...result.rows);
            return result;
          },
        });
      },
    };
    const ring = postgresRing({ pool: recording, table: 'unbounded', name: 'long' });
    const [{ revision }] = (await pool.query("SELECT revision::text FROM unbounded WHERE name = 'long'")).rows;
    await expect(ring.read()).rejects.toMatchObject({ ...failed('too-large'), revision });
    expect(answers).toMatchObject([{ isTooLarge: true, document: null }]);
    // A member that knows the ring overwrites it.
    await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    const written = await ring.write('x', { expected: revision });
    expect(await ring.read()).toEqual({ document: 'x', ...written });
    await expect(ring.write('y', { expected: revision })).rejects.toBeInstanceOf(RingConflictError);
    await pool.query("UPDATE unbounded SET document = '' WHERE name = 'long'");
    await expect(ring.read()).rejects.toMatchObject({ ...failed('corrupt'), ...written });
  });

  test('the table of the migration rejects values that are too long or empty, from every client', async () => {
    const pool = poolOf();
    const insert = 'INSERT INTO sealring_ring (name, document) VALUES ($1, $2)';
    await expect(pool.query(insert, [freshName(), 'x'.repeat(262_145)])).rejects.toMatchObject({ code: '23514' });
    await expect(pool.query(insert, [freshName(), ''])).rejects.toMatchObject({ code: '23514' });
  });

  test('the permissions in the README are sufficient, and a call that lacks one of them is denied', async () => {
    const pool = poolOf();
    const name = freshName();
    const open = async (...grants: string[]) => {
      const ring = postgresRing({ connectionString: await roleWith(pool, grants), name });
      closing.push(() => ring.close?.());
      return ring;
    };
    const member = await open(await grantOfReadme('payments'));
    let heard = 0;
    member.watch?.(() => heard++);
    await expect.poll(() => heard).toBe(1);
    const first = await member.write('x', { expected: undefined });
    const { revision } = await member.write('y', { expected: first.revision });
    await expect.poll(() => heard).toBe(3);
    const reader = await open(await grantOfReadme('payments_reader'));
    expect(await reader.read()).toEqual({ document: 'y', revision });
    await expect(reader.write('z', { expected: revision })).rejects.toMatchObject(failed('denied'));
    await expect(reader.write('z', { expected: undefined })).rejects.toMatchObject(failed('denied'));
    const noUpdate = await open('SELECT, INSERT ON sealring_ring');
    await expect(noUpdate.write('z', { expected: revision })).rejects.toMatchObject(failed('denied'));
    await expect((await open()).read()).rejects.toMatchObject(failed('denied'));
    expect(await reader.read()).toEqual({ document: 'y', revision });
  });

  test('a role that may not log in is reported as denied, a missing database as unavailable, and no error shows a password', async () => {
    const pool = poolOf();
    await pool.query('DROP ROLE IF EXISTS nologin');
    await pool.query('CREATE ROLE nologin NOLOGIN');
    const urlFor = (change: Partial<URL>): string => {
      const url = Object.assign(new URL(connectionString), { password: 'canary' }, change);
      return url.href;
    };
    for (const [url, kind] of [
      [urlFor({ username: 'nologin' }), 'denied'],
      [urlFor({ pathname: '/nowhere' }), 'unavailable'],
      [urlFor({ port: '1' }), 'unavailable'],
    ] as const) {
      const ring = postgresRing({ connectionString: url, callTimeoutSeconds: 1 });
      closing.push(() => ring.close?.());
      const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed(kind));
      expect(inspect([ring, error], { depth: null, showHidden: true })).not.toContain('canary');
    }
  });

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'at isolation level %s, exactly one of 20 concurrent writes succeeds, and the others conflict (F32)',
    async (isolation) => {
      const setting = `default_transaction_isolation = '${isolation}'`;
      const url = await roleWith(poolOf(), ['SELECT, INSERT, UPDATE ON sealring_ring'], [setting]);
      const ring = postgresRing({ pool: poolOf({ max: 20 }, url), name: freshName() });
      let expected: string | undefined;
      for (let round = 0; round < 30; round++) {
        const writes = Array.from({ length: 20 }, (_, i) => ring.write(`${round} of ${i}`, { expected }));
        const results = await Promise.allSettled(writes);
        const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.revision] : []));
        const lost = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
        expect(won).toHaveLength(1);
        expect(lost.every((reason) => reason instanceof RingConflictError)).toBe(true);
        [expected] = won;
      }
    },
  );

  test('a write to a locked row ends by its deadline, and the pool keeps its connections (F29)', async () => {
    const pool = poolOf({ max: 2 });
    const ring = postgresRing({ pool, name: 'held', callTimeoutSeconds: 0.3 });
    const holder = new Client({ connectionString });
    await holder.connect();
    closing.push(() => holder.end());
    const found = await ring.read();
    const { revision } = await ring.write('x', { expected: found?.revision });
    await holder.query('BEGIN');
    await holder.query("SELECT 1 FROM sealring_ring WHERE name = 'held' FOR UPDATE");
    for (let i = 0; i < 3; i++) {
      await expect(ring.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
    }
    expect(await ring.read()).toEqual({ document: 'x', revision });
    await holder.query('ROLLBACK');
    // The server may have completed the statement that it was executing, but only one of the writes.
    const running =
      "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%sealring_ring%' AND pid <> pg_backend_pid()";
    await expect.poll(async () => (await holder.query(running)).rowCount).toBe(0);
    expect(['x', 'y']).toContain((await ring.read())?.document);
  });

  test('a call that was abandoned before it was sent is never sent', async () => {
    const pool = poolOf({ max: 1 });
    const ring = postgresRing({ pool, name: freshName(), callTimeoutSeconds: 0.2 });
    const busy = await pool.connect();
    await expect(ring.write('late', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    busy.release();
    // The pool has one connection, so a late write would come before this query.
    await pool.query('SELECT 1');
    expect(await ring.read()).toBeUndefined();
    expect(pool.totalCount).toBe(1);
  });

  test('a standby is reported as unavailable, because it may be behind, and works after its promotion (F9, F31)', async () => {
    const server = await startPostgres();
    closing.push(() => server.stop());
    const pool = poolOf({}, server.address);
    await migrate(pool);
    const ring = postgresRing({ pool });
    const { revision } = await ring.write('x', { expected: undefined });
    await server.demote();
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
    await expect(postgresRing({ pool, name: 'other' }).read()).rejects.toMatchObject(failed('unavailable'));
    await server.promote();
    expect(await ring.read()).toEqual({ document: 'x', revision });
    await ring.write('y', { expected: revision });
  });
});

describe.skipIf(connectionString === '')('the migration', () => {
  test('a migration that runs ten times concurrently, and again, changes no existing data', async () => {
    const pool = poolOf({ max: 10 });
    await pool.query('CREATE SCHEMA IF NOT EXISTS apart');
    const tables = { ring: 'apart.ring', singleUse: 'apart.used' };
    await Promise.all(Array.from({ length: 10 }, () => migrate(pool, tables)));
    const ring = postgresRing({ pool, table: 'apart.ring', name: freshName() });
    const { revision } = await ring.write('x', { expected: undefined });
    await migrate(pool, tables);
    expect(await ring.read()).toEqual({ document: 'x', revision });
    await expect(pool.query('SELECT FROM apart.used')).resolves.toMatchObject({ rows: [] });
  });

  test('a migration that fails leaves nothing behind', async () => {
    const pool = poolOf();
    await expect(migrate(pool, { ring: 'half_made', singleUse: 'no_schema.used' })).rejects.toMatchObject({
      code: '3F000',
    });
    const { rows } = await pool.query("SELECT to_regclass('half_made') AS found");
    expect(rows).toEqual([{ found: null }]);
  });
});

test('the migration runs the text of schema.sql', async () => {
  expect(await readFile(new URL('../schema.sql', import.meta.url), 'utf8')).toBe(schemaSql());
});
