import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { RingStore } from '@sealring/core';
import { gcsRing } from '@sealring/gcs';
import { s3Ring } from '@sealring/s3';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { gcsBucket, startFakeGcs } from '../support/fake-gcs.ts';
import { type RunningServer, startOrSkip } from '../support/servers.ts';

const moto = inject('moto');

const fakeGcs: RunningServer | undefined = await startOrSkip(startFakeGcs);
afterAll(() => fakeGcs?.stop());
afterEach(() => {
  vi.unstubAllEnvs();
});

/** What a read returns before a ring is created, and after. */
async function documents(ring: RingStore): Promise<(string | undefined)[]> {
  const before = await ring.read();
  await ring.write('created', { expected: undefined });
  const after = await ring.read();
  await ring.close?.();
  return [before?.document, after?.document];
}

test.skipIf(fakeGcs === undefined)('gcsRing reaches an emulator at its endpoint without credentials', async () => {
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nonexistent');
  const ring = gcsRing({ bucket: gcsBucket, object: randomUUID(), endpoint: fakeGcs?.address ?? '' });
  expect(await documents(ring)).toEqual([undefined, 'created']);
});

describe.skipIf(moto === '')('forcePathStyle of s3Ring', () => {
  const bucket = `path-style-${randomUUID()}`;
  beforeAll(async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new S3Client({ endpoint: moto, region: 'us-east-1', credentials, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    client.destroy();
  });

  function stubEnvironment(endpoint: string): void {
    vi.stubEnv('AWS_ENDPOINT_URL', endpoint);
    vi.stubEnv('AWS_REGION', 'us-east-1');
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  }

  test('reaches an emulator at AWS_ENDPOINT_URL, whose host name has no subdomains', async () => {
    const { port } = new URL(moto);
    stubEnvironment(`http://localhost:${port}`);
    const ring = s3Ring({ bucket, key: randomUUID(), forcePathStyle: true });
    expect(await documents(ring)).toEqual([undefined, 'created']);
  });
});

test('gcsRing refuses an http:// endpoint on another machine', () => {
  const make = (endpoint: string) => gcsRing({ bucket: 'sealring', object: 'ring', endpoint });
  expect(() => make('http://emulator.example:4443')).toThrow(/dangerouslyAllowHttp/);
  expect(() => make('emulator.example:4443')).toThrow(RangeError);
});
