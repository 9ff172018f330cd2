import type { SingleUseStore } from '@sealring/mcp';
import { migrate, postgresRing, postgresSingleUse } from '@sealring/postgres';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import type { TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { describeFaults } from './fault-laws.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

let postgres: TestServer | undefined;
await startOrSkip(async () => {
  postgres = await startPostgres();
  return postgres;
});
afterAll(() => postgres?.stop());
const connectionString = postgres?.address ?? 'postgres://127.0.0.1:1/none';

function open(name: string, options: { callTimeoutSeconds?: number; port?: number } = {}) {
  const { callTimeoutSeconds = 5, port } = options;
  const at = new URL(connectionString);
  if (port !== undefined) at.port = String(port);
  const store = postgresRing({ connectionString: at.href, name, callTimeoutSeconds });
  return { store, close: async () => store.close?.() };
}

async function admin(text: string, values: string[] = []): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text, values)).rows;
  } finally {
    await client.end();
  }
}

describe.skipIf(postgres === undefined)('PostgreSQL', () => {
  beforeAll(async () => {
    const client = new Client({ connectionString });
    await client.connect();
    await migrate(client);
    // Otherwise the test could not store a document over the limit; the store must not rely on the table's own bound.
    await client.query('ALTER TABLE sealring_ring DROP CONSTRAINT sealring_ring_document_check');
    await client.end();
  });

  describeOurRingStore({
    name: 'postgres',
    supports: { push: true, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name, { callTimeoutSeconds: 2 }),
    remove: async (name) => void (await admin('DELETE FROM sealring_ring WHERE name = $1', [name])),
    plant: async (name, document) =>
      void (await admin('INSERT INTO sealring_ring (name, document) VALUES ($1, $2)', [name, document])),
    async breakConnection() {
      postgres?.freeze();
      return async () => postgres?.thaw();
    },
  });

  describeFaults('postgres', { server: () => postgres, open, keepsItsData: true });

  describeFleet('postgres', {
    create: async (name) => open(name),
    flush: async () => void (await admin('DELETE FROM sealring_ring')),
    async document(name) {
      const [row] = await admin('SELECT document FROM sealring_ring WHERE name = $1', [name]);
      return typeof row?.['document'] === 'string' ? row['document'] : undefined;
    },
  });

  test('the single-use store works with the boundary', () => {
    expectTypeOf(postgresSingleUse).returns.toExtend<SingleUseStore>();
    expect(postgres).toBeDefined();
  });
});
