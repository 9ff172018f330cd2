import {
  CreateKeyCommand,
  DisableKeyCommand,
  EnableKeyRotationCommand,
  KMSClient,
  ScheduleKeyDeletionCommand,
} from '@aws-sdk/client-kms';
import { CreateBucketCommand, DeleteObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import type { SealringConfig } from '@sealring/cli';
import { memoryRing, type RingStore, type WrapOptions } from '@sealring/core';
import { s3Ring } from '@sealring/s3';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startLocalstack } from '../support/localstack.ts';
import { type Credentials, createUser, enforcePolicies, startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';
import { startClockProxy } from './clock-proxy.ts';
import { createRing, examine, findingOf, idsOf } from './findings.ts';

const TEST: Credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

function kmsClient(endpoint: string, credentials: Credentials = TEST, region = 'us-east-1'): KMSClient {
  const client = new KMSClient({ endpoint, region, maxAttempts: 1, credentials });
  closing.push(() => client.destroy());
  return client;
}

function s3Client(endpoint: string, credentials: Credentials = TEST): S3Client {
  const client = new S3Client({ endpoint, forcePathStyle: true, region: 'us-east-1', maxAttempts: 1, credentials });
  closing.push(() => client.destroy());
  return client;
}

async function createKey(endpoint: string, region = 'us-east-1'): Promise<string> {
  const { KeyMetadata } = await kmsClient(endpoint, TEST, region).send(new CreateKeyCommand({}));
  return KeyMetadata?.Arn ?? '';
}

/** The doctor's own check of the key uses the default chain, as the command line's user does. */
function useDefaultChain(endpoint: string): void {
  const own = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: TEST.accessKeyId,
    AWS_SECRET_ACCESS_KEY: TEST.secretAccessKey,
    AWS_REGION: 'us-east-1',
  };
  const before = Object.fromEntries(Object.keys(own).map((name) => [name, process.env[name]]));
  beforeAll(() => void Object.assign(process.env, own));
  afterAll(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
}

const moto = inject('moto');

describe.skipIf(moto === '')('the doctor, on KMS and S3', () => {
  useDefaultChain(moto);
  let keyId = '';
  let objects = 0;
  beforeAll(async () => {
    keyId = await createKey(moto);
    await s3Client(moto).send(new CreateBucketCommand({ Bucket: 'doctor' }));
  });

  const ringAt = (key: string, endpoint = moto): RingStore =>
    s3Ring({ bucket: 'doctor', key, client: s3Client(endpoint) });
  const newRing = (): RingStore => ringAt(`ring-${objects++}`);
  const wrapperOf = (id: string, client = kmsClient(moto)) => awsKmsKeyWrapper({ keyId: id, client, maxAttempts: 1 });
  const sound = (): SealringConfig => ({ ringName: 'payments', ring: newRing(), keyWrapper: wrapperOf(keyId) });

  test('reports no error for a healthy ring, tests compare-and-swap with the probe, and removes its writes', async () => {
    await kmsClient(moto).send(new EnableKeyRotationCommand({ KeyId: keyId }));
    const beside = ringAt('probe');
    const remove = async () =>
      void (await s3Client(moto).send(new DeleteObjectCommand({ Bucket: 'doctor', Key: 'probe' })));
    const config = { ...sound(), probe: { ring: beside, remove } };
    await createRing(config);
    const before = await config.ring.read();
    const report = await examine(config);
    // The log of Python servers is not visible here: the doctor prints a hint, and nothing else.
    const told = report.findings.filter(({ severity }) => severity !== 'ok');
    expect(told.map(({ id, severity }) => `${severity} ${id}`)).toEqual(['info botocore-logging']);
    expect(report.healthy).toBe(true);
    expect(idsOf(report, 'ok')).toEqual(
      expect.arrayContaining(['policy', 'kms', 'kms-state', 'store-write', 'store-swap', 'ring', 'rotation', 'clock']),
    );
    expect(report.wrote.at(-1)).toBe('removed both');
    expect(await beside.read()).toBeUndefined();
    expect(await config.ring.read()).toEqual(before);
  });

  test('reports a key id that does not exist', async () => {
    const report = await examine({ ...sound(), keyWrapper: wrapperOf('11111111-2222-3333-4444-555555555555') });
    expect(report.healthy).toBe(false);
    expect(findingOf(report, 'kms-not-found')?.remedy).toMatch(/key id/);
  });

  test('reports a key of another region', async () => {
    const elsewhere = await createKey(moto, 'eu-west-1');
    const id = elsewhere.split('/').at(-1) ?? '';
    const report = await examine({ ...sound(), keyWrapper: wrapperOf(id) });
    expect(findingOf(report, 'kms-not-found')?.remedy).toMatch(/region/);
    const right = await examine({ ...sound(), keyWrapper: wrapperOf(id, kmsClient(moto, TEST, 'eu-west-1')) });
    expect(findingOf(right, 'kms')?.severity).toBe('ok');
  });

  test('reports a bucket that does not exist', async () => {
    const ring = s3Ring({ bucket: 'no-such-bucket', key: 'ring', client: s3Client(moto) });
    const report = await examine({ ...sound(), ring });
    expect(report.healthy).toBe(false);
    expect(report.findings.find(({ id }) => id.startsWith('store-'))?.remedy).toBeDefined();
  });

  test('reports a missing ring as a warning, with init as the remedy', async () => {
    const report = await examine(sound());
    expect(report.healthy).toBe(true);
    expect(findingOf(report, 'store-absent')).toMatchObject({
      severity: 'warning',
      remedy: expect.stringContaining('sealring init'),
    });
  });

  test('reports a ring with another name', async () => {
    const config = sound();
    await createRing(config);
    const report = await examine({ ...config, ringName: 'orders' });
    expect(idsOf(report, 'error')).toEqual(['ring-other-name']);
    expect(findingOf(report, 'ring-other-name')?.what).toMatch(/"payments".*"orders"/);
  });

  test('reports a ring that is wrapped by a KMS key which is not configured', async () => {
    const config = sound();
    await createRing(config);
    const report = await examine({ ...config, keyWrapper: wrapperOf(await createKey(moto)) });
    expect(idsOf(report, 'error')).toEqual(['ring-foreign-key']);
    expect(findingOf(report, 'ring-foreign-key')?.what).toContain(keyId);
    expect(findingOf(report, 'ring-foreign-key')?.remedy).toMatch(/alsoUnwrap/);
  });

  test('F26: reports an edited ring document', async () => {
    const config = sound();
    await createRing(config);
    const { document = '', revision } = (await config.ring.read()) ?? {};
    await config.ring.write(document.replace('"keys":', '"more":1,"keys":'), { expected: revision });
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual(['ring-corrupt']);
    expect(findingOf(report, 'ring-corrupt')).toMatchObject({
      what: expect.stringContaining('an unknown property'),
      remedy: expect.stringContaining('sealring import'),
    });
  });

  test('F26: reports a ring with edited times', async () => {
    const config = sound();
    await createRing(config);
    const { document = '', revision } = (await config.ring.read()) ?? {};
    const later = document.replace(/"opensUntil":"(\d{4})/, (_, year) => `"opensUntil":"${Number(year) + 1}`);
    await config.ring.write(later, { expected: revision });
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual(['ring-wrap-corrupt']);
  });

  test('reports another document in place of the ring', async () => {
    const config = sound();
    await config.ring.write('{"hello":"world"}', { expected: undefined });
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual(['ring-corrupt']);
  });

  test('reports missing wraps by a second KMS key as a warning', async () => {
    const config = sound();
    await createRing(config);
    const report = await examine({ ...config, keyWrapper: [wrapperOf(keyId), wrapperOf(await createKey(moto))] });
    expect(report.healthy).toBe(true);
    expect(idsOf(report, 'warning')).toContain('ring-missing-wraps');
  });

  // The key seals for a day, and its successor is due 4 200 s before that.
  test.each([
    [82_100, 'ok', /is due at/],
    [83_000, 'warning', /no member has rotated yet/],
    [90_000, 'error', /has sealed for too long/],
    [172_800, 'error', /no key may seal/],
  ] as const)('reports a ring whose only key is %i s old, with severity %s', async (ageSeconds, severity, what) => {
    const past = { wallMs: () => Date.now() - ageSeconds * 1_000, monotonicNs: () => process.hrtime.bigint() };
    const policy = { rotateEverySeconds: 86_400, tokenLifetimeSeconds: 5 * 86_400, clockSkewSeconds: 0 };
    // No service contradicts the clock of the machine that creates it.
    const config = { ...sound(), ring: memoryRing(), policy };
    await createRing({ ...config, keyWrapper: withoutDate(wrapperOf(keyId)), clock: past });
    const report = await examine(config);
    const finding = report.findings.find(({ id }) => id === 'rotation-overdue' || id === 'rotation');
    expect(finding).toMatchObject({ severity, what: expect.stringMatching(what) });
    expect(finding?.remedy?.includes('sealring rotate') ?? false).toBe(severity !== 'ok');
    expect(report.healthy).toBe(severity !== 'error');
  });

  test('F13: reports a clock that is off by more than clockSkewSeconds', async () => {
    const proxy = await startClockProxy(moto, 900);
    closing.push(() => proxy.close());
    const config = { ...sound(), ring: ringAt(`ring-${objects++}`, proxy.address) };
    const report = await examine(config);
    expect(idsOf(report, 'error')).toEqual(['clock']);
    expect(findingOf(report, 'clock')).toBeDefined();
    const clock = report.findings.find(({ id, severity }) => id === 'clock' && severity === 'error');
    expect(clock?.what).toMatch(/behind the clock of the ring store/);
    expect(clock?.remedy).toMatch(/NTP/);
  });

  test('reports times of the policy that contradict each other', async () => {
    const report = await examine({ ...sound(), policy: { kmsCheckEverySeconds: 1_800 } });
    expect(idsOf(report, 'error')).toEqual(['policy']);
    expect(findingOf(report, 'policy')?.what).toMatch(/sealOutageSeconds \(3600\).*kmsCheckEverySeconds \(1800\)/);
  });

  test('reports an option that core rejects', async () => {
    const report = await examine({ ...sound(), ringName: 'not a name' });
    expect(idsOf(report, 'error')).toEqual(['options']);
    expect(findingOf(report, 'options')?.what).toContain('ringName');
  });

  test('F21: reports environment variables that expose secrets', async () => {
    const environment = { GOOGLE_SDK_NODE_LOGGING: 'kms', NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const report = await examine(sound(), environment);
    expect(idsOf(report, 'error')).toEqual(['tls-unchecked']);
    // The configuration does not use Google Cloud.
    expect(findingOf(report, 'google-logging')?.severity).toBe('warning');
    expect(findingOf(report, 'google-logging')?.remedy).toMatch(/Unset GOOGLE_SDK_NODE_LOGGING/);
  });
});

/** A key wrapper whose answers carry no date. */
function withoutDate(wrapper: ReturnType<typeof awsKmsKeyWrapper>): ReturnType<typeof awsKmsKeyWrapper> {
  const { provider, keyId, supports } = wrapper;
  const undated = ({ context, signal }: WrapOptions): WrapOptions => ({ context, ...(signal && { signal }) });
  return {
    provider,
    keyId,
    supports,
    generate: (options) => wrapper.generate(undated(options)),
    wrap: (dataKey, options) => wrapper.wrap(dataKey, undated(options)),
    unwrap: (wrapped, options) => wrapper.unwrap(wrapped, undated(options)),
    close: () => wrapper.close(),
  };
}

// A separate moto server, because the whole server enforces the policies.
const enforcing = await startOrSkip(startMoto);
closing.push(() => enforcing?.stop());

describe.skipIf(enforcing === undefined)('the doctor, with IAM policies', () => {
  const address = enforcing?.address ?? '';
  const users: Record<string, Credentials> = {};
  let keyId = '';
  beforeAll(async () => {
    keyId = await createKey(address);
    await s3Client(address).send(new CreateBucketCommand({ Bucket: 'doctor' }));
    const rights = {
      member: ['kms:GenerateDataKey', 'kms:Decrypt', 's3:GetObject', 's3:PutObject', 's3:ListBucket'],
      noDecrypt: ['kms:GenerateDataKey', 's3:GetObject', 's3:PutObject', 's3:ListBucket'],
      noGenerate: ['kms:Decrypt', 's3:GetObject', 's3:PutObject', 's3:ListBucket'],
      noList: ['kms:GenerateDataKey', 'kms:Decrypt', 's3:GetObject', 's3:PutObject'],
      reader: ['kms:Decrypt', 's3:GetObject'],
      stranger: ['s3:ListAllMyBuckets'],
    };
    for (const [name, actions] of Object.entries(rights)) users[name] = await createUser(address, name, actions);
    await createRing(configOf('test', 'ring'));
    await enforcePolicies(address);
  });

  function configOf(user: string, key: string): SealringConfig {
    const credentials = users[user] ?? TEST;
    return {
      ringName: 'payments',
      ring: s3Ring({ bucket: 'doctor', key, client: s3Client(address, credentials) }),
      keyWrapper: awsKmsKeyWrapper({ keyId, client: kmsClient(address, credentials), maxAttempts: 1 }),
    };
  }

  test('reports no error for the permissions of a member, which cannot read the state of the key', async () => {
    const report = await examine(configOf('member', 'ring'));
    expect(idsOf(report, 'error')).toEqual([]);
    expect(findingOf(report, 'kms-state')?.severity).toBe('info');
  });

  test('reports that kms:Decrypt is missing', async () => {
    const report = await examine(configOf('noDecrypt', 'ring'));
    expect(new Set(idsOf(report, 'error'))).toEqual(new Set(['kms-denied']));
    expect(findingOf(report, 'kms-denied')?.remedy).toMatch(/Grant kms:Decrypt/);
  });

  test('reports that kms:GenerateDataKey is missing, which servers need only at their next rotation', async () => {
    const report = await examine(configOf('noGenerate', 'ring'));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toMatch(/Grant kms:GenerateDataKey/);
  });

  test('reports no error for a reader with the permissions of a reader', async () => {
    const report = await examine({ ...configOf('reader', 'ring'), role: 'reader' });
    expect(idsOf(report, 'error')).toEqual([]);
  });

  test('reports a member with the permissions of a reader', async () => {
    const report = await examine(configOf('reader', 'ring'));
    expect(idsOf(report, 'error')).toEqual(['kms-denied', 'store-denied']);
    expect(findingOf(report, 'store-denied')?.remedy).toMatch(/Grant s3:PutObject/);
  });

  test('reports a role without any permission', async () => {
    const report = await examine(configOf('stranger', 'ring'));
    expect(idsOf(report, 'error')).toEqual(['kms-denied', 'store-denied']);
    expect(findingOf(report, 'store-denied')?.remedy).toMatch(/s3:GetObject.*s3:ListBucket/);
  });
});

const localstack = await startOrSkip(startLocalstack);
closing.push(() => localstack?.stop());

describe.skipIf(localstack === undefined)('the doctor, on keys in other states', () => {
  const address = localstack?.address ?? '';
  useDefaultChain(address);
  const sound = (keyId: string): SealringConfig => ({
    ring: memoryRing(),
    keyWrapper: awsKmsKeyWrapper({ keyId, client: kmsClient(address), maxAttempts: 1 }),
  });

  test('F10: reports a disabled key', async () => {
    const keyId = await createKey(address);
    const config = sound(keyId);
    await createRing(config);
    await kmsClient(address).send(new DisableKeyCommand({ KeyId: keyId }));
    const report = await examine(config);
    expect(new Set(idsOf(report, 'error'))).toEqual(new Set(['kms-disabled']));
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/aws kms enable-key/);
    expect(idsOf(report, 'warning')).toEqual(['store-memory']);
  });

  test('F10: reports a key that is pending deletion', async () => {
    const keyId = await createKey(address);
    await kmsClient(address).send(new ScheduleKeyDeletionCommand({ KeyId: keyId, PendingWindowInDays: 30 }));
    const report = await examine(sound(keyId));
    expect(findingOf(report, 'kms-pending-deletion')?.remedy).toMatch(/cancel-key-deletion/);
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/cancel-key-deletion/);
  });

  test.each([
    ['HMAC', { KeySpec: 'HMAC_256', KeyUsage: 'GENERATE_VERIFY_MAC' }],
    ['EC', { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' }],
    ['RSA', { KeySpec: 'RSA_2048', KeyUsage: 'ENCRYPT_DECRYPT' }],
  ] as const)('reports an %s key as a key of the wrong kind, not as a missing permission', async (_, spec) => {
    const { KeyMetadata } = await kmsClient(address).send(new CreateKeyCommand(spec));
    const report = await examine(sound(KeyMetadata?.Arn ?? ''));
    expect(new Set(idsOf(report, 'error'))).toEqual(new Set(['kms-usage']));
    const remedies = report.findings.filter(({ severity }) => severity === 'error').map(({ remedy }) => remedy);
    expect(new Set(remedies)).toEqual(
      new Set(['Use a key with KeySpec SYMMETRIC_DEFAULT and KeyUsage ENCRYPT_DECRYPT.']),
    );
  });

  test('reports a key without automatic rotation as a warning', async () => {
    const report = await examine(sound(await createKey(address)));
    expect(report.healthy).toBe(true);
    expect(idsOf(report, 'warning')).toContain('kms-rotation');
  });
});
