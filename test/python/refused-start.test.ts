import { randomBytes } from 'node:crypto';
import { migrate, postgresRing } from '@sealring/postgres';
import { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { pythonWithPackage } from './python-package.ts';
import { PythonProcess } from './python-process.ts';

/** A time far longer than a test may take, so that a start that tries again does not end. */
const START_TIMEOUT_SECONDS = 3_600;
let python = '';
let postgres: PostgresServer;

beforeAll(async () => {
  [python, postgres] = await Promise.all([pythonWithPackage(), startPostgres()]);
  const pool = new Pool({ connectionString: postgres.address });
  await migrate(pool);
  await pool.query(`CREATE ROLE locked LOGIN PASSWORD 'right'; GRANT ALL ON sealring_ring TO locked`);
  const { rows } = await pool.query<{ hba_file: string }>('SHOW hba_file');
  // The first line that matches a user decides.
  const lines = ['host all locked all scram-sha-256', 'host all all all trust', 'local all all trust'];
  const values = lines.map((line) => `('${line}')`).join();
  await pool.query(`COPY (VALUES ${values}) TO '${rows[0]?.hba_file}'; SELECT pg_reload_conf()`);
  await pool.end();
  // The server reloads soon, not at once.
  await until(async () => (await kindOf('locked', 'wrong', 'postgres')) === 'denied');
});
afterAll(() => postgres?.stop());

function urlOf(user: string, password: string, database: string): string {
  return `postgres://${user}:${password}@${postgres.host}:${postgres.port}/${database}`;
}

/** The message of a TypeScript store. */
async function kindOf(user: string, password: string, database: string): Promise<string> {
  const ring = postgresRing({ connectionString: urlOf(user, password, database) });
  try {
    await ring.read();
    return 'read';
  } catch (error) {
    return String(Reflect.get(error as object, 'kind'));
  } finally {
    await ring.close?.();
  }
}

test.each([
  ['a wrong password', 'locked', 'wrong', 'postgres', 'denied'],
  ['a user that does not exist', 'stranger', 'any', 'postgres', 'denied'],
  ['a database that does not exist', 'app', 'any', 'payments', 'unavailable'],
] as const)(
  'with %s, a start in Python fails at once, with the same kind of error as in TypeScript',
  async (_, user, password, database, kind) => {
    const process = new PythonProcess(python, {
      role: 'member',
      keyWrapper: { masterKey: randomBytes(32).toString('base64') },
      ring: { store: 'postgres', url: urlOf(user, password, database), name: 'default' },
      ringName: 'default',
      policy: { start_timeout_seconds: START_TIMEOUT_SECONDS },
    });
    await expect(process.start()).rejects.toMatchObject({ name: 'RingStoreError', kind });
    await process.close();
    expect(await kindOf(user, password, database)).toBe(kind);
  },
);
