import { KeyWrapperError, type KmsCodec, memoryRing } from '@sealring/core';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
import { type AzureKeyVaultClients, type AzureKeyVaultCodecOptions, createAzureKeyVaultCodec } from '../src/index.ts';
import { VaultCalls } from '../src/vault-calls.ts';
import { useVault } from './vault-setup.ts';

const setup = useVault();
const payload = new TextEncoder().encode('state');

function options(extra: Partial<AzureKeyVaultCodecOptions> = {}): AzureKeyVaultCodecOptions {
  const { vault, rsa, signing, clients } = setup();
  const signKeyId = vault.idOf(signing, signing.current);
  return { keyId: vault.idOf(rsa), signKeyId, clients, ring: memoryRing(), create: 'now', ...extra };
}

function operations(): string[] {
  return setup().vault.requests.map(({ operation, name }) => `${operation} ${name}`);
}

describe('createAzureKeyVaultCodec', () => {
  test('unseals tokens of another instance that shares its ring and key', async () => {
    const given = options();
    await using first = await createAzureKeyVaultCodec(given);
    await using second = await createAzureKeyVaultCodec(given);
    expect(new TextDecoder().decode(second.unseal(first.seal(payload)))).toBe('state');
  });

  test('creating a ring requests the signing key, the current version, one wrap, one signature and one KMS check', async () => {
    await using codec = await createAzureKeyVaultCodec(options());
    expect(operations()).toEqual([
      'get signing',
      'get wrapping',
      'wrapKey wrapping',
      'sign signing',
      'unwrapKey wrapping',
    ]);
    expect(codec.health()).toMatchObject({ canSeal: true });
  });

  test('sealing and unsealing make no request to the vault (F5)', async () => {
    await using codec = await createAzureKeyVaultCodec(options());
    setup().vault.requests.length = 0;
    for (let i = 0; i < 1000; i++) codec.unseal(codec.seal(payload));
    for (let i = 0; i < 1000; i++) expect(() => codec.unseal(`${codec.seal(payload)}x`)).toThrow('malformed');
    expect(setup().vault.requests).toEqual([]);
  });

  test('least privilege: a reader with a pinned public key needs only the permission to unwrap', async () => {
    const { vault, publicKey } = setup();
    const given = options();
    await using member = await createAzureKeyVaultCodec(given);
    const { signKeyId: _, ...rest } = given;
    const clients = sdkClients(vault, vault.issueToken(['unwrapKey']));
    await using reader = await createAzureKeyVaultCodec({
      ...rest,
      clients,
      role: 'reader',
      signPublicKeys: [publicKey()],
    });
    expect(reader.unseal(member.seal(payload))).toEqual(member.unseal(member.seal(payload)));
  });

  test('least privilege: a member needs wrapKey, unwrapKey and sign, and also get unless both keys are pinned', async () => {
    const { vault, rsa, publicKey } = setup();
    const clients = sdkClients(vault, vault.issueToken(['wrapKey', 'unwrapKey', 'sign']));
    const keyId = vault.idOf(rsa, rsa.current);
    await using codec = await createAzureKeyVaultCodec(options({ clients, keyId, signPublicKeys: [publicKey()] }));
    codec.seal(payload);
    await expect(createAzureKeyVaultCodec(options({ clients, keyId }))).rejects.toMatchObject({ kind: 'denied' });
    await expect(createAzureKeyVaultCodec(options({ clients, signPublicKeys: [publicKey()] }))).rejects.toMatchObject({
      kind: 'denied',
    });
  });

  test('A256KW needs no signing key, and binds the context within the wrap like RSA', async () => {
    const { vault, hsm, clients } = setup();
    const ring = memoryRing();
    const given = { keyId: vault.idOf(hsm), algorithm: 'A256KW', clients, ring, create: 'now' } as const;
    await using first = await createAzureKeyVaultCodec(given);
    await using second = await createAzureKeyVaultCodec(given);
    expect(second.unseal(first.seal(payload))).toEqual(first.unseal(first.seal(payload)));
    expect(operations()).not.toContain('sign signing');
  });

  test('if alsoVerify is set everywhere before a new signing key is used, members accept both versions', async () => {
    const { vault, signing } = setup();
    const given = options();
    const old = given.signKeyId ?? '';
    await using before = await createAzureKeyVaultCodec(given);
    const next = vault.idOf(signing, signing.rotate());
    await using prepared = await createAzureKeyVaultCodec({ ...given, alsoVerify: [next] });
    await using moved = await createAzureKeyVaultCodec({ ...given, signKeyId: next, alsoVerify: [old] });
    await moved.rotate();
    await prepared.refresh();
    expect(prepared.health().keys).toHaveLength(2);
    expect(prepared.unseal(moved.seal(payload))).toEqual(moved.unseal(moved.seal(payload)));
    await using started = await createAzureKeyVaultCodec({ ...given, signKeyId: next, alsoVerify: [old] });
    expect(started.unseal(before.seal(payload))).toEqual(before.unseal(before.seal(payload)));
  });

  test.each([
    ['both credential and clients', { credential: { getToken: () => Promise.resolve(null) } }, TypeError],
    ['a wrong keyId', { keyId: 'no such form' }, RangeError],
    ['a signKeyId without a version', { signKeyId: 'https://v.vault.azure.net/keys/k' }, RangeError],
    ['an unknown option', { rign: 1 }, TypeError],
    ['an invalid ringName', { ringName: 'a b' }, RangeError],
    ['a ring of another type', { ring: {} }, TypeError],
    ['a signal of another type', { signal: 7 }, TypeError],
    ['alsoVerify that is not a list', { alsoVerify: 'x' }, TypeError],
    ['alsoVerify without a version', { alsoVerify: ['https://v.vault.azure.net/keys/k'] }, RangeError],
    ['alsoVerify beside signPublicKeys', { alsoVerify: [], signPublicKeys: [] }, RangeError],
    ['alsoVerify without signKeyId', { alsoVerify: [], signKeyId: undefined }, RangeError],
    ['more than 15 in alsoVerify', { alsoVerify: Array.from({ length: 16 }, () => 'x') }, RangeError],
  ])('%s is rejected before any request', async (_, extra, type) => {
    const start = createAzureKeyVaultCodec({ ...options(), ...Object(extra) });
    await expect(start).rejects.toThrow(type);
    await expect(start).rejects.toThrow(new RegExp(`: .*\\b${Object.keys(extra)[0]}\\b`));
    expect(operations()).toEqual([]);
  });

  test('a signing key for A256KW, whose wraps need no signature, is rejected before any request', async () => {
    const { vault, hsm } = setup();
    const start = createAzureKeyVaultCodec(options({ keyId: vault.idOf(hsm), algorithm: 'A256KW' }));
    await expect(start).rejects.toThrow(RangeError);
    await expect(start).rejects.toThrow(/signKeyId/);
    expect(operations()).toEqual([]);
  });

  test('an option that neither the key wrapper nor the ring knows is rejected', async () => {
    await expect(createAzureKeyVaultCodec({ ...options(), ...Object({ keyid: 'x' }) })).rejects.toThrow(TypeError);
  });

  test('adapter rule 3: the ring, not the key wrapper, repeats calls that a caller waits for', async () => {
    await using codec = await createAzureKeyVaultCodec(options());
    setup().vault.requests.length = 0;
    setup().vault.throttle({ only: ['wrapKey'] });
    await expect(codec.rotate()).rejects.toMatchObject({ kind: 'throttled' });
    expect(operations().filter((operation) => operation === 'wrapKey wrapping')).toHaveLength(4);
  });

  test('a codec with RSA but no signing key starts only if the store is explicitly trusted (F35)', async () => {
    const { signKeyId: _, ...rest } = options();
    await expect(createAzureKeyVaultCodec(rest)).rejects.toThrow(/dangerouslyTrustStore/);
    expect(operations()).toEqual([]);
    await using codec = await createAzureKeyVaultCodec({ ...rest, dangerouslyTrustStore: true });
    codec.seal(payload);
  });

  test('closing the codec closes the key wrapper', async () => {
    const codec = await createAzureKeyVaultCodec(options());
    using close = vi.spyOn(VaultCalls.prototype, 'close');
    await codec.close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  test('the start fails with the reason if the vault denies access', async () => {
    setup().vault.deny();
    const start = createAzureKeyVaultCodec(options());
    await expect(start).rejects.toBeInstanceOf(KeyWrapperError);
    await expect(start).rejects.toMatchObject({ kind: 'denied' });
  });

  describe('a start in which fetching the signing keys takes 59 seconds', () => {
    /** Starts within this time; once the signing keys are there, the vault throttles that many wraps. */
    async function start(startTimeoutSeconds: number, times: number): Promise<KmsCodec> {
      const { clients, vault } = setup();
      const controller = new AbortController();
      const realNow = performance.now.bind(performance);
      let offsetMs = 1e9;
      // The ring's own clock does not jump.
      const clock = { wallMs: () => Date.now(), monotonicNs: () => process.hrtime.bigint() };
      const jumping = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + offsetMs);
      onTestFinished(() => {
        controller.abort();
        jumping.mockRestore();
      });
      const keys: AzureKeyVaultClients['keys'] = (vaultUrl) => ({
        async getKey(name, call) {
          const answer = await clients.keys(vaultUrl).getKey(name, call);
          if (name !== 'signing') return answer;
          offsetMs += 59_000;
          vault.throttle({ only: ['wrapKey'], times });
          return answer;
        },
      });
      const policy = { startTimeoutSeconds, tokenLifetimeSeconds: 1800 };
      const cryptography = clients.cryptography.bind(clients);
      const { signal } = controller;
      return createAzureKeyVaultCodec(
        options({ clients: { keys, cryptography }, callTimeoutSeconds: 60, policy, signal, clock }),
      );
    }

    test('the start tries the ring only for the rest of startTimeoutSeconds', async () => {
      await expect(start(59, 1_000)).rejects.toMatchObject({ kind: 'throttled' });
    });

    test('the start retries the ring within the rest of the time, with the given policy', async () => {
      await using codec = await start(120, 3);
      expect(codec.tokenLifetimeSeconds).toBe(1800);
      expect(operations().filter((operation) => operation === 'wrapKey wrapping')).toHaveLength(4);
    });
  });

  test('an abort ends the start while it fetches keys', async () => {
    setup().vault.hang();
    const controller = new AbortController();
    const start = createAzureKeyVaultCodec(options({ signal: controller.signal }));
    start.catch(() => undefined);
    await expect.poll(() => setup().vault.hanging).toBe(1);
    controller.abort();
    await expect(start).rejects.toMatchObject({ kind: 'unavailable' });
    expect(operations()).toEqual(['get signing']);
  });
});
