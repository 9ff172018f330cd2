import { inspect } from 'node:util';
import { S3Client } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type S3RingOptions, s3Ring } from '../src/index.ts';

afterEach(() => void vi.restoreAllMocks());

const bucket = 'payments-sealring';
const key = 'payments.ring';

// Values that a caller without types could pass.
function untyped(options: unknown): S3RingOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['nothing', undefined],
    ['an unknown option', { bucket, key, region: 'eu-west-1' }],
    ['no bucket', { key }],
    ['no key', { bucket }],
    ['a bucket that is not a string', { bucket: 7, key }],
    ['a key that is not a string', { bucket, key: Buffer.from('k') }],
    ['a client without send', { bucket, key, client: {} }],
    ['a client of null', { bucket, key, client: null }],
    ['callTimeoutSeconds as text', { bucket, key, callTimeoutSeconds: '5' }],
    ['an owner as a number', { bucket, key, expectedBucketOwner: 111122223333 }],
    ['encryption as a boolean', { bucket, key, serverSideEncryption: true }],
    ['a KMS key that is not a string', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: 7 }],
  ])('%s causes a TypeError that names the function', (_, options) => {
    expect(() => Reflect.apply(s3Ring, undefined, [options])).toThrow(TypeError);
    expect(() => Reflect.apply(s3Ring, undefined, [options])).toThrow(/^s3Ring: /);
  });

  test.each([
    ['bucket must be a bucket name', { bucket: '', key }],
    ['bucket', { bucket: 'a', key }],
    ['bucket', { bucket: 'a/b', key }],
    ['bucket', { bucket: 'arn:aws:s3::111122223333:accesspoint/m.mrap', key }],
    ['bucket', { bucket: 'arn:aws:s3:::payments', key }],
    ['bucket', { bucket: ' arn:aws:s3:eu-west-1:111122223333:accesspoint/payments', key }],
    ['bucket', { bucket: 'arn:aws:s3:eu-west-1:111122223333:accesspoint/payments/k', key }],
    ['key', { bucket, key: '' }],
    ['key', { bucket, key: 'é'.repeat(513) }],
    ['key', { bucket, key: '\ud800' }],
    ['key', { bucket, key: 'rings/../k' }],
    ['key', { bucket, key: './k' }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: 61 }],
    ['expectedBucketOwner', { bucket, key, expectedBucketOwner: '11112222333' }],
    ['expectedBucketOwner', { bucket, key, expectedBucketOwner: 'x111122223333' }],
    ['expectedBucketOwner', { bucket, key, expectedBucketOwner: '1111222233334' }],
    ['forcePathStyle', { bucket, key, forcePathStyle: true, client: { send: async () => undefined } }],
    [
      'forcePathStyle cannot be combined with the ARN of an access point',
      { bucket: 'arn:aws:s3:eu-west-1:111122223333:accesspoint/payments', key, forcePathStyle: true },
    ],
    ['serverSideEncryption', { bucket, key, serverSideEncryption: 'AES128' }],
    ['sseKmsKeyId', { bucket, key, sseKmsKeyId: 'alias/ring' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'AES256', sseKmsKeyId: 'alias/ring' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: '' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: ' alias/ring' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: 'alias/ring ' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: 'x'.repeat(2_049) }],
  ])('an invalid value of %s causes a RangeError that names the option: %j', (name, options) => {
    expect(() => s3Ring(untyped(options))).toThrow(RangeError);
    expect(() => s3Ring(untyped(options))).toThrow(name);
  });

  test.each([
    ['payments-s3alias', 'aws:kms'],
    ['Old_Bucket', 'aws:kms:dsse'],
    ['arn:aws-cn:s3:eu-west-1:111122223333:accesspoint/payments', undefined],
  ] as const)('a write to the bucket %s sends the document and every option that was given', async (Bucket, sse) => {
    const sent: object[] = [];
    const client = { send: async ({ input }: { readonly input: object }) => sent.push(input) && { ETag: '"e"' } };
    const encryption = sse && { serverSideEncryption: sse, sseKmsKeyId: 'x'.repeat(2_048) };
    const expectedBucketOwner = '111122223333';
    const given = { bucket: Bucket, key: 'é'.repeat(512), client, callTimeoutSeconds: 1, expectedBucketOwner };
    const ring = s3Ring({ ...given, ...encryption });
    expect(ring.location).toBe(`s3://${Bucket}/${given.key}`);
    await ring.write('€', { expected: undefined });
    expect(sent).toEqual([
      {
        Bucket,
        Key: given.key,
        ExpectedBucketOwner: expectedBucketOwner,
        IfNoneMatch: '*',
        Body: Buffer.from('€'),
        ChecksumAlgorithm: 'CRC32',
        ContentType: 'text/plain; charset=utf-8',
        CacheControl: 'no-store',
        Metadata: { 'sealring-write': expect.stringMatching(/^[\w-]{22}$/) },
        ServerSideEncryption: sse,
        SSEKMSKeyId: encryption?.sseKmsKeyId,
      },
    ]);
  });

  test('a wrong argument is rejected before any call, with an error that names the function (F17)', async () => {
    const ring = s3Ring({ bucket, key, client: { send: async () => expect.unreachable() } });
    const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
    for (const wrong of [call('read', { key }), call('write', 7, { expected: undefined })]) {
      await expect(wrong).rejects.toBeInstanceOf(TypeError);
      await expect(wrong).rejects.toThrow(/^s3Ring: /);
    }
  });

  test('inspect shows the kind, but no part of the client (F21)', () => {
    const credentials = { accessKeyId: 'AKCANARY', secretAccessKey: 'canary-secret' };
    const ring = s3Ring({ bucket, key, client: new S3Client({ region: 'eu-west-1', maxAttempts: 1, credentials }) });
    expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toMatch(/canary|accessKey|config/i);
    expect(JSON.parse(JSON.stringify(ring))).toEqual({ kind: 's3' });
  });

  test.each([true, undefined])(
    'a ring that makes its own client (path style %s) does not retry, and closes that client',
    async (style) => {
      const send = vi.spyOn(S3Client.prototype, 'send').mockImplementation(() => {
        throw new Error('sent');
      });
      const destroy = vi.spyOn(S3Client.prototype, 'destroy');
      const ring = s3Ring({ bucket, key, ...(style && { forcePathStyle: style }) });
      await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable' });
      await ring.close();
      await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the store is closed' });
      const [{ config } = expect.unreachable()] = send.mock.contexts as S3Client[];
      expect([await config.maxAttempts(), config.forcePathStyle]).toEqual([1, style ?? false]);
      expect([send.mock.calls.length, destroy.mock.calls.length]).toEqual([1, 1]);
    },
  );

  test('the caller’s client is not closed', async () => {
    let destroyed = false;
    const client = { send: async () => undefined, destroy: () => void (destroyed = true) };
    await s3Ring({ bucket, key, client }).close();
    expect(destroyed).toBe(false);
  });
});
