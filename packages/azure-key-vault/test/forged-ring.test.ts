import { constants, generateKeyPairSync, type KeyObject, publicEncrypt, sign } from 'node:crypto';
import { createKmsCodec, type KeyWrapper, type KmsCodec, memoryRing, type RingStore } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { FakeKeyVault } from '../../../test/support/azure-key-vault/fake-key-vault.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import type { VaultKey } from '../../../test/support/azure-key-vault/vault-key.ts';
import { type AzureKeyVaultCodecOptions, createAzureKeyVaultCodec } from '../src/index.ts';

const payload = new TextEncoder().encode('{"order":"A1"}');
const minted = new TextEncoder().encode('{"order":"A1","refund":1000000}');
const open: KmsCodec[] = [];
let vault: FakeKeyVault;
let rsa: VaultKey;
let hsm: VaultKey;
let signing: VaultKey;

beforeAll(async () => {
  vault = await FakeKeyVault.start();
  rsa = vault.createKey('wrapping');
  hsm = vault.createKey('hsm-wrapping', 'oct-HSM');
  signing = vault.createKey('signing', 'EC');
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((codec) => codec.close()));
});
afterAll(() => vault.stop());

type Extra = Partial<AzureKeyVaultCodecOptions>;

/** A server with all permissions, and a signing key. */
async function server(ring: RingStore, extra: Extra = {}): Promise<KmsCodec> {
  const signKeyId = vault.idOf(signing, signing.current);
  return started(createAzureKeyVaultCodec({ ...withoutSigner(ring), signKeyId, ...extra }));
}

function withoutSigner(ring: RingStore): AzureKeyVaultCodecOptions {
  return { keyId: vault.idOf(rsa), clients: sdkClients(vault, vault.issueToken()), ring, create: 'now' };
}

async function started(start: Promise<KmsCodec>): Promise<KmsCodec> {
  const codec = await start;
  open.push(codec);
  return codec;
}

/**
 * An attacker with write access to the store and the public wrapping key, which is not secret, but no permission at the
 * vault. They generate a data key and wrap it themselves, under the version that the fleet uses.
 */
async function forgedRing(
  signEntry?: (entry: Uint8Array) => Uint8Array,
): Promise<{ attacker: KmsCodec; ring: RingStore }> {
  const ring = memoryRing();
  const key = rsa.current.publicKey;
  if (key === undefined) throw new Error('an RSA key has a public key');
  const wrapped = new Map<string, Uint8Array>();
  const keyWrapper: KeyWrapper = {
    provider: 'azure-key-vault',
    keyId: vault.idOf(rsa),
    supports: { context: false, authenticated: signEntry === undefined },
    wrap: async (dataKey) => {
      const bytes = publicEncrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, dataKey);
      wrapped.set(bytes.toString('hex'), new Uint8Array(dataKey));
      return { provider: 'azure-key-vault', keyId: vault.idOf(rsa, rsa.current), wrapped: bytes };
    },
    unwrap: async (made) => new Uint8Array(wrapped.get(Buffer.from(made.wrapped).toString('hex')) ?? []),
    ...(signEntry !== undefined && { sign: async (entry: Uint8Array) => signEntry(entry), verify: () => true }),
  };
  return { attacker: await started(createKmsCodec({ keyWrapper, ring, create: 'now' })), ring };
}

/** Copies one store's document into another. */
async function publish(from: RingStore, to: RingStore): Promise<void> {
  const document = (await from.read())?.document ?? '';
  await to.write(document, { expected: (await to.read())?.revision });
}

function signWith(key: KeyObject): (entry: Uint8Array) => Uint8Array {
  return (entry) => sign('sha256', entry, { key, dsaEncoding: 'ieee-p1363' });
}

/** The signatures in a stored ring document. */
async function signatures(ring: RingStore): Promise<Uint8Array[]> {
  const document = (await ring.read())?.document ?? '';
  return [...document.matchAll(/"signature":"([^"]+)"/g)].map(([, text = '']) => Buffer.from(text, 'base64url'));
}

describe('a ring whose data key an attacker wrapped with the public RSA key (F35)', () => {
  test('a server that trusts the store accepts the forged ring, as the attacker intended', async () => {
    const { attacker, ring } = await forgedRing();
    const token = attacker.seal(minted);
    // The message must say that everyone with write access to the store can create tokens.
    const trusting = await started(
      createAzureKeyVaultCodec({ ...withoutSigner(ring), create: 'never', dangerouslyTrustStore: true }),
    );
    expect(trusting.unseal(token)).toEqual(new Uint8Array(minted));
  });

  test('a forged ring is refused by a starting server before any unwrap, and is not overwritten', async () => {
    const { ring } = await forgedRing();
    const before = await ring.read();
    vault.requests.length = 0;
    await expect(server(ring)).rejects.toMatchObject({ kind: 'corrupt' });
    expect(vault.requests.map(({ operation }) => operation)).not.toContain('unwrapKey');
    expect(await ring.read()).toEqual(before);
  });

  test('a server without a signing key does not start on a forged ring', async () => {
    const { ring } = await forgedRing();
    await expect(createAzureKeyVaultCodec(withoutSigner(ring))).rejects.toThrow(TypeError);
    await expect(createAzureKeyVaultCodec({ ...withoutSigner(ring), role: 'reader' })).rejects.toThrow(TypeError);
  });

  test('a forged ring is refused by a running fleet, which continues with its own keys', async () => {
    const ring = memoryRing();
    const [a, b] = [await server(ring), await server(ring)];
    const token = a.seal(payload);
    const { attacker, ring: forged } = await forgedRing();
    await publish(forged, ring);
    for (const codec of [a, b]) await expect(codec.refresh()).rejects.toMatchObject({ kind: 'corrupt' });
    for (const codec of [a, b]) {
      expect(codec.unseal(token)).toEqual(new Uint8Array(payload));
      expect(codec.unseal(a.seal(payload))).toEqual(new Uint8Array(payload));
      expect(() => codec.unseal(attacker.seal(minted))).toThrow('unknown key');
    }
  });

  test('a forged ring with a signature by the attacker’s own key is refused', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { ring } = await forgedRing(signWith(privateKey));
    expect(await signatures(ring)).toHaveLength(1);
    await expect(server(ring)).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a forged ring with a signature that the fleet’s own key made for another entry is refused', async () => {
    const genuine = memoryRing();
    await server(genuine);
    const [stolen = new Uint8Array()] = await signatures(genuine);
    const { ring } = await forgedRing(() => stolen);
    expect(await signatures(ring)).toEqual([stolen]);
    await expect(server(ring)).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a forged ring is refused by a fleet on A256KW, whose wraps need a permission', async () => {
    const { ring } = await forgedRing();
    const { keyId: _, ...rest } = withoutSigner(ring);
    for (const keyId of [vault.idOf(hsm), vault.idOf(rsa)]) {
      const start = createAzureKeyVaultCodec({ ...rest, keyId, algorithm: 'A256KW', create: 'never' });
      await expect(start).rejects.toMatchObject({ kind: 'corrupt' });
    }
  });
});

describe('a genuine ring document that was tampered with', () => {
  // Every change leaves the document well-formed, but a signature or the wrap fails.
  test.each([
    ['a key id of another key', (text: string) => text.replaceAll('/keys/wrapping/', '/keys/signing/')],
    ['a key id of another vault', (text: string) => text.replaceAll('https://127.0.0.1', 'https://evil.example')],
    ['a key id of another version', (text: string) => text.replaceAll(rsa.current.id, 'f'.repeat(32))],
    ['another provider', (text: string) => text.replaceAll('"azure-key-vault"', '"aws-kms"')],
    ['no signature', (text: string) => text.replace(/,"signature":"[^"]+"/, '')],
    [
      'another second',
      (text: string) =>
        text.replace(
          /("opensUntil":"[^"]+)(\d)Z"/,
          (_, time: string, digit: string) => `${time}${(Number(digit) + 1) % 10}Z"`,
        ),
    ],
    ['another ring’s name', (text: string) => text.replace('"ring":"default"', '"ring":"refunds"')],
  ])('a starting server refuses a genuine ring document that was changed to have %s', async (_, change) => {
    const genuine = memoryRing();
    await server(genuine);
    const document = (await genuine.read())?.document ?? '';
    const changed = change(document);
    expect(changed).not.toBe(document);
    const ring = memoryRing();
    await ring.write(changed, { expected: undefined });
    await expect(server(ring)).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a starting server refuses a complete ring that has a different name and the same keys (F25)', async () => {
    const refunds = memoryRing();
    await server(refunds, { ringName: 'refunds' });
    await expect(server(refunds, { ringName: 'payments' })).rejects.toMatchObject({ kind: 'corrupt' });
  });
});
