import { KeyManagementServiceClient } from '@google-cloud/kms';
import { KeyWrapperError, memoryRing } from '@sealring/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createGcpKmsCodec, type GcpKmsClient, type GcpKmsCodecOptions } from '../src/index.ts';
import { Status, sdkClient, World } from './world.ts';

const world = new World();
const payload = new TextEncoder().encode('state');

function setUp(): GcpKmsCodecOptions {
  return { keyId: world.setUp().keyId, client: world.client, ring: memoryRing(), create: 'now' };
}

describe('createGcpKmsCodec', () => {
  test('unseals tokens of another instance that shares its ring and key', async () => {
    const options = setUp();
    await using first = await createGcpKmsCodec(options);
    await using second = await createGcpKmsCodec(options);
    expect(second.unseal(first.seal(payload))).toEqual(payload);
    for (const { additionalAuthenticatedData } of world.kms.requests) {
      expect(JSON.parse(Buffer.from(additionalAuthenticatedData).toString())).toMatchObject({
        'sealring:ring': 'default',
      });
    }
  });

  test('sealing and unsealing make no call to Cloud KMS (F5)', async () => {
    await using codec = await createGcpKmsCodec(setUp());
    world.kms.requests.length = 0;
    for (let i = 0; i < 1000; i++) codec.unseal(codec.seal(payload));
    for (let i = 0; i < 1000; i++) expect(() => codec.unseal(`${codec.seal(payload)}x`)).toThrow('malformed');
    expect(world.kms.requests).toEqual([]);
  });

  test('other options are passed to createKmsCodec, which rejects unknown ones', async () => {
    const options = setUp();
    await using codec = await createGcpKmsCodec({ ...options, policy: { tokenLifetimeSeconds: 1800 } });
    expect(codec.tokenLifetimeSeconds).toBe(1800);
    await expect(createGcpKmsCodec(Object({ ...options, keyname: options.keyId }))).rejects.toThrow(TypeError);
    await expect(createGcpKmsCodec({ ...options, keyId: 'no such form' })).rejects.toThrow(RangeError);
  });

  test('options of the key wrapper are passed to the key wrapper', async () => {
    const options = setUp();
    for (const wrong of [
      { alsoUnwrap: ['x'] },
      { callTimeoutSeconds: 0 },
      { maxAttempts: 0 },
      { endpoint: 'https://x' },
    ]) {
      const [name = ''] = Object.keys(wrong);
      await expect(createGcpKmsCodec({ ...options, ...wrong }), name).rejects.toThrow(name);
    }
    const wrong = Object({ dangerouslyAllowHttp: 7 });
    await expect(createGcpKmsCodec({ ...options, ...wrong })).rejects.toThrow('dangerouslyAllowHttp');
  });

  test('if Cloud KMS denies access, the start fails with its error', async () => {
    const options = setUp();
    world.kms.deny();
    const start = createGcpKmsCodec(options);
    await expect(start).rejects.toBeInstanceOf(KeyWrapperError);
    await expect(start).rejects.toMatchObject({ kind: 'denied' });
  });

  test('closing the codec does not close the caller’s client', async () => {
    const options = setUp();
    await (await createGcpKmsCodec(options)).close();
    await using codec = await createGcpKmsCodec(options);
    expect(codec.unseal(codec.seal(payload))).toEqual(payload);
  });

  test('the key wrapper makes one attempt for the ring, because the ring itself retries failed calls', async () => {
    const options = setUp();
    await using codec = await createGcpKmsCodec(options);
    world.kms.failAlways({ code: Status.UNAVAILABLE, details: 'down' });
    await expect(codec.rotate()).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 1 } });
  });
});

describe('createGcpKmsCodec without a client', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('creates the vendor’s client at its first call, and closes it', async () => {
    const { client: _, ...options } = setUp();
    // Its requests reach the fake through a client of another version: its own would call Google.
    const way = sdkClient('5.7', world.server);
    const own = KeyManagementServiceClient.prototype as unknown as Required<GcpKmsClient>;
    const initialize = vi.spyOn(own, 'initialize').mockResolvedValue(undefined);
    vi.spyOn(own, 'encrypt').mockImplementation((request, callOptions) => way.encrypt(request, callOptions));
    vi.spyOn(own, 'decrypt').mockImplementation((request, callOptions) => way.decrypt(request, callOptions));
    const close = vi.spyOn(own, 'close').mockResolvedValue(undefined);
    try {
      const codec = await createGcpKmsCodec(options);
      expect(codec.unseal(codec.seal(payload))).toEqual(payload);
      expect(new Set(initialize.mock.instances).size).toBe(1);
      expect(close).not.toHaveBeenCalled();
      await codec.close();
      expect(close).toHaveBeenCalledTimes(1);
    } finally {
      await way.close();
    }
  });
});
