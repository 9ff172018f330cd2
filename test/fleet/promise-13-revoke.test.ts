import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, inject, type TestContext, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const BUCKET = 'sealring-promise-13';
/** If the store does not keep a revocation, the command waits for three times the usual time, which takes minutes. */
const IS_PATIENT = process.env['SEALRING_PATIENT'] === '1';

const policy = {
  clockSkewSeconds: 1,
  // The members read so rarely that none has read the revocation before it is gone again.
  refreshEverySeconds: 10,
  backoffCapSeconds: 5,
  kmsCheckEverySeconds: 4,
  sealOutageSeconds: 20,
  storeOutageSeconds: 120,
  propagationSeconds: 41,
  rotateEverySeconds: 3_600,
  tokenLifetimeSeconds: 600,
  createAfterSeconds: 2,
};
/** How long the command runs: refreshEvery, and a minute. */
const WAIT_SECONDS = policy.refreshEverySeconds + 60;

const moto = inject('moto');
const clientOptions = {
  endpoint: moto,
  region: 'us-east-1',
  forcePathStyle: true,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};

/** Two members on a ring in S3, which has no notifications, and the command line for the same ring. */
class Scene {
  readonly fleet: Fleet;
  readonly #key: string;
  readonly #admin = new S3Client(clientOptions);
  readonly #project = mkdtempSync(join(tmpdir(), 'sealring-revoke-'));

  private constructor(key: string) {
    this.#key = key;
    const masterKey = randomBytes(32).toString('hex');
    this.fleet = new Fleet({ ring: { s3: moto, bucket: BUCKET, key }, kms: { masterKey }, policy });
    symlinkSync(MODULES, join(this.#project, 'node_modules'));
    const config = `
      import { S3Client } from '@aws-sdk/client-s3';
      import { localKeyWrapper } from '@sealring/core';
      import { s3Ring } from '@sealring/s3';
      export default {
        ring: s3Ring({ bucket: '${BUCKET}', key: '${key}', client: new S3Client(${JSON.stringify(clientOptions)}) }),
        keyWrapper: localKeyWrapper({ masterKey: Buffer.from('${masterKey}', 'hex') }),
        policy: ${JSON.stringify(policy)},
      };`;
    writeFileSync(join(this.#project, 'sealring.config.mjs'), config);
  }

  static async start({ onTestFinished }: TestContext, key: string): Promise<Scene> {
    const scene = new Scene(key);
    onTestFinished(() => {
      scene.fleet.end();
      scene.#admin.destroy();
      rmSync(scene.#project, { recursive: true, force: true });
    });
    await scene.fleet.start(await scene.fleet.fork(2));
    return scene;
  }

  revoke(...args: readonly string[]): Promise<Ended> {
    const env = { PATH: process.env['PATH'] };
    return runProgram(process.execPath, [MAIN, 'revoke', '--yes', ...args], {
      cwd: this.#project,
      env,
      timeoutMs: 300_000,
    });
  }

  /** The bytes of the document, as anyone with read access to the bucket sees them. */
  async document(): Promise<string> {
    const { Body } = await this.#admin.send(new GetObjectCommand({ Bucket: BUCKET, Key: this.#key }));
    return (await Body?.transformToString()) ?? '';
  }

  /** Puts an older copy back. */
  async rollBackTo(document: string): Promise<void> {
    await this.#admin.send(new PutObjectCommand({ Bucket: BUCKET, Key: this.#key, Body: document }));
  }

  async isRevoked(keyId: string): Promise<boolean> {
    const { keys } = JSON.parse(await this.document()) as { keys: { id: string; revoked?: unknown }[] };
    return keys.find(({ id }) => id === keyId)?.revoked !== undefined;
  }

  /** The keys that the members seal with now. */
  async sealingKeys(): Promise<ReadonlySet<string>> {
    const sealed = await Promise.all(this.fleet.members.map((member) => member.tell('seal', ['state'])));
    return new Set(sealed.flatMap((each) => each.sealed.map(({ token }) => token.slice(4, 16))));
  }
}

describe.skipIf(moto === '').concurrent('sealring revoke, on a store without push (F44)', () => {
  let admin: S3Client;
  beforeAll(async () => {
    admin = new S3Client(clientOptions);
    await admin.send(new CreateBucketCommand({ Bucket: BUCKET }));
  });
  afterAll(() => admin.destroy());

  test('waits until the revocation holds, even if the store is rolled back right after the write', async (context) => {
    const scene = await Scene.start(context, 'rolled-back');
    const [keyId = ''] = await scene.sealingKeys();
    const before = await scene.document();
    const revoking = scene.revoke('--all');
    await until(() => scene.isRevoked(keyId), 60);
    await scene.rollBackTo(before);
    const rolledBack = performance.now();
    // Only the command knows the revocation.
    expect([...(await scene.sealingKeys())]).toEqual([keyId]);
    const ended = await revoking;
    expect(ended).toMatchObject({ code: 0, output: expect.stringContaining('the store lost the revocation') });
    expect((performance.now() - rolledBack) / 1_000).toBeGreaterThan(WAIT_SECONDS - 1);
    expect(await scene.isRevoked(keyId)).toBe(true);
    expect(await scene.sealingKeys()).not.toContain(keyId);
    const [token] = (await scene.fleet.members[0]?.tell('seal', ['after']))?.sealed ?? [];
    await until(async () => {
      const opened = await Promise.all(
        scene.fleet.members.map((member) => member.tell('open', token === undefined ? [] : [token])),
      );
      return opened.flat().length === 0;
    }, 2 * policy.refreshEverySeconds);
  });

  test('exits at once with --no-wait', async (context) => {
    const scene = await Scene.start(context, 'no-wait');
    const [keyId = ''] = await scene.sealingKeys();
    const began = performance.now();
    const ended = await scene.revoke(keyId, '--no-wait');
    expect(ended.code).toBe(0);
    expect((performance.now() - began) / 1_000).toBeLessThan(WAIT_SECONDS - 20);
    expect(await scene.isRevoked(keyId)).toBe(true);
    await until(async () => !(await scene.sealingKeys()).has(keyId), 2 * policy.refreshEverySeconds + 10);
  });

  test.skipIf(!IS_PATIENT)('exits with code 1 if its writes are rolled back until the wait ends', async (context) => {
    const scene = await Scene.start(context, 'never-kept');
    const [keyId = ''] = await scene.sealingKeys();
    const before = await scene.document();
    const ending = new AbortController();
    const revoking = scene.revoke(keyId).finally(() => ending.abort());
    while (!ending.signal.aborted) {
      if (await scene.isRevoked(keyId)) await scene.rollBackTo(before);
      await pause(20);
    }
    const ended = await revoking;
    expect(ended).toMatchObject({ code: 1, output: expect.stringContaining('the store does not keep the revocation') });
  });
});
