import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import {
  CancelKeyDeletionCommand,
  DecryptCommand,
  DescribeKeyCommand,
  DisableKeyCommand,
  EnableKeyCommand,
} from '@aws-sdk/client-kms';
import {
  DeleteBucketPolicyCommand,
  DeleteObjectCommand,
  GetBucketPolicyCommand,
  GetObjectCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { createAwsKmsCodec } from '@sealring/aws-kms';
import type { KmsCodec, RingStore } from '@sealring/core';
import { dynamodbRing, dynamodbSingleUse } from '@sealring/dynamodb';
import { s3Ring } from '@sealring/s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runMain } from '../support/main-job.ts';
import { enforcePolicies, startMoto } from '../support/moto.ts';
import { type Ended, runProgram } from '../support/run-program.ts';
import { startOrSkip } from '../support/servers.ts';
import {
  type Clients,
  clientsByRole,
  clientsFor,
  liftPolicies,
  type Outputs,
  outputsOf,
  overrideProvider,
  type Role,
} from './applied-example.ts';
import { openWorkspaceOrSkip } from './terraform.ts';

// On a busy machine, one call of Terraform takes minutes.
const TERRAFORM_MS = 1_200_000;
const DAY_MS = 86_400_000;
const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const SEALRING = join(REPOSITORY, 'packages/cli/dist/main.js');
const payload = new TextEncoder().encode('state');
const denied = { kind: 'denied' };

const workspace = await openWorkspaceOrSkip({ aws: true });
// A separate moto server, because the whole server enforces the policies.
const moto = workspace === undefined ? undefined : await startOrSkip(startMoto);
const address = moto?.address ?? '';
const closing: (() => void)[] = [];
afterAll(async () => {
  for (const close of closing) close();
  await moto?.stop();
  workspace?.remove();
});

/** An example, and how its outputs become a ring store. */
interface Example {
  readonly folder: string;
  readonly variables: readonly string[];
  storeOf(outputs: Outputs, clients: Clients): RingStore;
}

const IN_S3: Example = {
  folder: 'aws-kms/examples/s3-ring',
  variables: ['-var=region=us-east-1', '-var=bucket_name=payments-sealring'],
  storeOf: ({ ring_options: { bucket = '', key = '', expectedBucketOwner = '' } }, { s3 }) =>
    s3Ring({ bucket, key, expectedBucketOwner, client: s3 }),
};
const IN_DYNAMODB: Example = {
  folder: 'aws-kms/examples/dynamodb-ring',
  variables: ['-var=region=us-east-1'],
  storeOf: ({ ring_options: { table = '', name = '' } }, { dynamodb }) =>
    dynamodbRing({ table, name, client: dynamodb }),
};
const TRIAL = '-var=trial=true';

/** The tests for both stores: apply, and the permissions of each role. */
class Deployment {
  readonly #example: Example;
  outputs!: Outputs;
  clients!: Awaited<ReturnType<typeof clientsByRole>>;

  constructor(example: Example) {
    this.#example = example;
  }

  async start(...variables: string[]): Promise<void> {
    if (workspace === undefined) throw new Error('no Terraform');
    await liftPolicies(address);
    overrideProvider(workspace, this.#example.folder, address);
    await workspace.init(this.#example.folder);
    await this.apply(...variables);
    this.clients = await clientsByRole(address, this.outputs);
    for (const clients of Object.values(this.clients)) closing.push(() => clients.destroy());
    await enforcePolicies(address);
  }

  async apply(...variables: string[]): Promise<void> {
    await this.terraform('apply', ...variables, '-auto-approve', '-input=false');
    if (workspace !== undefined) this.outputs = await outputsOf(workspace, this.#example.folder);
  }

  /** Terraform's output on both streams, and its exit code. */
  async terraform(command: string, ...options: string[]): Promise<void> {
    await workspace?.succeed(this.#example.folder, command, '-no-color', ...this.#example.variables, ...options);
  }

  store(role: Role): RingStore {
    return this.#example.storeOf(this.outputs, this.clients[role]);
  }

  /** A codec with the module's outputs and a role's permissions. */
  codec(role: Role, options: { role?: 'reader'; create?: 'now' | 'never' } = {}): Promise<KmsCodec> {
    return createAwsKmsCodec({
      ...this.outputs.codec_options,
      client: this.clients[role].kms,
      ring: this.store(role),
      policy: { startTimeoutSeconds: 10 },
      ...options,
    });
  }

  /** The payload that a new server with the reader's permissions unseals from the token. */
  async open(token: string): Promise<Uint8Array> {
    await using reader = await this.codec('reader', { role: 'reader' });
    return reader.unseal(token);
  }
}

/** The tests of the roles; returns a function for the token that the member sealed. */
function testRoles(deployment: Deployment): () => string {
  let token = '';

  test('a member creates the ring that the outputs name, seals, unseals and rotates', async () => {
    await using member = await deployment.codec('member', { create: 'now' });
    token = member.seal(payload);
    expect(member.unseal(token)).toEqual(payload);
    await member.rotate();
    expect(member.health().keys).toHaveLength(2);
  });

  test('`sealring doctor` finds no error with a member’s credentials, and reports the permissions that a reader’s credentials lack', async () => {
    const examine = (role: Role): Promise<Ended> => {
      const { accessKeyId, secretAccessKey } = deployment.clients[role].credentials;
      const env = {
        ...process.env,
        ...deployment.outputs.environment,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_REGION: 'us-east-1',
        AWS_ENDPOINT_URL: address,
      };
      return runProgram(process.execPath, [SEALRING, 'doctor'], { cwd: REPOSITORY, env });
    };
    expect(await examine('member')).toMatchObject({ code: 0, output: expect.stringContaining('as a member') });
    const lacking = await examine('reader');
    expect(lacking).toMatchObject({ code: 1, output: expect.stringContaining('kms:GenerateDataKey') });
  });

  test('a reader unseals tokens, but is not allowed to rotate the ring', async () => {
    expect(await deployment.open(token)).toEqual(payload);
    await using meddler = await deployment.codec('reader', { create: 'never' });
    await expect(meddler.rotate()).rejects.toMatchObject({ name: 'KeyWrapperError', ...denied });
  });

  test('a rotator rotates the existing ring', async () => {
    await using rotator = await deployment.codec('rotator', { create: 'never' });
    await rotator.rotate({ emergency: true });
    expect(rotator.unseal(token)).toEqual(payload);
    expect(rotator.health().keys).toHaveLength(3);
  });

  test('a rescuer may not use the key, and no server may enable or disable it', async () => {
    await expect(deployment.codec('break_glass', { role: 'reader' })).rejects.toMatchObject(denied);
    const { keyId: KeyId } = deployment.outputs.codec_options;
    const { break_glass: rescuer, member, reader, rotator } = deployment.clients;
    const CiphertextBlob = new Uint8Array(64);
    // moto answers in XML, which the SDK cannot read.
    const refused = { $metadata: { httpStatusCode: 403 } };
    await expect(rescuer.kms.send(new DecryptCommand({ KeyId, CiphertextBlob }))).rejects.toMatchObject(refused);
    for (const { kms } of [member, reader, rotator]) {
      await expect(kms.send(new EnableKeyCommand({ KeyId }))).rejects.toMatchObject(refused);
      await expect(kms.send(new DisableKeyCommand({ KeyId }))).rejects.toMatchObject(refused);
    }
  });

  return () => token;
}

describe.skipIf(workspace === undefined || moto === undefined)('terraform/aws-kms on moto', () => {
  const administrator = clientsFor(address, { accessKeyId: 'test', secretAccessKey: 'test' });
  closing.push(() => administrator.destroy());

  async function keyOf({ outputs }: Deployment): Promise<{ state: string; daysLeft: number }> {
    const { KeyMetadata } = await administrator.kms.send(
      new DescribeKeyCommand({ KeyId: outputs.codec_options.keyId }),
    );
    const end = KeyMetadata?.DeletionDate?.getTime() ?? Number.NaN;
    return { state: KeyMetadata?.KeyState ?? '', daysLeft: Math.round((end - Date.now()) / DAY_MS) };
  }

  describe('a ring in S3', () => {
    const deployment = new Deployment(IN_S3);
    beforeAll(async () => {
      await deployment.start();
      await forgetBucketPolicy();
    }, TERRAFORM_MS);

    /** moto supports no conditions: a policy that refuses plain connections refuses all. moto must accept it. */
    async function forgetBucketPolicy(): Promise<void> {
      const { bucket: Bucket } = deployment.outputs.ring_options;
      await liftPolicies(address);
      const { Policy = '' } = await administrator.s3.send(new GetBucketPolicyCommand({ Bucket }));
      expect(JSON.parse(Policy)).toMatchObject({ Statement: [{ Sid: 'TlsOnly' }, { Sid: 'NoRingWithoutACondition' }] });
      await administrator.s3.send(new DeleteBucketPolicyCommand({ Bucket }));
      await enforcePolicies(address);
    }

    const tokenOf = testRoles(deployment);

    test('`npm start -- --kms aws` works with the module’s outputs and a member’s permissions, but not with a reader’s permissions', async () => {
      const { keyId, ringName } = deployment.outputs.codec_options;
      const args = ['--kms', 'aws', '--key-id', keyId, '--ring-name', ringName, '--endpoint', address];
      const start = (role: Role) => {
        const { accessKeyId, secretAccessKey } = deployment.clients[role].credentials;
        return runMain(args, { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey });
      };
      const done = await start('member');
      expect(done.output).toContain('every step succeeded');
      expect(done.code).toBe(0);
      const refused = await start('reader');
      expect(refused.output).toContain('denied');
      expect(refused.code).toBe(1);
    });

    // In DynamoDB only a condition keeps a reader who claims tokens from writing the ring, and moto supports none.
    test('a reader is not allowed to write the ring', async () => {
      const store = deployment.store('reader');
      const { document = '', revision } = (await store.read()) ?? {};
      const refused = { name: 'RingStoreError', ...denied };
      await expect(store.write(document, { expected: revision })).rejects.toMatchObject(refused);
    });

    test('the environment variables match the options', () => {
      const { codec_options: codec, ring_options: ring, environment, environment_file: file } = deployment.outputs;
      expect(parseEnv(file)).toEqual(environment);
      expect(environment).toEqual({
        SEALRING_AWS_KMS_KEY_ID: codec.keyId,
        SEALRING_AWS_KMS_MULTI_REGION: 'false',
        SEALRING_RING_NAME: codec.ringName,
        SEALRING_RING_STORE: 's3',
        SEALRING_S3_BUCKET: ring['bucket'],
        SEALRING_S3_BUCKET_OWNER: ring['expectedBucketOwner'],
        SEALRING_S3_KEY: ring['key'],
      });
    });

    test('drill: a rescuer restores the last version of a deleted ring', async () => {
      const { bucket: Bucket, key: Key } = deployment.outputs.ring_options;
      const before = await deployment.store('reader').read();
      await liftPolicies(address);
      await administrator.s3.send(new DeleteObjectCommand({ Bucket, Key }));
      await enforcePolicies(address);
      const { s3 } = deployment.clients.break_glass;
      expect(await deployment.store('break_glass').read()).toBeUndefined();
      const { Versions = [] } = await s3.send(new ListObjectVersionsCommand({ Bucket, Prefix: Key }));
      const latest = Versions.toSorted((a, b) => Number(b.LastModified) - Number(a.LastModified))[0];
      const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, VersionId: latest?.VersionId }));
      const document = await Body?.transformToByteArray();
      await s3.send(new PutObjectCommand({ Bucket, Key, Body: document ?? '', IfNoneMatch: '*' }));
      expect((await deployment.store('reader').read())?.document).toBe(before?.document);
      expect(await deployment.open(tokenOf())).toEqual(payload);
    });

    test(
      'drill: terraform destroy leaves the ring, and for 30 days a rescuer can restore the key',
      async () => {
        const { keyId } = deployment.outputs.codec_options;
        await liftPolicies(address);
        await expect(deployment.terraform('destroy', '-auto-approve')).rejects.toThrow('BucketNotEmpty');
        expect(await keyOf(deployment)).toEqual({ state: 'PendingDeletion', daysLeft: 30 });

        await enforcePolicies(address);
        expect(await deployment.store('reader').read()).toBeDefined();
        const { break_glass: rescuer, member } = deployment.clients;
        // moto knows the key by its id here, and not by its ARN.
        const KeyId = keyId.split('/').at(-1) ?? '';
        const cancel = new CancelKeyDeletionCommand({ KeyId });
        await expect(member.kms.send(cancel)).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } });
        await rescuer.kms.send(cancel);
        await rescuer.kms.send(new EnableKeyCommand({ KeyId }));
        expect(await deployment.open(tokenOf())).toEqual(payload);

        await liftPolicies(address);
        expect(await keyOf(deployment)).toMatchObject({ state: 'Enabled' });
        await deployment.terraform('import', '-input=false', 'module.sealring.aws_kms_key.this', KeyId);
        await deployment.apply(TRIAL);
        await forgetBucketPolicy();
        expect(deployment.outputs.codec_options.keyId).toBe(keyId);
        expect(await deployment.open(tokenOf())).toEqual(payload);
      },
      TERRAFORM_MS,
    );

    test(
      'terraform destroy removes a trial in S3 except for its key, which is pending deletion',
      async () => {
        await liftPolicies(address);
        // moto fails when Terraform empties a bucket with versions.
        const { bucket: Bucket } = deployment.outputs.ring_options;
        const { Versions = [], DeleteMarkers = [] } = await administrator.s3.send(
          new ListObjectVersionsCommand({ Bucket }),
        );
        for (const { Key, VersionId } of [...Versions, ...DeleteMarkers]) {
          await administrator.s3.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
        }
        await deployment.terraform('destroy', TRIAL, '-auto-approve');
        await expect(deployment.store('member').read()).rejects.toMatchObject({ name: 'RingStoreError' });
        expect(await keyOf(deployment)).toEqual({ state: 'PendingDeletion', daysLeft: 30 });
      },
      TERRAFORM_MS,
    );
  });

  describe('a ring in DynamoDB', () => {
    const deployment = new Deployment(IN_DYNAMODB);
    beforeAll(() => deployment.start(TRIAL), TERRAFORM_MS);
    const tokenOf = testRoles(deployment);

    test('members and readers can claim a token only once', async () => {
      const { table = '' } = deployment.outputs.ring_options;
      const storeOf = (role: Role) => dynamodbSingleUse({ table, client: deployment.clients[role].dynamodb });
      const soon = new Date(Date.now() + 60_000);
      expect(await storeOf('member').claim('a', soon)).toBe(true);
      expect(await storeOf('reader').claim('a', soon)).toBe(false);
      expect(await storeOf('reader').claim('b', soon)).toBe(true);
      expect(await deployment.open(tokenOf())).toEqual(payload);
    });

    test(
      'terraform destroy removes a trial in DynamoDB except for its key, which is pending deletion',
      async () => {
        await liftPolicies(address);
        await deployment.terraform('destroy', TRIAL, '-auto-approve');
        await expect(deployment.store('member').read()).rejects.toMatchObject({ name: 'RingStoreError' });
        expect(await keyOf(deployment)).toEqual({ state: 'PendingDeletion', daysLeft: 30 });
      },
      TERRAFORM_MS,
    );
  });
});
