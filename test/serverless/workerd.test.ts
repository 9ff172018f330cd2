import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { createKmsCodec, type KmsCodec, localKeyWrapper } from '@sealring/core';
import { s3Ring } from '@sealring/s3';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { fleetPolicy } from '../fleet/fleet-policy.ts';
import { startHttpStub } from '../support/http-stub.ts';
import { bundleForWorkerd, hasWorkerd, type RunningWorkers, startWorkers } from '../support/workerd.ts';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const moto = inject('moto');

/** A Worker has no background refresh: a token of an unknown key makes it read the ring, this often at most. */
const policy = { ...fleetPolicy, missRefreshSeconds: 1, startTimeoutSeconds: 3 };
const masterKey = randomBytes(32);
const folder = mkdtempSync(join(tmpdir(), 'sealring-workerd-'));
let running: RunningWorkers | undefined;
/** Bundled as Wrangler does and for Node.js, on one ring; the same two for their own rings; one without a bucket. */
let workers: readonly [string, string, string, string, string];
let node: KmsCodec;

async function ask(worker: string, path: string, body = ''): Promise<string> {
  const answer = await fetch(`${worker}${path}`, { method: 'POST', body, signal: AbortSignal.timeout(30_000) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(text);
  return text;
}

function openInNode(token: string): string {
  return Buffer.from(node.unseal(token)).toString();
}

describe.skipIf(!hasWorkerd || moto === '')('Workers in workerd', () => {
  beforeAll(async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new S3Client({ endpoint: moto, region: 'us-east-1', forcePathStyle: true, credentials });
    await client.send(new CreateBucketCommand({ Bucket: 'rings' }));
    const files = {
      worker: await bundleForWorkerd(WORKER, folder, 'worker'),
      node: await bundleForWorkerd(WORKER, folder, 'node'),
    };
    const workerOf = (conditions: keyof typeof files, KEY: string, BUCKET = 'rings') => ({
      file: files[conditions],
      bindings: {
        ENDPOINT: moto,
        BUCKET,
        KEY,
        MASTER_KEY: masterKey.toString('hex'),
        POLICY: JSON.stringify(policy),
      },
    });
    running = await startWorkers(folder, [
      workerOf('worker', 'payments.ring'),
      workerOf('node', 'payments.ring'),
      workerOf('worker', 'worker.ring'),
      workerOf('node', 'node.ring'),
      workerOf('worker', 'payments.ring', 'no-such-bucket'),
    ]);
    workers = running.origins as unknown as typeof workers;
    // A Worker creates the ring, not Node.
    await ask(workers[0], '/keys');
    const ring = s3Ring({ bucket: 'rings', key: 'payments.ring', client });
    node = await createKmsCodec({ keyWrapper: localKeyWrapper({ masterKey }), ring, create: 'never', policy });
  });
  afterAll(async () => {
    await node?.close();
    await running?.stop();
    rmSync(folder, { recursive: true });
  });

  test('two Workers and a Node server unseal each other’s tokens on a ring that a Worker created in S3', async () => {
    const [one, other] = workers;
    const [ofOne, ofOther] = [await ask(one, '/seal', 'of one'), await ask(other, '/seal', 'of the other')];
    const ofNode = node.seal(Buffer.from('of Node'));
    for (const worker of [one, other]) {
      expect(await ask(worker, '/unseal', ofOne)).toBe('of one');
      expect(await ask(worker, '/unseal', ofOther)).toBe('of the other');
      expect(await ask(worker, '/unseal', ofNode)).toBe('of Node');
    }
    expect([openInNode(ofOne), openInNode(ofOther)]).toEqual(['of one', 'of the other']);
    expect(new Set(node.health().keys.map(({ id }) => id))).toEqual(new Set([ofOne.slice(4, 16)]));
  });

  test('a Worker without requests for longer than sealOutage serves the next request, even with a key that is new to it', async () => {
    const [one, other] = workers;
    await ask(one, '/keys');
    await node.rotate({ emergency: true });
    const known = node.health().sealingKey;
    await pause((policy.sealOutageSeconds + 3) * 1_000);
    const token = node.seal(Buffer.from('new'));
    expect(token.slice(4, 16)).not.toBe(known);
    expect(await ask(one, '/unseal', token)).toBe('new');
    expect(await ask(other, '/unseal', await ask(one, '/seal', 'sealed after it'))).toBe('sealed after it');
  });

  test.each([
    ['Workers', 2],
    ['Node.js', 3],
  ] as const)('a Worker bundled for %s creates a ring in S3 and rotates that ring', async (_, at) => {
    const token = await ask(workers[at], '/seal', 'before');
    const { keys } = JSON.parse(await ask(workers[at], '/rotate'));
    expect(keys).toHaveLength(2);
    expect(await ask(workers[at], '/unseal', token)).toBe('before');
  });

  test('a Worker bundled for Workers does not start on a missing bucket, and names the bucket', async () => {
    await expect(ask(workers[4], '/keys')).rejects.toThrow(
      'ring store s3://no-such-bucket/payments.ring unavailable: the bucket does not exist (NoSuchBucket)',
    );
  });

  const xml = (code: string): string =>
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>text</Message></Error>`;
  const NESTED = '<Error><Message><Code>NoSuchKey</Code></Message></Error>';
  const absent = { value: null };
  const failed = (kind: string) => expect.objectContaining({ name: 'RingStoreError', kind });
  const conflict = expect.objectContaining({ name: 'RingConflictError' });

  describe.each([
    ['Workers', 2],
    ['Node.js', 3],
  ] as const)('a Worker bundled for %s', (_, at) => {
    test.each([
      ['404 NoSuchKey to a read is absent', 404, xml('NoSuchKey'), absent],
      ['404 NoSuchBucket to a read is unavailable', 404, xml('NoSuchBucket'), failed('unavailable')],
      ['404 with an empty body to a read is unavailable', 404, '', failed('unavailable')],
      ['404 with a page to a read is unavailable', 404, '<html>NoSuchKey</html>', failed('unavailable')],
      ['404 with half of an error to a read is unavailable', 404, xml('NoSuchKey').slice(0, -8), failed('unavailable')],
      ['404 without its own code to a read is unavailable', 404, NESTED, failed('unavailable')],
      ['400 NoSuchKey to a read is unavailable', 400, xml('NoSuchKey'), failed('unavailable')],
      ['403 AccessDenied to a read is denied', 403, xml('AccessDenied'), failed('denied')],
      ['an object over the limit to a read is too large', 200, 'x'.repeat(262_145), failed('too-large')],
      ['409 ConditionalRequestConflict to a write is a conflict', 409, xml('ConditionalRequestConflict'), conflict],
      ['409 OperationAborted to a write is unavailable', 409, xml('OperationAborted'), failed('unavailable')],
      ['412 PreconditionFailed to a write is a conflict', 412, xml('PreconditionFailed'), conflict],
      ['404 NoSuchBucket to a write is unavailable', 404, xml('NoSuchBucket'), failed('unavailable')],
      ['501 NotImplemented to a write is read-only', 501, xml('NotImplemented'), failed('read-only')],
    ])('an answer from S3 is classified in a Worker: %s', async (title, status, body, outcome) => {
      const stub = await startHttpStub((_request, response) => {
        response.writeHead(status, { etag: '"e"', 'content-length': String(Buffer.byteLength(body)) }).end(body);
      });
      onTestFinished(() => stub.close());
      const call = {
        endpoint: stub.endpoint,
        bucket: 'rings',
        key: 'k',
        ...(title.includes('to a write') && { document: 'x' }),
      };
      expect(JSON.parse(await ask(workers[at], '/store', JSON.stringify(call)))).toEqual(outcome);
    });
  });
});
