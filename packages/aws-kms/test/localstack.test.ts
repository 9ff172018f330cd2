import {
  CancelKeyDeletionCommand,
  CreateAliasCommand,
  CreateKeyCommand,
  type CreateKeyCommandInput,
  DisableKeyCommand,
  EnableKeyCommand,
  KMSClient,
  ReplicateKeyCommand,
  RotateKeyOnDemandCommand,
  ScheduleKeyDeletionCommand,
  UpdateAliasCommand,
} from '@aws-sdk/client-kms';
import { type KeyWrapper, memoryRing, type WrappedKey } from '@sealring/core';
import { afterAll, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { startLocalstack } from '../../../test/support/localstack.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { startOrSkip } from '../../../test/support/servers.ts';
import { type AwsKmsKeyWrapperOptions, awsKmsKeyWrapper, createAwsKmsCodec } from '../src/index.ts';

const localstack = await startOrSkip(startLocalstack);
const clients: KMSClient[] = [];
afterAll(async () => {
  for (const client of clients) client.destroy();
  await localstack?.stop();
});

const context = { 'sealring:ring': 'test', 'sealring:purpose': 'data-key' };

function newClient(region = 'us-east-1'): KMSClient {
  const client = new KMSClient({
    endpoint: localstack?.address ?? '',
    region,
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  clients.push(client);
  return client;
}

async function createKey(client: KMSClient, input: CreateKeyCommandInput = {}): Promise<string> {
  const { KeyMetadata } = await client.send(new CreateKeyCommand(input));
  return KeyMetadata?.Arn ?? '';
}

/** A KMS key, its wrapper, and a data key wrapped with it. */
async function setUp(client = newClient()): Promise<{
  readonly client: KMSClient;
  readonly KeyId: string;
  readonly keyWrapper: ReturnType<typeof awsKmsKeyWrapper>;
  readonly dataKey: Uint8Array;
  readonly wrapped: WrappedKey;
}> {
  const KeyId = await createKey(client);
  const keyWrapper = awsKmsKeyWrapper({ keyId: KeyId, client });
  return { client, KeyId, keyWrapper, ...(await keyWrapper.generate({ context })) };
}

/** The outcome of each of the three operations. */
async function refusals(key: Awaited<ReturnType<typeof setUp>>): Promise<readonly unknown[]> {
  const { keyWrapper, dataKey, wrapped } = key;
  const results = await Promise.allSettled([
    keyWrapper.generate({ context }),
    keyWrapper.wrap(dataKey, { context }),
    keyWrapper.unwrap(wrapped, { context }),
  ]);
  return results.map((result) => (result.status === 'rejected' ? result.reason : 'an answer'));
}

/** All three have the same outcome, and none is retried. */
function allRefused(kind: string, code: string): readonly object[] {
  const refusal = { name: 'KeyWrapperError', kind, summary: { code, status: 400, attempts: 1 } };
  return [refusal, refusal, refusal];
}

// Skipped only if this machine lacks Python; under CI=true the start fails instead.
describe.skipIf(localstack === undefined)('@aws-sdk/client-kms against LocalStack', () => {
  describe('key states', () => {
    test('a disabled key is reported as disabled for every operation, and unwraps earlier wraps once it is enabled again (F10)', async () => {
      const key = await setUp();
      await key.client.send(new DisableKeyCommand({ KeyId: key.KeyId }));
      expect(await refusals(key)).toMatchObject(allRefused('disabled', 'DisabledException'));
      await key.client.send(new EnableKeyCommand({ KeyId: key.KeyId }));
      expect(await key.keyWrapper.unwrap(key.wrapped, { context })).toEqual(key.dataKey);
    });

    test('a key pending deletion is reported as disabled until it is enabled, even if its deletion is cancelled (F10)', async () => {
      const key = await setUp();
      await key.client.send(new ScheduleKeyDeletionCommand({ KeyId: key.KeyId, PendingWindowInDays: 7 }));
      expect(await refusals(key)).toMatchObject(allRefused('disabled', 'KMSInvalidStateException'));
      await key.client.send(new CancelKeyDeletionCommand({ KeyId: key.KeyId }));
      expect(await refusals(key)).toMatchObject(allRefused('disabled', 'DisabledException'));
      await key.client.send(new EnableKeyCommand({ KeyId: key.KeyId }));
      expect(await key.keyWrapper.unwrap(key.wrapped, { context })).toEqual(key.dataKey);
    });

    test('a key rotated inside KMS keeps its ARN, and unwraps wraps from before and after the rotation (F11)', async () => {
      const key = await setUp();
      await key.client.send(new RotateKeyOnDemandCommand({ KeyId: key.KeyId }));
      const after = await key.keyWrapper.generate({ context });
      expect(after.wrapped.keyId).toBe(key.wrapped.keyId);
      expect(await key.keyWrapper.unwrap(key.wrapped, { context })).toEqual(key.dataKey);
      expect(await key.keyWrapper.unwrap(after.wrapped, { context })).toEqual(after.dataKey);
    });
  });

  describe('the wrong key', () => {
    test('another key’s ciphertext under the configured key’s name is corrupt (IncorrectKeyException)', async () => {
      const { keyWrapper, client, wrapped } = await setUp();
      const other = await setUp(client);
      const forged = { ...wrapped, wrapped: other.wrapped.wrapped };
      await expect(keyWrapper.unwrap(forged, { context })).rejects.toMatchObject({
        kind: 'corrupt',
        summary: { code: 'IncorrectKeyException' },
      });
    });

    test('a wrapped key with a wrong context or a flipped bit is corrupt (InvalidCiphertextException)', async () => {
      const { keyWrapper, wrapped } = await setUp();
      const refusal = { kind: 'corrupt', summary: { code: 'InvalidCiphertextException' } };
      await expect(keyWrapper.unwrap(wrapped, { context: {} })).rejects.toMatchObject(refusal);
      const bytes = wrapped.wrapped.map((byte, i, { length }) => (i === length - 1 ? byte ^ 1 : byte));
      await expect(keyWrapper.unwrap({ ...wrapped, wrapped: bytes }, { context })).rejects.toMatchObject(refusal);
    });

    test('after an alias is moved to another key, old wraps are corrupt without alsoUnwrap (F11)', async () => {
      const client = newClient();
      const [first, second] = [await createKey(client), await createKey(client)];
      const AliasName = 'alias/sealring-moved';
      await client.send(new CreateAliasCommand({ AliasName, TargetKeyId: first }));
      const keyWrapper = awsKmsKeyWrapper({ keyId: AliasName, client });
      const { dataKey, wrapped } = await keyWrapper.generate({ context });
      // LocalStack does not find a key by the ARN configured here.
      await client.send(new UpdateAliasCommand({ AliasName, TargetKeyId: second.split('/')[1] }));
      await expect(keyWrapper.unwrap(wrapped, { context })).rejects.toMatchObject({ kind: 'corrupt' });
      const moved = awsKmsKeyWrapper({ keyId: AliasName, client, alsoUnwrap: [first] });
      expect(await moved.unwrap(wrapped, { context })).toEqual(dataKey);
    });

    test('a key that does not exist, or exists only in another region, is reported as not-found', async () => {
      const key = await setUp();
      const keyWrapper = awsKmsKeyWrapper({ keyId: key.KeyId, client: newClient('eu-west-1') });
      expect(await refusals({ ...key, keyWrapper })).toMatchObject(allRefused('not-found', 'NotFoundException'));
    });

    test('a call with a signing key is denied, with a hint that names the fix', async () => {
      const client = newClient();
      const keyId = await createKey(client, { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' });
      await expect(awsKmsKeyWrapper({ keyId, client }).generate({ context })).rejects.toMatchObject({
        kind: 'denied',
        summary: { code: 'InvalidKeyUsageException', hint: expect.stringContaining('symmetric encryption key') },
      });
    });
  });

  describe('a multi-Region key', () => {
    interface Region {
      readonly client: KMSClient;
      readonly keyId: string;
    }

    async function replicate(): Promise<{ readonly primary: Region; readonly replica: Region }> {
      const [primary, replica] = [newClient(), newClient('eu-west-1')];
      const KeyId = await createKey(primary, { MultiRegion: true });
      const answer = await primary.send(new ReplicateKeyCommand({ KeyId, ReplicaRegion: 'eu-west-1' }));
      const replicaId = answer.ReplicaKeyMetadata?.Arn ?? '';
      expect(replicaId).toBe(KeyId.replace('us-east-1', 'eu-west-1'));
      return { primary: { client: primary, keyId: KeyId }, replica: { client: replica, keyId: replicaId } };
    }

    function wrapperOf(region: Region, options: Partial<AwsKmsKeyWrapperOptions> = {}): Required<KeyWrapper> {
      return awsKmsKeyWrapper({ ...region, multiRegion: true, ...options }) as Required<KeyWrapper>;
    }

    test('each region unwraps wraps of the other region, and records its own ARN', async () => {
      const { primary, replica } = await replicate();
      for (const [from, to] of [
        [primary, replica],
        [replica, primary],
      ] as const) {
        const { dataKey, wrapped } = await wrapperOf(from).generate({ context });
        expect(wrapped.keyId).toBe(from.keyId);
        expect(await wrapperOf(to).unwrap(wrapped, { context })).toEqual(dataKey);
      }
    });

    test('contract 3: without multiRegion, a wrap from another region is corrupt, and no call is made', async () => {
      const { primary, replica } = await replicate();
      const { wrapped } = await wrapperOf(primary).generate({ context });
      const single = wrapperOf(replica, { multiRegion: false });
      expect(single.owns(wrapped)).toBe(false);
      const error: unknown = await single.unwrap(wrapped, { context }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ kind: 'corrupt' });
      expect(error).not.toHaveProperty('summary.attempts');
    });

    test('contract 3: a wrap by another multi-Region key is corrupt, and no call is made', async () => {
      const { replica } = await replicate();
      const { wrapped } = await wrapperOf((await replicate()).primary).generate({ context });
      const error: unknown = await wrapperOf(replica)
        .unwrap(wrapped, { context })
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({ kind: 'corrupt' });
      expect(error).not.toHaveProperty('summary.attempts');
    });

    test('a key that is disabled in one region still unwraps in the other (F10)', async () => {
      const { primary, replica } = await replicate();
      const { dataKey, wrapped } = await wrapperOf(primary).generate({ context });
      await primary.client.send(new DisableKeyCommand({ KeyId: primary.keyId }));
      await expect(wrapperOf(primary).unwrap(wrapped, { context })).rejects.toMatchObject({ kind: 'disabled' });
      expect(await wrapperOf(replica).unwrap(wrapped, { context })).toEqual(dataKey);
    });

    test('a token sealed in one region is unsealed in the other, which calls only its own KMS', async () => {
      const { primary, replica } = await replicate();
      const ring = memoryRing();
      await using here = await createAwsKmsCodec({ ...primary, multiRegion: true, ring });
      // From now on only the replica can have been called.
      await primary.client.send(new DisableKeyCommand({ KeyId: primary.keyId }));
      await using there = await createAwsKmsCodec({ ...replica, multiRegion: true, ring });
      const payload = new TextEncoder().encode('state');
      expect(there.unseal(here.seal(payload))).toEqual(payload);
      expect(here.unseal(there.seal(payload))).toEqual(payload);
      expect(there.health().keys).toHaveLength(1);
    });
  });
});
