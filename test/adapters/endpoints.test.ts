import { randomUUID } from 'node:crypto';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import type { KeyWrapper, RingStore } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { gcsRing } from '@sealring/gcs';
import { s3Ring } from '@sealring/s3';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { fixedCredential } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { gcsBucket, startFakeGcs } from '../support/fake-gcs.ts';
import { type RunningGcpKms, startGcpKms } from '../support/gcp-kms/index.ts';
import { type RunningServer, startOrSkip } from '../support/servers.ts';

const context = { ring: 'test' };
const dataKey = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const moto = inject('moto');

const fakeGcs: RunningServer | undefined = await startOrSkip(startFakeGcs);
afterAll(() => fakeGcs?.stop());
afterEach(() => {
  vi.unstubAllEnvs();
});

/** The result of unwrapping a wrapped data key. */
async function roundTrip(keyWrapper: KeyWrapper): Promise<Uint8Array> {
  const wrapped = await keyWrapper.wrap(dataKey, { context });
  const unwrapped = await keyWrapper.unwrap(wrapped, { context });
  await keyWrapper.close?.();
  return unwrapped;
}

/** The results of reading before a ring is created, and after. */
async function documents(ring: RingStore): Promise<(string | undefined)[]> {
  const before = await ring.read();
  await ring.write('created', { expected: undefined });
  const after = await ring.read();
  await ring.close?.();
  return [before?.document, after?.document];
}

describe('endpoint of gcpKmsKeyWrapper', () => {
  let server: RunningGcpKms;
  beforeAll(async () => {
    server = await startGcpKms();
  });
  afterAll(() => server.stop());

  test('reaches an emulator over an insecure channel, without credentials', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nonexistent');
    const endpoint = `http://${server.host}:${server.port}`;
    const keyWrapper = gcpKmsKeyWrapper({ keyId: server.kms.createKey(), endpoint });
    expect(await roundTrip(keyWrapper)).toEqual(dataKey);
  });
});

test.skipIf(fakeGcs === undefined)('endpoint of gcsRing reaches an emulator without credentials', async () => {
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

describe('disableChallengeResourceVerification of azureKeyVaultKeyWrapper', () => {
  let vault: FakeKeyVault;
  beforeAll(async () => {
    vault = await FakeKeyVault.start();
    setDefaultCACertificates([...getCACertificates('default'), vault.certificate]);
  });
  afterAll(() => vault.stop());

  test('reaches a vault whose host name is not under vault.azure.net', async () => {
    const access = {
      credential: fixedCredential(vault.issueToken()),
      disableChallengeResourceVerification: true,
    };
    const keyId = vault.idOf(vault.createKey('wrapping'));
    const signing = vault.createKey('signing', 'EC');
    const signKeyId = vault.idOf(signing, signing.current);
    const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], ...access });
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, ...access });
    expect(await roundTrip(keyWrapper)).toEqual(dataKey);
  });

  test('without it, the failure names the check and the option', async () => {
    const credential = fixedCredential(vault.issueToken());
    const keyId = vault.idOf(vault.createKey('checked'));
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId, credential, maxAttempts: 1 });
    await expect(keyWrapper.wrap(dataKey, { context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: {
        code: 'ERR_AZURE_CHALLENGE_RESOURCE',
        hint: expect.stringContaining('disableChallengeResourceVerification'),
      },
    });
  });
});

test.each([
  [
    'gcpKmsKeyWrapper',
    (endpoint: string) => gcpKmsKeyWrapper({ keyId: 'projects/p/locations/l/keyRings/r/cryptoKeys/k', endpoint }),
  ],
  ['gcsRing', (endpoint: string) => gcsRing({ bucket: 'sealring', object: 'ring', endpoint })],
])('%s refuses an http:// endpoint of another machine', (_, make) => {
  expect(() => make('http://emulator.example:4443')).toThrow(/dangerouslyAllowHttp/);
  expect(() => make('emulator.example:4443')).toThrow(RangeError);
});
