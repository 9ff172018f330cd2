import { randomBytes } from 'node:crypto';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SealringConfig } from '@sealring/cli';
import { localKeyWrapper, memoryRing, type RingStore, type SingleUseStore, staticRing } from '@sealring/core';
import { dynamodbRing } from '@sealring/dynamodb';
import { kubernetesRing } from '@sealring/kubernetes';
import { migrate, postgresRing } from '@sealring/postgres';
import { redisRing, redisSingleUse } from '@sealring/redis';
import { Client } from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { createRing, examine, findingOf, idsOf } from './findings.ts';

const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

function configOf(ring: RingStore): SealringConfig {
  closing.unshift(() => ring.close?.());
  return { ringName: 'payments', ring, keyWrapper };
}

const kubernetes = await startFakeApiServer();
closing.push(() => kubernetes.server.stop());

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
closing.push(() => redis?.stop());

describe('the doctor, with your own single-use store', () => {
  const never = new Promise<boolean>(() => undefined);
  const claims: readonly [string, SingleUseStore['claim'], string, string][] = [
    ['that accepts a claim twice', async () => true, 'single-use-unusable', 'the same claim twice'],
    ['that accepts no claim', async () => false, 'single-use-unusable', 'refused the claim of a new id'],
    ['that does not answer with a boolean', async () => Object(1), 'single-use-unusable', 'with a boolean'],
    ['that throws another error', () => Promise.reject(new TypeError('hunter2')), 'single-use-error', 'TypeError'],
    ['that does not answer', () => never, 'single-use-unavailable', 'no answer in time'],
  ];
  test.each(claims)('reports a store %s', async (_name, claim, id, what) => {
    const config = { ...configOf(memoryRing()), policy: { kmsTimeoutSeconds: 0.5 }, singleUse: { claim } };
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual([id]);
    expect(findingOf(report, id)?.what).toContain(what);
    expect(JSON.stringify(report)).not.toContain('hunter2');
  });
});

describe('the doctor, on Kubernetes', () => {
  const name = 'payments-ring';
  const ringOf = (token?: string): RingStore =>
    kubernetesRing({ namespace: NAMESPACE, name, client: kubernetes.config(token === undefined ? {} : { token }) });

  beforeAll(() => createRing(configOf(ringOf())));

  test('reports no error with a member’s permissions for one name', async () => {
    const token = await kubernetes.token([`get secrets/${name}`, `patch secrets/${name}`]);
    expect(idsOf(await examine(configOf(ringOf(token))), 'error')).toEqual([]);
  });

  test('reports a member with the permissions of a reader', async () => {
    const report = await examine(configOf(ringOf(await kubernetes.token([`get secrets/${name}`]))));
    expect(idsOf(report, 'error')).toEqual(['store-denied']);
    expect(findingOf(report, 'store-denied')?.remedy).toContain('the verb patch on the Secret or ConfigMap');
  });

  test('reports a service account without permissions', async () => {
    const report = await examine(configOf(ringOf(await kubernetes.token([]))));
    expect(findingOf(report, 'store-denied')?.remedy).toContain('the verb get on the Secret or ConfigMap');
  });
});

describe.skipIf(redis === undefined)('the doctor, on Redis', () => {
  const address = redis?.address ?? '';
  const asUser = (user: string): string => {
    const url = new URL(address);
    [url.username, url.password] = [user, 'p'];
    return url.href;
  };

  async function admin(...commands: readonly (readonly string[])[]): Promise<void> {
    const client = createClient({ url: address });
    await client.connect();
    try {
      for (const command of commands) await client.sendCommand([...command]);
    } finally {
      client.destroy();
    }
  }

  beforeAll(async () => {
    const reader = '%R~payments resetchannels -@all +evalsha_ro +eval_ro +info +type +hstrlen +hmget +ping';
    await admin(['ACL', 'SETUSER', 'reader', 'on', '>p', ...reader.split(' ')]);
    await createRing(configOf(redisRing({ url: address, key: 'payments' })));
  });

  test('reports no error, and tests compare-and-swap with the probe', async () => {
    const config = configOf(redisRing({ url: address, key: 'payments' }));
    const probe = { ring: redisRing({ url: address, key: 'probe' }), remove: () => admin(['DEL', 'probe']) };
    closing.unshift(() => probe.ring.close?.());
    const report = await examine({ ...config, probe });
    expect(idsOf(report, 'error')).toEqual([]);
    expect(findingOf(report, 'store-swap')?.severity).toBe('ok');
    expect(await probe.ring.read()).toBeUndefined();
  });

  test('writes nothing if the probe has the same location as the ring', async () => {
    const config = configOf(redisRing({ url: address, key: 'payments' }));
    const before = await config.ring.read();
    const report = await examine({ ...config, probe: { ring: config.ring, remove: () => admin(['DEL', 'payments']) } });
    expect(idsOf(report, 'error')).toEqual(['probe-taken']);
    expect(report.wrote).toEqual([]);
    expect(await config.ring.read()).toEqual(before);
  });

  test('reports a member with the permissions of a reader', async () => {
    const config = configOf(redisRing({ url: asUser('reader'), key: 'payments' }));
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual(['store-denied']);
    expect(findingOf(report, 'store-denied')?.remedy).toMatch(/evalsha.*role: 'reader'/);
    expect(idsOf(await examine({ ...config, role: 'reader' }), 'error')).toEqual([]);
  });

  test('reports a server that does not answer', async () => {
    const report = await examine(
      configOf(redisRing({ url: 'redis://127.0.0.1:1', key: 'payments', callTimeoutSeconds: 1 })),
    );
    expect(idsOf(report, 'error')).toEqual(['store-unavailable']);
  });

  test.each([
    ['accepts a single-use store that works', {}, [], 'single-use', 'ok'],
    [
      'reports a user who may not claim',
      { url: asUser('reader') },
      ['single-use-denied'],
      'single-use-denied',
      'error',
    ],
    [
      'reports a single-use store that does not answer',
      { url: 'redis://127.0.0.1:1', callTimeoutSeconds: 1 },
      ['single-use-unavailable'],
      'single-use-unavailable',
      'error',
    ],
    [
      'reports a margin below the clock skew of the ring',
      { clockSkewSeconds: 10 },
      ['single-use-margin'],
      'single-use-margin',
      'error',
    ],
  ])('the doctor %s', async (_name, options, errors, id, severity) => {
    const singleUse = redisSingleUse({ url: address, ...options });
    closing.unshift(() => singleUse.close());
    const report = await examine({ ...configOf(redisRing({ url: address, key: 'payments' })), singleUse });
    expect(idsOf(report, 'error')).toEqual(errors);
    expect(findingOf(report, id)).toMatchObject({ severity });
    const maySendClaims = errors.length === 0 || id === 'single-use-margin';
    expect(report.wrote.map((line) => line.includes('random id'))).toEqual(maySendClaims ? [true] : []);
  });

  test('F31: reports a replica, which cannot be written to', async () => {
    const second = await startRedis();
    closing.push(() => second.stop());
    const { port } = new URL(address);
    const client = createClient({ url: second.address });
    await client.connect();
    await client.sendCommand(['REPLICAOF', '127.0.0.1', port]);
    client.destroy();
    const report = await examine(configOf(redisRing({ url: second.address, key: 'payments' })));
    expect(idsOf(report, 'error')).toEqual(['store-unavailable']);
    expect(findingOf(report, 'store-unavailable')?.remedy).toMatch(/primary/);
  });
});

let postgres: PostgresServer | undefined;
await startOrSkip(async () => {
  postgres = await startPostgres();
  return postgres;
});
closing.push(() => postgres?.stop());

describe.skipIf(postgres === undefined)('the doctor, on PostgreSQL', () => {
  const connectionString = postgres?.address ?? '';

  async function admin(work: (client: Client) => Promise<unknown>): Promise<void> {
    const client = new Client({ connectionString });
    await client.connect();
    try {
      await work(client);
    } finally {
      await client.end();
    }
  }

  test('reports a database without the table', async () => {
    const report = await examine(configOf(postgresRing({ connectionString, name: 'payments' })));
    expect(idsOf(report, 'error')).toEqual(['store-no-table']);
    expect(findingOf(report, 'store-no-table')?.remedy).toMatch(/Create the table/);
  });

  test('reports a member with the permissions of a reader', async () => {
    await admin(async (client) => {
      await migrate(client);
      await client.query('CREATE ROLE reader LOGIN; GRANT SELECT ON sealring_ring TO reader');
    });
    const sound = configOf(postgresRing({ connectionString, name: 'payments' }));
    await createRing(sound);
    expect(idsOf(await examine(sound), 'error')).toEqual([]);
    const url = new URL(connectionString);
    url.username = 'reader';
    const report = await examine(configOf(postgresRing({ connectionString: url.href, name: 'payments' })));
    expect(idsOf(report, 'error')).toEqual(['store-denied']);
    expect(findingOf(report, 'store-denied')?.remedy).toMatch(/INSERT and UPDATE/);
  });
});

const moto = inject('moto');

describe.skipIf(moto === '')('the doctor, on DynamoDB', () => {
  const client = new DynamoDBClient({
    endpoint: moto,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  closing.push(() => client.destroy());

  test('reports a table that does not exist', async () => {
    const report = await examine(configOf(dynamodbRing({ table: 'no-such-table', name: 'payments', client })));
    expect(idsOf(report, 'error')).toEqual(['store-no-table']);
    expect(findingOf(report, 'store-no-table')?.remedy).toMatch(/Create the table/);
  });

  test('reports no error for an existing table', async () => {
    await client.send(
      new CreateTableCommand({
        TableName: 'doctor',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    );
    const config = configOf(dynamodbRing({ table: 'doctor', name: 'payments', client }));
    await createRing(config);
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual([]);
    expect(findingOf(report, 'store-write')?.severity).toBe('ok');
  });
});

describe('the doctor, on other stores', () => {
  test('reports a static ring as an error only for a member', async () => {
    const origin = configOf(redisRing({ url: redis?.address ?? '', key: 'payments' }));
    const { document = '' } = (await origin.ring.read()) ?? {};
    const config = configOf(staticRing(document));
    expect(idsOf(await examine(config), 'error')).toEqual(['store-read-only', 'store-read-only']);
    expect(idsOf(await examine({ ...config, role: 'reader' }), 'error')).toEqual([]);
  });

  test('F32: reports a store without compare-and-swap', async () => {
    const held = new Map<string, string>();
    const broken = (key: string): RingStore => ({
      kind: 'broken',
      async read() {
        const document = held.get(key);
        return document === undefined ? undefined : { document, revision: 'always' };
      },
      async write(document) {
        held.set(key, document);
        return { revision: 'always' };
      },
    });
    const config = configOf(broken('ring'));
    await createRing(config);
    const before = held.get('ring');
    const probe = { ring: broken('probe'), remove: async () => void held.delete('probe') };
    const report = await examine({ ...config, probe });
    expect(idsOf(report, 'error')).toEqual(['store-no-compare', 'store-no-compare']);
    expect(held.get('ring')).toBe(before);
    expect(held.has('probe')).toBe(false);
  });
});
