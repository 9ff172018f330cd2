import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateTableCommand, DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { migrate } from '@sealring/postgres';
import { Client } from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Azurite, azuriteClient, startAzurite } from '../support/azurite.ts';
import { gcsBucket, getGcsObject, startFakeGcs } from '../support/fake-gcs.ts';
import { NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import { type RunningServer, startOrSkip } from '../support/servers.ts';
import { Member } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';
import type { RingPlace } from './member-ring.ts';

/** Sixty with SEALRING_MEMBERS=60: loading the clients of all services in so many processes takes some minutes. */
const MEMBERS = Number(process.env['SEALRING_MEMBERS'] ?? 15);
const NAME = 'founding';
const policy = { ...fleetPolicy, createAfterSeconds: 2 };

const moto = inject('moto');
const stopping: RunningServer[] = [];
async function started<T extends RunningServer>(start: () => Promise<T>): Promise<T | undefined> {
  let server: T | undefined;
  await startOrSkip(async () => {
    server = await start();
    stopping.push(server);
    return server;
  });
  return server;
}
const redis: TestServer | undefined = await started(() => startRedis());
const postgres: TestServer | undefined = await started(() => startPostgres(['max_connections=300']));
const azurite: Azurite | undefined = await started(startAzurite);
const gcs: TestServer | undefined = await started(startFakeGcs);
const kubernetes = await startFakeApiServer();
stopping.push(kubernetes.server);
const directory = mkdtempSync(join(tmpdir(), 'sealring-founding-'));

const aws = {
  endpoint: moto,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};
const s3 = new S3Client({ ...aws, forcePathStyle: true });
const dynamodb = new DynamoDBClient(aws);

interface Store {
  readonly store: string;
  readonly isThere: boolean;
  readonly ring: RingPlace;
  readonly prepare?: () => Promise<unknown>;
  /** The document in the store, read without the store's own code. */
  readonly document: () => Promise<string | undefined>;
}

const stores: readonly Store[] = [
  {
    store: 'a file',
    isThere: true,
    ring: { file: join(directory, NAME) },
    document: () => readFile(join(directory, NAME), 'utf8'),
  },
  {
    store: 'Redis',
    isThere: redis !== undefined,
    ring: { redis: redis?.address ?? '', key: NAME },
    async document() {
      const client = await createClient({ url: redis?.address ?? '' }).connect();
      const document = await client.hGet(NAME, 'document');
      client.destroy();
      return document ?? undefined;
    },
  },
  {
    store: 'PostgreSQL',
    isThere: postgres !== undefined,
    ring: { postgres: postgres?.address ?? '', name: NAME },
    prepare: () => withPostgres(migrate),
    document: () =>
      withPostgres(async (client) => (await client.query('SELECT document FROM sealring_ring')).rows[0]?.document),
  },
  {
    store: 'S3',
    isThere: moto !== '',
    ring: { s3: moto, bucket: 'sealring-founding', key: NAME },
    prepare: () => s3.send(new CreateBucketCommand({ Bucket: 'sealring-founding' })),
    async document() {
      const { Body } = await s3.send(new GetObjectCommand({ Bucket: 'sealring-founding', Key: NAME }));
      return Body?.transformToString();
    },
  },
  {
    store: 'DynamoDB',
    isThere: moto !== '',
    ring: { dynamodb: moto, table: 'sealring-founding', name: NAME },
    prepare: () =>
      dynamodb.send(
        new CreateTableCommand({
          TableName: 'sealring-founding',
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
          KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
        }),
      ),
    async document() {
      const key = { pk: { S: `ring#${NAME}` } };
      const { Item } = await dynamodb.send(new GetItemCommand({ TableName: 'sealring-founding', Key: key }));
      return Item?.['document']?.S;
    },
  },
  {
    store: 'Azure Blob Storage',
    isThere: azurite !== undefined,
    ring: { azurite: azurite?.account ?? { address: '', name: '', key: '' }, blob: NAME },
    async document() {
      const { account } = azurite as Azurite;
      return (await azuriteClient(account).getBlockBlobClient(NAME).downloadToBuffer()).toString();
    },
  },
  {
    store: 'Kubernetes',
    isThere: true,
    ring: { kubernetes: kubernetes.server.address, name: NAME },
    async document() {
      const found = await kubernetes.call('GET', `/api/v1/namespaces/${NAMESPACE}/secrets/${NAME}`);
      const { data } = found.body as { data: { ring: string } };
      return Buffer.from(data.ring, 'base64').toString();
    },
  },
  {
    store: 'Google Cloud Storage',
    isThere: gcs !== undefined,
    ring: { gcs: gcs?.address ?? '', bucket: gcsBucket, object: NAME },
    document: async () => (await getGcsObject(gcs?.address ?? '', gcsBucket, NAME)).toString(),
  },
];

async function withPostgres<T>(run: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: postgres?.address ?? '' });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

describe(`${MEMBERS} processes that start at the same time on an empty store`, () => {
  const members: Member[] = [];
  beforeAll(async () => {
    // All stores share these processes, because loading a process takes longer than the start in it.
    members.push(...(await Promise.all(Array.from({ length: MEMBERS }, (_, i) => Member.fork(`member ${i + 1}`)))));
  });
  afterAll(async () => {
    for (const member of members) member.kill();
    s3.destroy();
    dynamodb.destroy();
    for (const server of stopping) await server.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  for (const { store, isThere, ring, prepare, document } of stores) {
    test.skipIf(!isThere)(
      `processes that start at the same time create one ring with one key on ${store}`,
      async () => {
        await prepare?.();
        const order = { ring, kms: { masterKey: randomBytes(32).toString('hex') }, policy };
        await Promise.all(members.map((member) => member.tell('start', order)));
        const { keys } = JSON.parse((await document()) ?? '') as { keys: { id: string }[] };
        expect(keys).toHaveLength(1);
        const healths = await Promise.all(members.map((member) => member.tell('health', undefined)));
        expect(new Set(healths.map(({ sealingKey }) => sealingKey))).toEqual(new Set([keys[0]?.id]));
        await Promise.all(members.map((member) => member.tell('close', undefined)));
      },
    );
  }
});
