import { inspect } from 'node:util';
import { Storage } from '@google-cloud/storage';
import { JWT } from 'google-auth-library';
import { describe, expect, test } from 'vitest';
import { type GcsRingOptions, gcsRing } from '../src/index.ts';
import { clientOf } from './gcs-stub.ts';

const bucket = 'payments-sealring';
const object = 'payments.ring';
const authClient = { request: async () => undefined };
const apiEndpoint = 'https://storage.googleapis.com';

// Values that a caller without types could pass.
function untyped(options: unknown): GcsRingOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['nothing', undefined],
    ['an unknown option', { bucket, object, projectId: 'payments' }],
    ['no bucket', { object }],
    ['no object', { bucket }],
    ['a bucket that is not a string', { bucket: 7, object }],
    ['an object that is not a string', { bucket, object: Buffer.from('k') }],
    ['a client of null', { bucket, object, client: null }],
    ['a client without an endpoint', { bucket, object, client: { authClient } }],
    ['a client without anything to authenticate with', { bucket, object, client: { apiEndpoint } }],
    ['dangerouslyAllowHttp as text', { bucket, object, dangerouslyAllowHttp: 'yes' }],
    ['a client that cannot make requests', { bucket, object, client: { apiEndpoint, authClient: {} } }],
    ['a client that authenticates with null', { bucket, object, client: { apiEndpoint, authClient: null } }],
    ['callTimeoutSeconds as text', { bucket, object, callTimeoutSeconds: '5' }],
  ])('%s causes a TypeError that names the function', (_, options) => {
    expect(() => Reflect.apply(gcsRing, undefined, [options])).toThrow(TypeError);
    expect(() => Reflect.apply(gcsRing, undefined, [options])).toThrow(/^gcsRing: /);
  });

  test.each([
    ['bucket must be a bucket name', { bucket: '', object }],
    ['bucket', { bucket: 'ab', object }],
    ['bucket', { bucket: 'a/b', object }],
    ['bucket', { bucket: 'Payments', object }],
    ['bucket', { bucket: '..a', object }],
    ['bucket', { bucket: 'a'.repeat(223), object }],
    ['object', { bucket, object: '' }],
    ['object', { bucket, object: 'é'.repeat(513) }],
    ['object', { bucket, object: '\ud800' }],
    ['object', { bucket, object: 'rings/../k' }],
    ['object', { bucket, object: '.' }],
    ['object', { bucket, object: 'a\nb' }],
    ['client', { bucket, object, client: { apiEndpoint: 'storage.googleapis.com', authClient } }],
    ['client must be an https:// URL', { bucket, object, client: { apiEndpoint: 'ftp://storage', authClient } }],
    ['endpoint', { bucket, object, client: { apiEndpoint, authClient }, endpoint: apiEndpoint }],
    ['endpoint', { bucket, object, endpoint: 'http://storage.internal' }],
    ['callTimeoutSeconds', { bucket, object, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { bucket, object, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { bucket, object, callTimeoutSeconds: 61 }],
  ])('a %s that Cloud Storage or the bounds do not allow causes a RangeError that names it: %j', (name, options) => {
    expect(() => gcsRing(untyped(options))).toThrow(RangeError);
    expect(() => gcsRing(untyped(options))).toThrow(name);
  });

  test.each(['payments-sealring', 'a.b_c-d', 'a'.repeat(222)])('%s is accepted as the bucket name', (name) => {
    const longest = 'é'.repeat(512);
    const client = { apiEndpoint: 'http://127.0.0.1:1', authClient };
    const ring = gcsRing({ bucket: name, object: longest, client, callTimeoutSeconds: 1 });
    expect(ring).toMatchObject({ kind: 'gcs', location: `gs://${name}/${longest}` });
  });

  test('a wrong argument is rejected before any call, with an error that names the function (F17)', async () => {
    const ring = gcsRing({
      bucket,
      object,
      client: { apiEndpoint, authClient: { request: async () => expect.fail() } },
    });
    const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
    for (const wrong of [call('read', { object }), call('write', 7, { expected: undefined })]) {
      await expect(wrong).rejects.toBeInstanceOf(TypeError);
      await expect(wrong).rejects.toThrow(/^gcsRing: /);
    }
  });

  test('a client with an endpoint but no useAuthWithCustomEndpoint causes a RangeError, because it would send its token there', () => {
    const at = 'https://storage.internal';
    const client = new Storage({ apiEndpoint: at });
    expect(() => gcsRing({ bucket, object, client })).toThrow(RangeError);
    expect(() => gcsRing({ bucket, object, client })).toThrow('useAuthWithCustomEndpoint');
    const telling = new Storage({ apiEndpoint: at, useAuthWithCustomEndpoint: true });
    expect(gcsRing({ bucket, object, client: telling }).kind).toBe('gcs');
  });

  test('inspect shows the kind, but no part of the client (F21)', () => {
    const ring = gcsRing({ bucket, object, client: clientOf(apiEndpoint, 'canary-token') });
    expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toMatch(/canary|token|endpoint/i);
    expect(JSON.parse(JSON.stringify(ring))).toEqual({ kind: 'gcs' });
  });

  test('a ring with its own client is created and closed without credentials', async () => {
    const ring = gcsRing({ bucket, object });
    await ring.close();
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the store is closed' });
    expect(gcsRing({ bucket, object, endpoint: 'http://storage.internal', dangerouslyAllowHttp: true }).kind).toBe(
      'gcs',
    );
  });

  test('if credentials are missing, the call fails as unavailable, without an unhandled rejection', async () => {
    const stray: unknown[] = [];
    const hear = (reason: unknown): void => void stray.push(reason);
    process.on('unhandledRejection', hear);
    // Without a private key there is no token, so the call fails before any request.
    const keyless = new JWT({ email: 'canary@payments.iam.gserviceaccount.com', key: 'canary' });
    const client = new Storage({ projectId: 'payments', authClient: keyless });
    const ring = gcsRing({ bucket, object, client });
    for (const call of [() => ring.read(), () => ring.write('x', { expected: undefined })]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
      expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
    }
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', hear);
    expect(stray).toEqual([]);
  });
});
