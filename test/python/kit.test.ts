import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type KeyWrapperTarget,
  type RingStoreTarget,
  runKeyWrapperConformance,
  runRingStoreConformance,
} from '@sealring/conformance';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { PythonParts } from './parts.ts';
import { pythonWithPackage } from './python-package.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealring-parts-'));
const stopping: (() => unknown)[] = [];
let parts: PythonParts;

beforeAll(async () => {
  parts = new PythonParts(await pythonWithPackage());
}, 600_000);
afterAll(async () => {
  await parts?.close();
  for (const stop of stopping.toReversed()) await stop();
  rmSync(folder, { recursive: true });
});

/** What only the bridge can answer: the methods of Python take no object of options. */
const APART: ReadonlySet<string> = new Set(['RING-READ-ARGUMENTS', 'RING-WRITE-ARGUMENTS']);

const STORES: Readonly<Record<string, () => Promise<RingStoreTarget>>> = {
  async FileRing() {
    const pathOf = (name: string): string => join(folder, `${name}.ring`);
    return {
      name: 'FileRing (Python)',
      create: async (name) => ({ store: await parts.ring('file', { path: pathOf(name) }) }),
      remove: (name) => rmSync(pathOf(name), { force: true }),
      plant: (name, document) => writeFileSync(pathOf(name), document),
    };
  },
  async RedisRing() {
    const redis = await startRedis();
    stopping.push(() => redis.stop());
    const admin = await createClient({ url: redis.address }).connect();
    stopping.push(() => admin.destroy());
    return {
      name: 'RedisRing (Python)',
      supports: { serviceDate: true, uniqueRevisions: true },
      create: async (name) => ({ store: await parts.ring('redis', { url: redis.address, key: name }) }),
      remove: async (name) => void (await admin.sendCommand(['DEL', name])),
      plant: async (name, document) =>
        void (await admin.sendCommand(['HSET', name, 'document', document, 'revision', 'x'])),
      async breakConnection() {
        redis.freeze();
        return () => redis.thaw();
      },
    };
  },
  async PostgresRing() {
    const postgres = await startPostgres();
    stopping.push(() => postgres.stop());
    const pool = new Pool({ connectionString: postgres.address });
    stopping.push(() => pool.end());
    await migrate(pool);
    // Otherwise no document over the limit could be planted; the store must not rely on the table's own bound.
    await pool.query('ALTER TABLE sealring_ring DROP CONSTRAINT sealring_ring_document_check');
    return {
      name: 'PostgresRing (Python)',
      supports: { serviceDate: true, uniqueRevisions: true },
      create: async (name) => ({ store: await parts.ring('postgres', { url: postgres.address, name }) }),
      remove: async (name) => void (await pool.query('DELETE FROM sealring_ring WHERE name = $1', [name])),
      plant: async (name, document) =>
        void (await pool.query('INSERT INTO sealring_ring (name, document) VALUES ($1, $2)', [name, document])),
      async breakConnection() {
        postgres.freeze();
        return () => postgres.thaw();
      },
    };
  },
};

const KEY_WRAPPERS: Readonly<Record<string, () => Promise<KeyWrapperTarget>>> = {
  async LocalKeyWrapper() {
    const [own, other] = [randomBytes(32), randomBytes(32)].map((key) => ({ bytes: key.toString('base64') }));
    const made = async (masterKey: object | undefined) => ({
      keyWrapper: await parts.keyWrapper('local', { master_key: masterKey }),
    });
    return {
      name: 'LocalKeyWrapper (Python)',
      create: () => made(own),
      createOtherKey: () => made(other),
      supports: { remote: false, versions: false },
    };
  },
};

describe('through a pipe, the Python package passes the conformance kit with', { timeout: 600_000 }, () => {
  test.each(Object.entries(STORES))('its ring store %s', async (_, start) => {
    const { results, passed } = await runRingStoreConformance(await start(), { rounds: 20, writers: 8 });
    expect(results.filter(({ id, status }) => (status === 'fail' || status === 'warn') && !APART.has(id))).toEqual([]);
    expect(passed).toBe(true);
    expect(results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(20);
  });

  test.each(Object.entries(KEY_WRAPPERS))('its key wrapper %s', async (_, start) => {
    const { results, passed } = await runKeyWrapperConformance(await start());
    expect(results.filter(({ id, status }) => (status === 'fail' || status === 'warn') && !APART.has(id))).toEqual([]);
    expect(passed).toBe(true);
    expect(results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(20);
  });
});
