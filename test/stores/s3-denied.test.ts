import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { s3Ring } from '@sealring/s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createUser, enforcePolicies, startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';

// A separate moto server, because the whole server enforces the policies.
const moto = await startOrSkip(startMoto);
afterAll(() => moto?.stop());
const address = moto?.address ?? '';

function newClient(accessKeyId: string, secretAccessKey: string): S3Client {
  return new S3Client({
    endpoint: address,
    forcePathStyle: true,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
}

const denied = { name: 'RingStoreError', kind: 'denied' };

describe.skipIf(moto === undefined)('S3 with IAM policies', () => {
  const closing: (() => void)[] = [];
  const rings: Record<string, ReturnType<typeof s3Ring>> = {};

  beforeAll(async () => {
    const admin = newClient('test', 'test');
    await admin.send(new CreateBucketCommand({ Bucket: 'ring' }));
    admin.destroy();
    const users = {
      member: ['s3:GetObject', 's3:PutObject', 's3:ListBucket'],
      reader: ['s3:GetObject'],
      writer: ['s3:PutObject'],
      stranger: [],
    };
    for (const [name, actions] of Object.entries(users)) {
      const { accessKeyId, secretAccessKey } = await createUser(address, name, actions);
      const client = newClient(accessKeyId, secretAccessKey);
      closing.push(() => client.destroy());
      rings[name] = s3Ring({ bucket: 'ring', key: 'k', client });
    }
    await enforcePolicies(address);
  });
  afterAll(() => {
    for (const close of closing) close();
  });

  test('the policies in the README are sufficient for a member and for a reader, and do not let a reader write', async () => {
    const { member, reader } = rings;
    expect(await member?.read()).toBeUndefined();
    const first = await member?.write('x', { expected: undefined });
    await member?.write('y', { expected: first?.revision });
    const stored = await reader?.read();
    expect(stored?.document).toBe('y');
    await expect(reader?.write('z', { expected: stored?.revision })).rejects.toMatchObject(denied);
    await expect(reader?.write('z', { expected: undefined })).rejects.toMatchObject(denied);
    expect(await member?.read()).toEqual(stored);
  });

  test('a server without permission to read is denied, whether or not there is a ring (F9)', async () => {
    for (const name of ['writer', 'stranger']) {
      await expect(rings[name]?.read()).rejects.toMatchObject(denied);
      await expect(rings[name]?.write('z', { expected: 'x' })).rejects.toMatchObject(denied);
    }
    await expect(rings['stranger']?.write('z', { expected: undefined })).rejects.toMatchObject(denied);
  });

  test('a wrong secret is denied', async () => {
    const client = newClient('AKIAXXXXXXXXXXXXXXXX', 'wrong');
    await expect(s3Ring({ bucket: 'ring', key: 'k', client }).read()).rejects.toMatchObject(denied);
    client.destroy();
  });
});
