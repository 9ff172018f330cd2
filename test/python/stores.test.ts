import { randomBytes } from 'node:crypto';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { createKmsCodec, type KeyWrapper, type KmsCodec, localKeyWrapper, type RingStore } from '@sealring/core';
import { redisRing } from '@sealring/redis';
import { s3Ring } from '@sealring/s3';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createUser, enforcePolicies, startMoto } from '../support/moto.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import type { RunningServer } from '../support/servers.ts';
import { until } from '../support/until.ts';
import { pythonWithPackage } from './python-package.ts';
import { pythonPolicyOf } from './python-policy.ts';
import { type PythonOptions, PythonProcess } from './python-process.ts';

const ringName = 'payments';
const region = 'us-east-1';
// The test uses real clocks: a requested emergency key seals after 3 s.
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 0.5,
  backoffCapSeconds: 0.5,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 12,
  storeOutageSeconds: 30,
  propagationSeconds: 15,
  rotateEverySeconds: 600,
  tokenLifetimeSeconds: 60,
};
const pythonPolicy = pythonPolicyOf(policy);

let python = '';
let moto: RunningServer;
let redis: TestServer;
let kms: KMSClient;
let s3: S3Client;
/** Credentials of a user with the README's permissions of a reader, and of one who may not call the KMS. */
let reading: readonly [string, string];
let storeOnly: readonly [string, string];
let closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  python = await pythonWithPackage();
  moto = await startMoto();
  redis = await startRedis();
  const endpoint = moto.address;
  const all = await createUser(endpoint, 'all', ['kms:*', 's3:*']);
  const reader = await createUser(endpoint, 'reader', ['kms:Decrypt', 's3:GetObject', 's3:ListBucket']);
  const store = await createUser(endpoint, 'store', ['s3:GetObject', 's3:ListBucket']);
  reading = [reader.accessKeyId, reader.secretAccessKey];
  storeOnly = [store.accessKeyId, store.secretAccessKey];
  kms = new KMSClient({ endpoint, region, maxAttempts: 1, credentials: all });
  s3 = new S3Client({ endpoint, region, maxAttempts: 1, forcePathStyle: true, credentials: all });
  await enforcePolicies(endpoint);
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
});
afterAll(async () => {
  kms.destroy();
  s3.destroy();
  await redis.stop();
  await moto.stop();
});

async function memberOf(keyWrapper: KeyWrapper, ring: RingStore): Promise<KmsCodec> {
  const accept = ['sealring', 'python'] as const;
  const codec = await createKmsCodec({ keyWrapper, ring, ringName, accept, policy, create: 'now' });
  closing.push(() => codec.close());
  return codec;
}

function readerOf(options: Omit<PythonOptions, 'ringName' | 'policy'>): PythonProcess {
  const reader = new PythonProcess(python, { ...options, ringName, policy: pythonPolicy });
  closing.push(() => reader.close());
  return reader;
}

async function started(options: Omit<PythonOptions, 'ringName' | 'policy'>): Promise<PythonProcess> {
  const reader = readerOf(options);
  await reader.start();
  return reader;
}

/** Two rotations and a revocation, which the readers notice by themselves; returns the keys that sealed. */
async function live(member: KmsCodec, readers: readonly PythonProcess[]): Promise<void> {
  const sealed: string[] = [];
  const keys = new Set<string>();
  const exchange = async (): Promise<void> => {
    for (const reader of readers) sealed.push(await reader.seal('state'));
    sealed.push(member.seal(Buffer.from('state')));
    for (const token of sealed) {
      expect(Buffer.from(member.unseal(token)).toString()).toBe('state');
      for (const reader of readers) expect(await reader.unseal(token)).toBe('state');
    }
  };
  const sealingKeys = async (): Promise<readonly (string | null | undefined)[]> => [
    member.health().sealingKey,
    ...(await Promise.all(readers.map(async (reader) => (await reader.health()).sealingKey))),
  ];
  const settled = async (): Promise<void> => {
    // Every member seals with the same new key.
    await until(async () => {
      const [key, ...others] = await sealingKeys();
      return typeof key === 'string' && !keys.has(key) && others.every((other) => other === key);
    });
    const [key] = await sealingKeys();
    keys.add(String(key));
  };

  await settled();
  await exchange();
  for (let rotation = 1; rotation <= 2; rotation++) {
    await member.rotate({ emergency: true });
    await exchange();
    await settled();
    await exchange();
  }
  expect(keys.size).toBe(3);
  const [revoked = ''] = [...keys].slice(-1);
  await member.revoke(revoked);
  await settled();
  for (const reader of readers) {
    const { status, keys: states } = await reader.health();
    expect(status).toBe('ok');
    expect(states[revoked]).toBe('revoked');
  }
  for (const token of sealed.filter((other) => other.slice(4, 16) === revoked)) {
    for (const reader of readers) {
      await expect(reader.unseal(token)).rejects.toMatchObject({ name: 'InvalidRequestState', kind: 'unknown key' });
    }
  }
}

test('a reader reads a ring in S3 under an AWS KMS key with only a reader’s permissions', async () => {
  await s3.send(new CreateBucketCommand({ Bucket: 'rings' }));
  const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
  const keyId = KeyMetadata?.Arn ?? '';
  // moto cannot check the signature of a request whose path is encoded.
  const key = 'payments.ring';
  const keyWrapper = awsKmsKeyWrapper({ keyId, client: kms });
  const aws = { endpoint: moto.address, keyId, bucket: 'rings', key };
  const options = { keyWrapper: { ...aws, credentials: reading }, ring: { ...aws, credentials: reading } };
  const first = readerOf(options);
  const [member] = await Promise.all([
    memberOf(keyWrapper, s3Ring({ bucket: 'rings', key, client: s3 })),
    first.start(),
  ]);
  await live(member, [first, await started({ ...options, format: 'python' })]);

  const powerless = readerOf({ ...options, keyWrapper: { ...aws, credentials: storeOnly } });
  await expect(powerless.start()).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
  const nobody = readerOf({ ...options, ring: { ...aws, credentials: ['nobody', 'nobody'] } });
  await expect(nobody.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'denied' });
  const elsewhere = readerOf({ ...options, keyWrapper: { ...aws, keyId: keyId.slice(0, -4).concat('0000') } });
  await expect(elsewhere.start()).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'corrupt' });
});

test('a reader reads a ring in Redis with only a reader’s permissions', async () => {
  const client = createClient({ url: redis.address });
  await client.connect();
  closing.push(() => client.close());
  const key = 'sealring:payments';
  // As in the README of @sealring/redis.
  const rights = `resetchannels %R~${key} &${key} -@all +evalsha_ro +eval_ro +info +type +hstrlen +hmget +subscribe +ping`;
  for (const [user, may] of [
    ['reader', rights],
    ['stranger', '-@all +ping'],
  ] as const) {
    await client.sendCommand(['ACL', 'SETUSER', user, 'on', '>secret', ...may.split(' ')]);
  }
  const masterKey = randomBytes(32);
  const keyWrapper = { masterKey: masterKey.toString('base64') };
  const urlOf = (user: string): string => redis.address.replace('//', `//${user}:secret@`);

  const stranger = readerOf({ keyWrapper, ring: { url: urlOf('stranger'), key } });
  await expect(stranger.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'denied' });
  const wrong = readerOf({ keyWrapper, ring: { url: urlOf('nobody'), key } });
  await expect(wrong.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'denied' });

  const member = await memberOf(localKeyWrapper({ masterKey }), redisRing({ client, key }));
  const ring = { url: urlOf('reader'), key };
  const readers = [await started({ keyWrapper, ring }), await started({ keyWrapper, ring, format: 'python' })];
  await live(member, readers);

  // F31: the server dies, starts again empty, and a member restores it.
  await client.sendCommand(['FLUSHALL']);
  await until(async () => (await client.exists(key)) === 1);
  for (const reader of readers) {
    await reader.refresh();
    expect((await reader.health()).status).toBe('ok');
    expect(await reader.unseal(member.seal(Buffer.from('x')))).toBe('x');
  }
});
