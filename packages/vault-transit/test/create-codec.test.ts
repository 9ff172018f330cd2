import { KeyWrapperError, memoryRing } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createVaultTransitCodec, type VaultTransitCodecOptions, vaultTransitKeyWrapper } from '../src/index.ts';
import { hasOpenBao, newKey, openbao } from './fixture.ts';
import { type SpoilingProxy, startSpoilingProxy } from './spoiling-proxy.ts';

const payload = new TextEncoder().encode('state');
let proxy: SpoilingProxy;
beforeAll(async () => {
  proxy = await startSpoilingProxy(openbao.address);
});
afterAll(() => proxy.close());

async function setUp(): Promise<VaultTransitCodecOptions> {
  const { token } = openbao;
  return { address: proxy.address, token, keyId: await newKey(), ring: memoryRing(), create: 'now' };
}

describe.skipIf(!hasOpenBao)('createVaultTransitCodec', () => {
  test('unseals tokens of another instance that shares its ring and transit key', async () => {
    const options = await setUp();
    await using first = await createVaultTransitCodec(options);
    await using second = await createVaultTransitCodec(options);
    expect(second.unseal(first.seal(payload))).toEqual(payload);
    for (const { body } of proxy.requests) {
      const associated = Buffer.from(JSON.parse(body).associated_data, 'base64').toString();
      expect(JSON.parse(associated)).toMatchObject({ 'sealring:ring': 'default', 'sealring:purpose': 'data-key' });
    }
  });

  test('sealing and unsealing make no request to Vault (F5)', async () => {
    await using codec = await createVaultTransitCodec(await setUp());
    proxy.requests.length = 0;
    for (let i = 0; i < 1000; i++) codec.unseal(codec.seal(payload));
    for (let i = 0; i < 1000; i++) expect(() => codec.unseal(`${codec.seal(payload)}x`)).toThrow('malformed');
    expect(proxy.requests).toEqual([]);
  });

  test('options of the key wrapper are passed to the key wrapper, and others to createKmsCodec, which rejects unknown ones', async () => {
    const options = await setUp();
    await using codec = await createVaultTransitCodec({ ...options, policy: { tokenLifetimeSeconds: 1800 } });
    expect(codec.tokenLifetimeSeconds).toBe(1800);
    await expect(createVaultTransitCodec(Object({ ...options, keyname: 'x' }))).rejects.toThrow(TypeError);
    await expect(createVaultTransitCodec(JSON.parse('"x"'))).rejects.toThrow(/^createVaultTransitCodec: /);
    const wrong = {
      address: 'x',
      keyId: '',
      mount: '',
      namespace: '',
      token: '',
      alsoUnwrap: [''],
      callTimeoutSeconds: 0,
      maxAttempts: 0,
    };
    for (const [name, value] of Object.entries(wrong)) {
      const call = createVaultTransitCodec({ ...options, [name]: value });
      await expect(call, name).rejects.toThrow(RangeError);
      await expect(call).rejects.toThrow(name);
    }
    for (const name of ['client', 'dangerouslyAllowHttp']) {
      await expect(createVaultTransitCodec({ ...options, [name]: 7 })).rejects.toThrow(name);
    }
  });

  test('closing the codec closes the key wrapper', async () => {
    const { prototype } = vaultTransitKeyWrapper({ address: 'https://x', keyId: 'x', token: 'x' }).constructor;
    using close = vi.spyOn(prototype, 'close');
    await (await createVaultTransitCodec(await setUp())).close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  test('if Vault denies access, the start fails with that error after one request', async () => {
    const options = { ...(await setUp()), token: 'no-such-token' };
    proxy.requests.length = 0;
    const start = createVaultTransitCodec(options);
    await expect(start).rejects.toBeInstanceOf(KeyWrapperError);
    await expect(start).rejects.toMatchObject({ kind: 'denied' });
    expect(proxy.requests).toHaveLength(1);
  });

  test('a call is attempted once by default, because the ring retries it', async () => {
    await using codec = await createVaultTransitCodec(await setUp());
    await using patient = await createVaultTransitCodec({ ...(await setUp()), maxAttempts: 2 });
    proxy.answer({ status: 503 });
    try {
      await expect(codec.rotate()).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 1 } });
      await expect(patient.rotate()).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 2 } });
    } finally {
      proxy.restore();
    }
  });
});
