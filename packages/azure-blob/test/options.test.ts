import { inspect } from 'node:util';
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { describe, expect, test } from 'vitest';
import { type AzureBlobRingOptions, azureBlobRing } from '../src/index.ts';

const container = 'https://payments.blob.core.windows.net/sealring';
const blob = 'payments.ring';
const client = { getBlockBlobClient: () => ({ download: async () => undefined, upload: async () => undefined }) };
const credential = { getToken: async () => null };

// Values that a caller without types could pass.
function untyped(options: unknown): AzureBlobRingOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['nothing', undefined],
    ['an unknown option', { container, blob, account: 'payments' }],
    ['no container', { blob }],
    ['no blob', { container }],
    ['a container of another type', { container: {}, blob }],
    ['a credential of null', { container, blob, credential: null }],
    ['a container of null', { container: null, blob }],
    ['a URL that is an object', { container: new URL(container), blob }],
    ['a credential of another type', { container, blob, credential: {} }],
    ['a credential as text', { container, blob, credential: 'key' }],
    ['a credential whose getToken is not a function', { container, blob, credential: { getToken: 7 } }],
    ['a blob that is not a string', { container, blob: Buffer.from('k') }],
    ['callTimeoutSeconds as text', { container, blob, callTimeoutSeconds: '5' }],
  ])('%s causes a TypeError that names the function', (_, options) => {
    expect(() => Reflect.apply(azureBlobRing, undefined, [options])).toThrow(TypeError);
    expect(() => Reflect.apply(azureBlobRing, undefined, [options])).toThrow(/^azureBlobRing: /);
  });

  test.each([
    ['container must be an https:// URL', { container: 'payments', blob }],
    ['container', { container: 'https://payments.blob.core.windows.net//sealring', blob }],
    ['container', { container: 'http://payments.blob.core.windows.net/sealring', blob }],
    ['container', { container: 'ftp://payments.blob.core.windows.net/sealring', blob }],
    ['container', { container: 'https://payments.blob.core.windows.net', blob }],
    ['container', { container: 'https://payments.blob.core.windows.net/?sig=x', blob }],
    ['credential', { container: client, credential, blob }],
    ['credential cannot be a token credential', { container: 'http://127.0.0.1:10000/account/ring', credential, blob }],
    ['blob', { container, blob: '' }],
    ['blob', { container, blob: 'é'.repeat(1_025) }],
    ['blob', { container, blob: '\ud800' }],
    ['blob', { container, blob: 'rings/../k' }],
    ['blob', { container, blob: '.\\k' }],
    ['blob', { container, blob: 'rings/' }],
    ['blob', { container, blob: 'ring.' }],
    ['callTimeoutSeconds', { container, blob, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { container, blob, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { container, blob, callTimeoutSeconds: 61 }],
  ])('a value that Blob Storage or the bounds do not allow causes a RangeError: %s', (name, options) => {
    expect(() => azureBlobRing(untyped(options))).toThrow(RangeError);
    expect(() => azureBlobRing(untyped(options))).toThrow(name);
  });

  test.each([
    ['a URL', container, container],
    ['a URL with a signature', `${container}?sv=2026-02-06&sig=x`, container],
    ['a URL on this machine', 'http://127.0.0.1:10000/account/sealring', 'http://127.0.0.1:10000/account/sealring'],
    ['a URL on localhost', 'http://localhost:1/s', 'http://localhost:1/s'],
    ['a URL on IPv6', 'http://[::1]:1/s', 'http://[::1]:1/s'],
    ['a client', new ContainerClient(container), container],
  ])('%s is accepted as the container', (_, given, at) => {
    const ring = azureBlobRing({ container: given, blob, callTimeoutSeconds: 1 });
    expect(ring).toMatchObject({ kind: 'azure-blob', location: `${at}/${blob}` });
  });

  test('any object that has the client’s method is accepted, and so is a blob name of 1 024 characters', () => {
    const longest = 'é'.repeat(1_024);
    expect(azureBlobRing({ container: client, blob: longest }).location).toBe(`azure-blob ${longest}`);
  });

  test.each([
    ['of @azure/identity', credential],
    ['that is an account key', new StorageSharedKeyCredential('payments', 'AAAA')],
    [
      'that is an account key, for an emulator',
      new StorageSharedKeyCredential('account', 'AAAA'),
      'http://127.0.0.1:10000/account/ring',
    ],
  ])('a credential %s is accepted', (_, given, at = container) => {
    expect(azureBlobRing({ container: at, blob, credential: given }).kind).toBe('azure-blob');
  });

  test('a wrong argument is rejected before any call, with an error that names the function (F17)', async () => {
    const ring = azureBlobRing({ container: client, blob });
    const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
    for (const wrong of [call('read', { blob }), call('write', 7, { expected: undefined })]) {
      await expect(wrong).rejects.toBeInstanceOf(TypeError);
      await expect(wrong).rejects.toThrow(/^azureBlobRing: /);
    }
  });

  test('no message about a URL contains its signature (F21, F33)', () => {
    for (const url of ['http://host/ring?sig=canary', 'https://host?sig=canary', 'sig=canary']) {
      const thrown = (): unknown => azureBlobRing({ container: url, blob });
      expect(thrown).toThrow(RangeError);
      expect(thrown).not.toThrow('canary');
    }
  });

  test('inspect shows the kind, but no part of the client (F21)', () => {
    const rings = [
      azureBlobRing({ container: `${container}?sig=canary`, blob }),
      azureBlobRing({ container, credential: new StorageSharedKeyCredential('canary', 'canary'), blob }),
    ];
    for (const ring of rings) {
      expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toMatch(/canary|key|url/i);
      expect(JSON.parse(JSON.stringify(ring))).toEqual({ kind: 'azure-blob' });
    }
  });

  test('a closed store is unavailable', async () => {
    const ring = azureBlobRing({ container, blob });
    await ring.close();
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the store is closed' });
  });

  test.each([
    ['that gives no token', { getToken: async () => null }],
    [
      'that fails',
      {
        getToken: async () => {
          throw Object.assign(new Error('canary'), { name: 'AuthenticationError', statusCode: 401 });
        },
      },
    ],
  ])('a credential %s is unavailable, not denied, because permissions on the ring are unknown', async (_, without) => {
    const ring = azureBlobRing({ container: 'https://127.0.0.1:1/ring', credential: without, blob });
    const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });
});
