import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { publicHalf } from '../../../test/support/azure-key-vault/clients.ts';
import { entry, useVault } from './vault-setup.ts';

const setup = useVault();

function signedByHand(privateKey: ReturnType<typeof generateKeyPairSync>['privateKey'], bytes = entry): Uint8Array {
  return sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

describe('a key wrapper that signs with Key Vault', () => {
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

  test('verifies signatures of every pinned key, including other versions, and of no other key', async () => {
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

  test('a signature by a key that is not pinned is not returned, because no server could verify it', async () => {
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
