import { randomBytes } from 'node:crypto';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { Storage } from '@google-cloud/storage';
import { azureBlobRing } from '@sealring/azure-blob';
import { createKmsCodec, type KmsCodec, localKeyWrapper, type RingStore } from '@sealring/core';
import { dynamodbRing } from '@sealring/dynamodb';
import { gcsRing } from '@sealring/gcs';
import { migrate, postgresRing } from '@sealring/postgres';
import { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Azurite, azuriteClient, startAzurite } from '../support/azurite.ts';
import { gcsBucket, startFakeGcs } from '../support/fake-gcs.ts';
import { startMoto } from '../support/moto.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import type { TestServer } from '../support/redis.ts';
import type { RunningServer } from '../support/servers.ts';
import { pythonWithPackage } from './python-package.ts';
import { PythonProcess } from './python-process.ts';

const ringName = 'payments';
const region = 'us-east-1';
const masterKey = randomBytes(32);
// How long a start tries a store that does not exist.
const startTimeoutSeconds = 2;
const HEARD = { interval: 100 };

/** One place of a store, for the TypeScript adapter and for the Python one. */
interface Place {
  readonly ring: () => RingStore;
  readonly python: object;
  /** A place that does not exist: another table, bucket or container. */
  readonly nowhere: object;
  readonly remove: () => Promise<unknown>;
}

let python = '';
let places = 0;
let postgres: PostgresServer;
let gcs: TestServer;
let azurite: Azurite;
let moto: RunningServer;
let closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  python = await pythonWithPackage();
  [postgres, gcs, azurite, moto] = await Promise.all([startPostgres(), startFakeGcs(), startAzurite(), startMoto()]);
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
});
afterAll(() => Promise.all([postgres.stop(), gcs.stop(), azurite.stop(), moto.stop()]));

async function inPostgres(): Promise<Place> {
  const pool = new Pool({ connectionString: postgres.address });
  closing.push(() => pool.end());
  await migrate(pool);
  const name = `ring-${++places}`;
  const place = { store: 'postgres', url: postgres.address, name };
  return {
    ring: () => postgresRing({ pool, name }),
    python: place,
    nowhere: { ...place, table: 'nowhere' },
    remove: () => pool.query('DELETE FROM sealring_ring WHERE name = $1', [name]),
  };
}

async function inDynamodb(): Promise<Place> {
  const endpoint = moto.address;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new DynamoDBClient({ endpoint, region, maxAttempts: 1, credentials });
  closing.push(async () => client.destroy());
  const table = `rings-${++places}`;
  await client.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    }),
  );
  const { DeleteItemCommand } = await import('@aws-sdk/client-dynamodb');
  const place = { store: 'dynamodb', endpoint, table, name: 'payments' };
  return {
    ring: () => dynamodbRing({ table, name: 'payments', client }),
    python: place,
    nowhere: { ...place, table: 'nowhere' },
    remove: () => client.send(new DeleteItemCommand({ TableName: table, Key: { pk: { S: 'ring#payments' } } })),
  };
}

async function inCloudStorage(): Promise<Place> {
  const client = new Storage({ apiEndpoint: gcs.address, projectId: 'test' });
  const object = `rings/${++places}`;
  const place = { store: 'gcs', endpoint: gcs.address, bucket: gcsBucket, name: object };
  return {
    ring: () => gcsRing({ bucket: gcsBucket, object, endpoint: gcs.address }),
    python: place,
    nowhere: { ...place, bucket: 'nowhere' },
    remove: () => client.bucket(gcsBucket).file(object).delete(),
  };
}

async function inBlobStorage(): Promise<Place> {
  const client = azuriteClient(azurite.account);
  const name = `${++places}.ring`;
  const { key } = azurite.account;
  const place = { store: 'azure-blob', container: client.url, key, name };
  return {
    ring: () => azureBlobRing({ container: client, blob: name }),
    python: place,
    nowhere: { ...place, container: `${client.url}-nowhere` },
    remove: () => client.deleteBlob(name),
  };
}

async function typescript({ ring }: Place): Promise<KmsCodec> {
  const keyWrapper = localKeyWrapper({ masterKey });
  const codec = await createKmsCodec({ keyWrapper, ring: ring(), ringName, create: 'now' });
  closing.push(() => codec.close());
  return codec;
}

function pythonMember(ring: object): PythonProcess {
  const keyWrapper = { masterKey: masterKey.toString('base64') };
  const policy = { start_timeout_seconds: startTimeoutSeconds };
  const member = new PythonProcess(python, { keyWrapper, ring, ringName, role: 'member', create: 'now', policy });
  closing.push(() => member.close());
  return member;
}

async function keysOf(member: PythonProcess): Promise<readonly string[]> {
  return Object.keys((await member.health()).keys);
}

const idsOf = (codec: KmsCodec): readonly string[] => codec.health().keys.map(({ id }) => id);

describe.each([
  ['PostgreSQL', inPostgres],
  ['DynamoDB', inDynamodb],
  ['Google Cloud Storage', inCloudStorage],
  ['Azure Blob Storage', inBlobStorage],
] as const)('a ring in %s', (_, make) => {
  test('Python and TypeScript members share a ring that either created, write it concurrently, and restore a lost one', async () => {
    for (const first of ['TypeScript', 'Python'] as const) {
      const place = await make();
      const theirs = pythonMember(place.python);
      if (first === 'Python') await theirs.start();
      const ours = await typescript(place);
      if (first === 'TypeScript') await theirs.start();
      for (let round = 0; round < 3; round++) {
        await Promise.all([ours.rotate(), theirs.rotate({ emergency: true })]);
        await Promise.all([ours.refresh(), theirs.refresh()]);
        expect(await keysOf(theirs)).toEqual(idsOf(ours));
      }
      expect(idsOf(ours).length).toBeGreaterThanOrEqual(4);
      expect(Buffer.from(ours.unseal(await theirs.seal('from Python'))).toString()).toBe('from Python');
      const revoked = ours.health().sealingKey ?? '';
      await theirs.revoke(revoked);
      await ours.refresh();
      expect(ours.health().keys.find(({ id }) => id === revoked)?.state).toBe('revoked');
      await ours.close();
      await place.remove();
      await theirs.refresh().catch(() => undefined);
      await expect.poll(() => place.ring().read(), HEARD).toBeDefined();
      const restored = await typescript(place);
      expect(
        restored
          .health()
          .keys.map(({ id }) => id)
          .toSorted(),
      ).toEqual((await keysOf(theirs)).toSorted());
      expect((await theirs.health()).status).toBe('ok');
    }
  });

  test('a ring that cannot be looked up is not treated as absent', async () => {
    const { nowhere } = await make();
    await expect(pythonMember(nowhere).start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
  });
});

test('a write to PostgreSQL notifies the members of the other language', async () => {
  const place = await inPostgres();
  const ours = await typescript(place);
  const theirs = pythonMember(place.python);
  await theirs.start();
  await ours.rotate();
  // The wait is longer than the interval between two reads by notification, and much shorter than two refreshes.
  await expect.poll(() => keysOf(theirs), HEARD).toHaveLength(2);
  await theirs.rotate({ emergency: true });
  await expect.poll(() => idsOf(ours), HEARD).toHaveLength(3);
});
