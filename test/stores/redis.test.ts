import type { SingleUseStore } from '@sealring/mcp';
import { redisRing, redisSingleUse } from '@sealring/redis';
import { createClient } from 'redis';
import { afterAll, describe, expect, expectTypeOf, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { describeFaults } from './fault-laws.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
afterAll(() => redis?.stop());
const url = redis?.address ?? 'redis://127.0.0.1:1';
const keyOf = (name: string): string => `sealring:${name}`;

function open(name: string, options: { callTimeoutSeconds?: number; port?: number } = {}) {
  const { callTimeoutSeconds = 5, port } = options;
  const at = port === undefined ? url : `redis://127.0.0.1:${port}`;
  const store = redisRing({ url: at, key: keyOf(name), callTimeoutSeconds });
  return { store, close: async () => store.close?.() };
}

async function admin(...command: string[]): Promise<unknown> {
  const client = await createClient({ url }).connect();
  try {
    return await client.sendCommand(command);
  } finally {
    client.destroy();
  }
}

describe.skipIf(redis === undefined)('Redis', () => {
  describeOurRingStore({
    name: 'redis',
    supports: { push: true, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name, { callTimeoutSeconds: 2 }),
    remove: async (name) => void (await admin('DEL', keyOf(name))),
    plant: async (name, document) => void (await admin('HSET', keyOf(name), 'document', document, 'revision', 'x')),
    async breakConnection() {
      redis?.freeze();
      return async () => redis?.thaw();
    },
  });

  describeFaults('redis', { server: () => redis, open, keepsItsData: false });

  describeFleet('redis', {
    create: async (name) => open(name),
    flush: async () => void (await admin('FLUSHALL')),
    async document(name) {
      const document = await admin('HGET', keyOf(name), 'document');
      return typeof document === 'string' ? document : undefined;
    },
  });

  test('the single-use store works with the boundary', () => {
    expectTypeOf(redisSingleUse).returns.toExtend<SingleUseStore>();
    expect(redis).toBeDefined();
  });
});
