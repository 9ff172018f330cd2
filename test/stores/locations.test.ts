import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { azureBlobRing } from '@sealring/azure-blob';
import { fileRing, type RingStore } from '@sealring/core';
import { dynamodbRing } from '@sealring/dynamodb';
import { gcsRing } from '@sealring/gcs';
import { kubernetesRing } from '@sealring/kubernetes';
import { postgresRing } from '@sealring/postgres';
import { redisRing } from '@sealring/redis';
import { s3Ring } from '@sealring/s3';
import { expect, test } from 'vitest';

const SECRET = 'hunter2';

// Nothing here makes a call.
const stores: readonly (readonly [store: RingStore, location: string])[] = [
  [fileRing('/var/lib/sealring/payments.ring'), '/var/lib/sealring/payments.ring'],
  [s3Ring({ bucket: 'payments-sealring', key: 'payments.ring' }), 's3://payments-sealring/payments.ring'],
  [
    dynamodbRing({ table: 'sealring', name: 'payments', client: new DynamoDBClient({ region: 'eu-west-1' }) }),
    'dynamodb table sealring, item ring#payments',
  ],
  [gcsRing({ bucket: 'payments-sealring', object: 'payments.ring' }), 'gs://payments-sealring/payments.ring'],
  [
    azureBlobRing({ container: `https://payments.blob.core.windows.net/ring?sig=${SECRET}`, blob: 'payments.ring' }),
    'https://payments.blob.core.windows.net/ring/payments.ring',
  ],
  [
    redisRing({ url: `rediss://user:${SECRET}@redis.internal:6380` }),
    'rediss://redis.internal:6380, key sealring:ring',
  ],
  [
    postgresRing({ connectionString: `postgres://user:${SECRET}@db.internal/app`, name: 'payments' }),
    'postgres table "sealring_ring", row payments',
  ],
  [kubernetesRing({ namespace: 'payments', name: 'payments-ring' }), 'kubernetes Secret payments/payments-ring'],
];

test.each(stores.map(([store, location]) => [store.kind, store, location] as const))(
  'the location of a ring in %s names its place and contains no secret',
  async (_, store, location) => {
    expect(store.location).toBe(location);
    expect(store.location).not.toContain(SECRET);
    await store.close?.();
  },
);
