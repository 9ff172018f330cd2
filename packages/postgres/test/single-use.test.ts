import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { RingStoreErrorKind, SingleUseStoreError } from '@sealring/core';
import { Pool } from 'pg';
import { afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { migrate, type PostgresQuery, postgresSingleUse } from '../src/index.ts';

const connectionString = inject('postgres');
const rejection = (kind: RingStoreErrorKind) => ({ name: 'SingleUseStoreError', kind });
const inAnHour = (): Date => new Date(Date.now() + 3_600_000);

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0).toReversed()) await close();
});

function poolOf(options: object = {}): Pool {
  const pool = new Pool({ connectionString, ...options });
  pool.on('error', () => undefined);
  closing.push(() => pool.end());
  return pool;
}

/** A table for this test only. */
async function freshTable(pool: Pool): Promise<string> {
  const table = `used_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
  await migrate(pool, { singleUse: table });
  return table;
}

async function expiredIn(pool: Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(`SELECT count(*) FROM ${table} WHERE expires_at < now()`);
  return Number(rows[0]?.count);
}

describe.skipIf(connectionString === '')('postgresSingleUse on PostgreSQL', () => {
  beforeAll(async () => {
    const pool = new Pool({ connectionString });
    await migrate(pool);
    await pool.end();
  });

  test('exactly one of 51 concurrent claims over several pools resolves to true', async () => {
    const stores = [1, 2, 3].map(() => postgresSingleUse({ connectionString }));
    for (const store of stores) closing.push(() => store.close());
    for (let round = 0; round < 20; round++) {
      const id = randomUUID();
      const claims = Array.from({ length: 17 }, () => stores.map((store) => store.claim(id, inAnHour()))).flat();
      expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
    }
  });

  test.each(['repeatable read', 'serializable'])(
    'concurrent claims work at isolation level %s, and none rejects',
    async (isolation) => {
      const options = `-c default_transaction_isolation=${isolation.replaceAll(' ', '\\ ')}`;
      const store = postgresSingleUse({ pool: poolOf({ max: 10, options }) });
      for (let round = 0; round < 10; round++) {
        const id = randomUUID();
        const claims = Array.from({ length: 10 }, () => store.claim(id, inAnHour()));
        expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
      }
    },
  );

  test('each claim removes at most 16 expired claims, and never a valid one', async () => {
    const pool = poolOf({ max: 10 });
    const table = await freshTable(pool);
    const store = postgresSingleUse({ pool, table });
    const kept = randomUUID();
    expect(await store.claim(kept, inAnHour())).toBe(true);
    await pool.query(
      `INSERT INTO ${table} SELECT 'old ' || n, now() - interval '1 second' FROM generate_series(1, 40) n`,
    );
    await store.claim(randomUUID(), inAnHour());
    expect(await expiredIn(pool, table)).toBe(24);
    await store.claim(randomUUID(), inAnHour());
    await store.claim(randomUUID(), inAnHour());
    expect(await expiredIn(pool, table)).toBe(0);
    expect(await store.claim(kept, inAnHour())).toBe(false);
  });

  test('concurrent claims neither wait for each other’s removals nor deadlock', async () => {
    const pool = poolOf({ max: 10 });
    const table = await freshTable(pool);
    const store = postgresSingleUse({ pool, table });
    await pool.query(
      `INSERT INTO ${table} SELECT 'old ' || n, now() - interval '1 day' FROM generate_series(1, 2000) n`,
    );
    const claims = await Promise.all(Array.from({ length: 200 }, () => store.claim(randomUUID(), inAnHour())));
    expect(claims.every(Boolean)).toBe(true);
    expect(await expiredIn(pool, table)).toBe(0);
  });

  test('a claim returns false and stores nothing once its end and the clock skew have passed (F48)', async () => {
    const pool = poolOf();
    const table = await freshTable(pool);
    expect(await postgresSingleUse({ pool, table }).claim('x', new Date(Date.now() - 300_001))).toBe(false);
    expect((await pool.query(`SELECT FROM ${table}`)).rowCount).toBe(0);
  });

  test('the permissions in the README are sufficient, and a call that lacks one of them is denied', async () => {
    const pool = poolOf();
    const table = await freshTable(pool);
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    const [, all = ''] = /^GRANT (.+) ON sealring_single_use TO/m.exec(readme) ?? [];
    for (const [rights, wanted] of [
      [all, true],
      ['SELECT, INSERT, UPDATE', rejection('denied')],
      ['SELECT, INSERT, DELETE', rejection('denied')],
      ['SELECT, UPDATE, DELETE', rejection('denied')],
    ] as const) {
      const role = `c${randomUUID().replaceAll('-', '')}`;
      await pool.query(`CREATE ROLE ${role} LOGIN; GRANT ${rights} ON ${table} TO ${role}`);
      const store = postgresSingleUse({
        pool: poolOf({ connectionString: connectionString.replace('app@', `${role}@`) }),
        table,
      });
      const claim = store.claim(randomUUID(), inAnHour());
      const outcome: unknown = await claim.catch(({ name, kind }: SingleUseStoreError) => ({ name, kind }));
      expect(outcome, rights).toEqual(wanted);
    }
  });

  test('a claim rejects if the store is down, has no table or is closed', async () => {
    const down = postgresSingleUse({ connectionString: 'postgres://app@127.0.0.1:1/postgres', callTimeoutSeconds: 1 });
    await expect(down.claim('x', inAnHour())).rejects.toMatchObject(rejection('unavailable'));
    await down.close();
    await expect(down.claim('x', inAnHour())).rejects.toMatchObject(rejection('unavailable'));
    const without = postgresSingleUse({ pool: poolOf(), table: 'not_there' });
    await expect(without.claim('x', inAnHour())).rejects.toMatchObject(rejection('unavailable'));
  });
});

test.each([
  [2, true],
  [3, undefined],
])(
  'after %i serialization failures, a claim ends with %s, and each attempt sends the time that remains',
  async (failures, claimed) => {
    const values: unknown[] = [];
    const client = Object.assign(new EventEmitter(), {
      async query(asked: PostgresQuery) {
        if (values.push(asked.values) > failures) return { rows: [{}] };
        throw Object.assign(new Error('serialize'), { code: '40001' });
      },
      release: () => undefined,
    });
    vi.useFakeTimers({ toFake: ['Date'] });
    const store = postgresSingleUse({ pool: { connect: async () => client } });
    const claim = store.claim('x', new Date(Date.now() - 299_999)).catch(() => undefined);
    expect(await claim).toBe(claimed);
    expect(values).toEqual([
      ['x', 1],
      ['x', 1],
      ['x', 1],
    ]);
    expect(await store.claim('x', new Date(Date.now() - 300_000))).toBe(false);
    expect(values).toHaveLength(3);
    expect(store.clockSkewSeconds).toBe(300);
    await expect(store.claim('a\0b', inAnHour())).rejects.toThrow(/^postgresSingleUse: id contains a NUL/);
    await expect(store.claim('', inAnHour())).rejects.toThrow(/^postgresSingleUse: id/);
    await store.close();
    await expect(store.claim('x', inAnHour())).rejects.toMatchObject(rejection('unavailable'));
  },
);
