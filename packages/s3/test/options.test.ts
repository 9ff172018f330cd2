import { inspect } from 'node:util';
import { S3Client } from '@aws-sdk/client-s3';
import { describe, expect, test } from 'vitest';
import { type S3RingOptions, s3Ring } from '../src/index.ts';

const bucket = 'payments-sealring';
const key = 'payments.ring';

// As a caller without types could pass them.
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
  ])('%s is a TypeError', (_, options) => {
    expect(() => Reflect.apply(s3Ring, undefined, [options])).toThrow(TypeError);
  });

  test.each([
    ['bucket', { bucket: '', key }],
    ['bucket', { bucket: 'a', key }],
    ['bucket', { bucket: 'a/b', key }],
    ['bucket', { bucket: 'arn:aws:s3::111122223333:accesspoint/m.mrap', key }],
    ['bucket', { bucket: 'arn:aws:s3:::payments', key }],
    ['key', { bucket, key: '' }],
    ['key', { bucket, key: 'é'.repeat(513) }],
    ['key', { bucket, key: '\ud800' }],
    ['key', { bucket, key: 'rings/../k' }],
    ['key', { bucket, key: './k' }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { bucket, key, callTimeoutSeconds: 61 }],
    ['expectedBucketOwner', { bucket, key, expectedBucketOwner: '1111' }],
    ['serverSideEncryption', { bucket, key, serverSideEncryption: 'AES128' }],
    ['sseKmsKeyId', { bucket, key, sseKmsKeyId: 'alias/ring' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'AES256', sseKmsKeyId: 'alias/ring' }],
    ['sseKmsKeyId', { bucket, key, serverSideEncryption: 'aws:kms', sseKmsKeyId: '' }],
  ])('a %s that S3 or the bounds do not allow is a RangeError that names it: %j', (name, options) => {
    expect(() => s3Ring(untyped(options))).toThrow(RangeError);
    expect(() => s3Ring(untyped(options))).toThrow(name);
  });

  test.each(['payments-s3alias', 'Old_Bucket', 'arn:aws:s3:eu-west-1:111122223333:accesspoint/payments'])(
    '%s is accepted as the bucket name',
    (name) => {
      expect(s3Ring({ bucket: name, key, client: { send: async () => undefined } }).kind).toBe('s3');
    },
  );

  test('inspect shows the kind, and nothing of the client (F21)', () => {
    const credentials = { accessKeyId: 'AKCANARY', secretAccessKey: 'canary-secret' };
    const ring = s3Ring({ bucket, key, client: new S3Client({ region: 'eu-west-1', maxAttempts: 1, credentials }) });
    expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toMatch(/canary|accessKey|config/i);
    expect(JSON.parse(JSON.stringify(ring))).toEqual({ kind: 's3' });
  });

  test('a ring with its own client is created and closed without a region or credentials', async () => {
    const ring = s3Ring({ bucket, key });
    await ring.close();
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
  });

  test('the caller’s client is not closed', async () => {
    let destroyed = false;
    const client = { send: async () => undefined, destroy: () => void (destroyed = true) };
    await s3Ring({ bucket, key, client }).close();
    expect(destroyed).toBe(false);
  });

  test.each([[undefined], [null], ['answer'], [{ Body: 'text' }], [{ Body: ['text'] }], [{ ETag: '"e"', Body: [7] }]])(
    'an answer of %j, from a client that is not one of S3, is unavailable',
    async (answer) => {
      const ring = s3Ring({ bucket, key, client: { send: async () => answer } });
      await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    },
  );
});
