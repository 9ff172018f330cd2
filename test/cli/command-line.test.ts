import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const SECRET = 'canary-secret-access-key';

const moto = inject('moto');

describe.skipIf(moto === '')('sealring, with the environment that Terraform gives to containers', () => {
  const project = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
  const credentials = { accessKeyId: 'test', secretAccessKey: SECRET };
  let environment: NodeJS.ProcessEnv = {};

  beforeAll(async () => {
    symlinkSync(MODULES, join(project, 'node_modules'));
    const shared = { endpoint: moto, region: 'us-east-1', credentials };
    const kms = new KMSClient(shared);
    const s3 = new S3Client({ ...shared, forcePathStyle: true });
    const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
    await s3.send(new CreateBucketCommand({ Bucket: 'command-line' }));
    kms.destroy();
    s3.destroy();
    environment = {
      PATH: process.env['PATH'],
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: SECRET,
      AWS_REGION: 'us-east-1',
      AWS_ENDPOINT_URL_KMS: moto,
      AWS_ENDPOINT_URL_S3: moto,
      SEALRING_AWS_KMS_KEY_ID: KeyMetadata?.Arn ?? '',
      SEALRING_AWS_KMS_MULTI_REGION: 'false',
      SEALRING_RING_NAME: 'payments',
      SEALRING_RING_STORE: 's3',
      SEALRING_S3_BUCKET: 'command-line',
      SEALRING_S3_BUCKET_OWNER: '123456789012',
      SEALRING_S3_KEY: 'payments.ring',
    };
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  async function run(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
    const ended = await runProgram(process.execPath, [MAIN, ...args], {
      cwd: project,
      env: { ...environment, ...more },
    });
    expect(ended.output).not.toContain(SECRET);
    return ended;
  }

  test('init, rotate and status work on a new ring, and the doctor reports no error', async () => {
    const before = await run(['doctor']);
    expect(before.output).toMatch(/the store has no ring.*\[store-absent\]/);
    expect(before.code).toBe(0);
    const absent = await run(['status']);
    expect(absent).toMatchObject({ code: 1, output: expect.stringContaining('sealring init') });
    expect(await run(['init'])).toMatchObject({ code: 0, output: expect.stringContaining('created the ring') });
    expect((await run(['rotate'])).code).toBe(0);
    const status = await run(['status', '--json']);
    expect(JSON.parse(status.output)).toMatchObject({
      ring: 'payments',
      store: 's3',
      keys: [{ state: 'active' }, { state: 'propagating' }],
    });
    const after = await run(['doctor']);
    expect(after.code).toBe(0);
    expect(after.output).toMatch(/ring "payments" as a member, configured by the environment/);
    expect(after.output).toMatch(/the ring is authentic: 2 of 2 keys are live, all of them unwrapped/);
  });

  test('the doctor exits with 1 for a wrong key id and prints the remedy', async () => {
    const wrong =
      environment['SEALRING_AWS_KMS_KEY_ID']?.replace(/[^/]+$/, '11111111-2222-3333-4444-555555555555') ?? '';
    const { code, output } = await run(['doctor'], { SEALRING_AWS_KMS_KEY_ID: wrong });
    expect(code).toBe(1);
    expect(output).toMatch(/\[kms-not-found\]\n +→ Check the key id/);
  });

  test('the variables of Google Cloud configure its adapters, and missing credentials are reported', async () => {
    const { code, output } = await run(['doctor'], {
      GOOGLE_APPLICATION_CREDENTIALS: join(project, 'no-such-file.json'),
      SEALRING_AWS_KMS_KEY_ID: '',
      SEALRING_GCP_KMS_KEY_ID: 'projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k',
      SEALRING_RING_STORE: 'gcs',
      SEALRING_GCS_BUCKET: 'no-such-bucket',
      SEALRING_GCS_OBJECT: 'payments.ring',
    });
    expect(code).toBe(1);
    expect(output).toMatch(/gcp-kms wrap: unavailable.*\[kms-unavailable\]/);
    expect(output).toMatch(/\(gcs\) \[store-unavailable\]/);
  });

  test('a missing adapter is named with the command that installs it', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
    const copy = join(empty, 'cli');
    // Neither the project nor the environment of the command line has adapters.
    cpSync(fileURLToPath(new URL('../../packages/cli/dist', import.meta.url)), join(copy, 'dist'), { recursive: true });
    cpSync(fileURLToPath(new URL('../../packages/cli/package.json', import.meta.url)), join(copy, 'package.json'));
    mkdirSync(join(empty, 'node_modules', '@sealring'), { recursive: true });
    for (const needed of ['core', 'dashboard']) {
      symlinkSync(join(MODULES, '@sealring', needed), join(empty, 'node_modules', '@sealring', needed));
    }
    for (const library of ['commander', '@bomb.sh', 'eventsource-parser']) {
      const ofTheCli = fileURLToPath(new URL(`../../packages/cli/node_modules/${library}`, import.meta.url));
      const installed = existsSync(ofTheCli) ? ofTheCli : join(MODULES, library);
      symlinkSync(installed, join(empty, 'node_modules', library));
    }
    const args = [join(copy, 'dist/main.js'), 'status'];
    const { code, output } = await runProgram(process.execPath, args, { cwd: empty, env: environment });
    rmSync(empty, { recursive: true, force: true });
    expect(code).toBe(2);
    expect(output).toMatch(/^error: SEALRING_AWS_KMS_KEY_ID requires .*npm install @sealring\/aws-kms/);
  });
});
