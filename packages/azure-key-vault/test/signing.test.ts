import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore what the tests of all packages share is no package
import { publicHalf, sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
import { fetchAzureSignPublicKeys } from '../src/index.ts';
import { entry, useVault } from './vault-setup.ts';

const setup = useVault();

function signedByHand(privateKey: ReturnType<typeof generateKeyPairSync>['privateKey'], bytes = entry): Uint8Array {
  return sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

describe('signing with Key Vault', () => {
  test('makes one request, to the pinned version, with the digest of the entry', async () => {
    const { vault, signing, signer } = setup();
    const keyWrapper = signer();
    const signature = await keyWrapper.sign?.(entry);
    expect(vault.requests).toMatchObject([{ operation: 'sign', name: 'signing', version: signing.current.id }]);
    expect(keyWrapper.verify?.(entry, signature ?? new Uint8Array())).toBe(true);
    expect(vault.requests).toHaveLength(1);
  });

  test('signs the original entry, even if the caller changes it during the call', async () => {
    const keyWrapper = setup().signer();
    const given = new Uint8Array(entry);
    const signing = keyWrapper.sign?.(given);
    given.fill(0);
    expect(keyWrapper.verify?.(entry, (await signing) ?? new Uint8Array())).toBe(true);
  });

  test('continues with the pinned version after a rotation in the vault', async () => {
    const { vault, signing, signer } = setup();
    const keyWrapper = signer();
    const old = signing.current.id;
    signing.rotate();
    await keyWrapper.sign?.(entry);
    expect(vault.requests).toMatchObject([{ version: old }]);
  });

  test('verifies signatures of every pinned key, of older versions and of the next one, and of no other key', async () => {
    const { signing, signer, publicKey } = setup();
    const first = publicKey();
    const old = await signer().sign?.(entry);
    signing.rotate();
    const second = publicKey();
    const recent = await signer({ signPublicKeys: [second] }).sign?.(entry);
    const both = signer({ signPublicKeys: [first, second] });
    const onlyNew = signer({ signPublicKeys: [second] });
    if (old === undefined || recent === undefined) throw new Error('both sign');
    expect([both.verify?.(entry, old), both.verify?.(entry, recent)]).toEqual([true, true]);
    expect([onlyNew.verify?.(entry, old), onlyNew.verify?.(entry, recent)]).toEqual([false, true]);
  });

  test('a signature of a key that is not pinned is not returned, because no server could verify it', async () => {
    const { signer, vault } = setup();
    const stranger = vault.createKey('stranger', 'EC');
    const keyWrapper = signer({ signPublicKeys: [publicHalf(stranger.current.publicKey)] });
    await expect(keyWrapper.sign?.(entry)).rejects.toMatchObject({ kind: 'corrupt', summary: { operation: 'sign' } });
  });

  test.each([
    ['a changed bit', (value: Buffer) => Buffer.from(value.map((byte, i) => (i === 7 ? byte ^ 1 : byte)))],
    ['63 bytes', (value: Buffer) => value.subarray(1)],
    ['65 bytes', (value: Buffer) => Buffer.concat([value, Buffer.alloc(1)])],
    ['zeros', () => new Uint8Array(64)],
  ])('adapter rule 4: a signature with %s is corrupt', async (_, change) => {
    const { vault, signer } = setup();
    vault.spoilValue(change);
    await expect(signer().sign?.(entry)).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a signature by another key, in another encoding, or of another entry is not valid', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { wrapper } = setup();
    const { kty = '', crv = '', x = '', y = '' } = publicKey.export({ format: 'jwk' });
    const keyWrapper = wrapper({ signPublicKeys: [{ kty, crv, x, y }] });
    expect(keyWrapper.verify?.(entry, signedByHand(privateKey))).toBe(true);
    expect(keyWrapper.verify?.(entry, signedByHand(privateKey, entry.slice(1)))).toBe(false);
    expect(keyWrapper.verify?.(entry, sign('sha256', entry, privateKey))).toBe(false);
    expect(
      keyWrapper.verify?.(entry, signedByHand(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)),
    ).toBe(false);
  });
});

describe('fetchAzureSignPublicKeys', () => {
  test('gets the public key of each version that is named, in their order', async () => {
    const { vault, signing, clients, publicKey } = setup();
    const old = { id: vault.idOf(signing, signing.current), jwk: publicKey() };
    signing.rotate();
    const newer = { id: vault.idOf(signing, signing.current), jwk: publicKey() };
    const keys = await fetchAzureSignPublicKeys({ signKeyIds: [newer.id, old.id], clients });
    expect(keys).toEqual([newer.jwk, old.jwk]);
    expect(vault.requests.map(({ operation }) => operation)).toEqual(['get', 'get']);
  });

  test('needs only the permission to get', async () => {
    const { vault, signing } = setup();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    const fetchWith = (token: string): Promise<unknown> =>
      fetchAzureSignPublicKeys({ signKeyIds, clients: sdkClients(vault, token) });
    expect(await fetchWith(vault.issueToken(['get']))).toHaveLength(1);
    await expect(fetchWith(vault.issueToken(['sign', 'unwrapKey']))).rejects.toMatchObject({ kind: 'denied' });
  });

  test.each([
    ['of another key', () => setup().vault.spoilKid((kid) => kid.replace('/signing/', '/other/'))],
    ['of another version', () => setup().vault.spoilKid((kid) => kid.replace(/[0-9a-f]{32}$/, 'f'.repeat(32)))],
    ['of another vault', () => setup().vault.spoilKid((kid) => kid.replace('127.0.0.1', 'evil.example'))],
    ['of another curve', () => spoilKey({ crv: 'P-384' })],
    ['that is not a point of the curve', () => spoilKey({ x: Buffer.alloc(32, 1).toString('base64url') })],
    ['without a coordinate', () => spoilKey({ y: undefined })],
    ['that is empty', () => setup().vault.spoilText(() => '')],
  ])('an answer %s is corrupt', async (_, spoil) => {
    const { vault, signing, clients } = setup();
    spoil();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    await expect(fetchAzureSignPublicKeys({ signKeyIds, clients })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('rejects an RSA key, which cannot sign ring entries', async () => {
    const { vault, rsa, clients } = setup();
    const signKeyIds = [vault.idOf(rsa, rsa.current)];
    await expect(fetchAzureSignPublicKeys({ signKeyIds, clients })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('waits for a vault that throttles for a while', async () => {
    const { vault, signing, clients } = setup();
    vault.throttle({ times: 3 });
    const signKeyIds = [vault.idOf(signing, signing.current)];
    expect(await fetchAzureSignPublicKeys({ signKeyIds, clients })).toHaveLength(1);
    expect(vault.requests).toHaveLength(4);
  });

  test.each([
    [undefined, 2, 9],
    [3, 3, 3],
  ])(
    'signing keys are not requested again later than 15 seconds after the first attempt, unless maxAttempts is given: %s',
    async (maxAttempts, least, most) => {
      let nowMs = 0;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      onTestFinished(() => clock.mockRestore());
      const { vault, signing, clients } = setup();
      vault.throttle();
      const signKeyIds = [vault.idOf(signing, signing.current)];
      const call = fetchAzureSignPublicKeys({ signKeyIds, clients, maxAttempts });
      nowMs = 14_999;
      await expect.poll(() => vault.requests.length).toBeGreaterThan(1);
      nowMs = 15_000;
      await expect(call).rejects.toMatchObject({ kind: 'throttled', summary: { operation: 'sign' } });
      expect(vault.requests.length).toBeGreaterThanOrEqual(least);
      expect(vault.requests.length).toBeLessThanOrEqual(most);
    },
  );

  test('a pending fetch of signing keys rejects when the caller aborts (F29)', async () => {
    const { vault, signing, clients } = setup();
    vault.hang();
    const controller = new AbortController();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    const call = fetchAzureSignPublicKeys({ signKeyIds, clients, signal: controller.signal });
    call.catch(() => undefined);
    await expect.poll(() => vault.hanging).toBe(1);
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

function spoilKey(change: object): void {
  setup().vault.spoilAnswer((answer) => ({ ...answer, key: { ...Object(answer['key']), ...change } }));
}
