import { type KeyWrapper } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { publicHalf, sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import type { VaultKey } from '../../../test/support/azure-key-vault/vault-key.ts';
import type { AzureKeyVaultClients } from '../src/index.ts';
import { context, entry, samplePlaintext, useVault } from './vault-setup.ts';

const setup = useVault();

/** Not called inside an async function, because the test checks its synchronous exceptions. */
function signerOf(keyWrapper: KeyWrapper): Required<KeyWrapper> {
  if (keyWrapper.sign === undefined) throw new Error('it does not sign');
  return keyWrapper as Required<KeyWrapper>;
}

describe('requests to Key Vault', () => {
  test('a wrap looks up the current version if the key id has none, and an unwrap looks up nothing', async () => {
    const { rsa, wrapper } = setup();
    const keyWrapper = wrapper();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    await keyWrapper.unwrap(made, { context });
    const { id } = rsa.current;
    expect(setup().asked()).toEqual(['get current', `wrapKey ${id}`, `unwrapKey ${id}`]);
  });

  test('the current version is looked up again after the vault has refused a wrap', async () => {
    const { rsa, wrapper } = setup();
    const keyWrapper = wrapper();
    await keyWrapper.wrap(samplePlaintext(), { context });
    rsa.set({ expires: Date.now() - 1000 });
    const newer = rsa.rotate().id;
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'disabled' });
    expect((await keyWrapper.wrap(samplePlaintext(), { context })).keyId).toContain(newer);
  });

  test('a denied lookup is reported as a denied wrap, with the permissions that a wrap needs', async () => {
    const { vault, wrapper } = setup();
    vault.deny();
    await expect(wrapper().wrap(samplePlaintext(), { context })).rejects.toMatchObject({
      kind: 'denied',
      summary: { operation: 'wrap', hint: 'the caller lacks keys/wrap/action and keys/read' },
    });
  });

  test('a key id with a version causes no lookup', async () => {
    const { vault, rsa, wrapper } = setup();
    const keyWrapper = wrapper({ keyId: vault.idOf(rsa, rsa.current) });
    await keyWrapper.unwrap(await keyWrapper.wrap(samplePlaintext(), { context }), { context });
    expect(setup().asked()).toEqual([`wrapKey ${rsa.current.id}`, `unwrapKey ${rsa.current.id}`]);
  });

  test('a client is created and kept for each version, up to 64 of them (F23)', async () => {
    const { vault, rsa, clients, wrapper } = setup();
    const made: string[] = [];
    const refuse = (): Promise<never> => Promise.reject(new Error('x'));
    const counting: AzureKeyVaultClients = {
      keys: (vaultUrl) => clients.keys(vaultUrl),
      cryptography: (key) => {
        made.push(key.id);
        return { wrapKey: refuse, unwrapKey: refuse, sign: refuse };
      },
    };
    const keyWrapper = wrapper({ clients: counting, maxAttempts: 1 });
    const unwrap = (version: number): Promise<unknown> => {
      const keyId = `${vault.idOf(rsa)}/${version.toString(16).padStart(32, '0')}`;
      const call = keyWrapper.unwrap({ provider: 'azure-key-vault', keyId, wrapped: samplePlaintext() }, { context });
      return expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    };
    for (let version = 0; version < 64; version++) await unwrap(version);
    await unwrap(0);
    expect(made).toHaveLength(64);
    await unwrap(64);
    await unwrap(0);
    expect(made).toHaveLength(66);
  });

  test('the permissions of a reader are enough to unwrap, but not to wrap', async () => {
    const { vault, wrapper } = setup();
    const made = await wrapper().wrap(samplePlaintext(), { context });
    const reader = wrapper({ clients: sdkClients(vault, vault.issueToken(['unwrapKey'])) });
    expect(await reader.unwrap(made, { context })).toEqual(samplePlaintext());
    await expect(reader.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'denied' });
  });

  test('contract 1: bytes that the caller overwrites during a retry are wrapped as they were given', async () => {
    const { keyWrapper } = await setup().pinned();
    setup().vault.throttle({ times: 1 });
    const dataKey = samplePlaintext();
    const wrapping = keyWrapper.wrap(dataKey, { context });
    dataKey.fill(0);
    expect(await keyWrapper.unwrap(await wrapping, { context })).toEqual(samplePlaintext());
  });

  test.each([
    ['a data key of 31 bytes', (w: KeyWrapper) => w.wrap(samplePlaintext().subarray(33), { context }), RangeError],
    ['a data key of 63 bytes', (w: KeyWrapper) => w.wrap(samplePlaintext().subarray(1), { context }), RangeError],
    ['no options', (w: KeyWrapper) => w.wrap(samplePlaintext(), Object(undefined)), TypeError],
    ['a wrapped key that is text', (w: KeyWrapper) => w.unwrap(Object('blob'), { context }), TypeError],
    ['an entry that is text', (w: KeyWrapper) => signerOf(w).sign(Object('entry')), TypeError],
    ['sign options that are text', (w: KeyWrapper) => signerOf(w).sign(entry, JSON.parse('"x"')), TypeError],
    [
      'a sign signal that is not an AbortSignal',
      (w: KeyWrapper) => signerOf(w).sign(entry, { signal: Object({}) }),
      TypeError,
    ],
    ['a signature that is text', async (w: KeyWrapper) => w.verify?.(entry, Object('x')), TypeError],
  ])('contract 4: %s is rejected with a TypeError or RangeError, and no request is made', async (_, run, type) => {
    const { vault, signer } = setup();
    const call = run(signer());
    await expect(call).rejects.toThrow(type);
    await expect(call).rejects.toThrow(/^azure-key-vault: /);
    expect(vault.requests).toEqual([]);
  });

  test.each([false, true])(
    'adapter rule 5: the copy of the data key that was sent is overwritten (call denied: %s)',
    async (isDenied) => {
      const { clients, wrapper, vault, rsa } = setup();
      const sent: Uint8Array[] = [];
      const watched: AzureKeyVaultClients = {
        ...clients,
        cryptography: (key) => {
          const client = clients.cryptography(key);
          const wrapKey: typeof client.wrapKey = (algorithm, bytes, call) => {
            sent.push(bytes);
            return client.wrapKey(algorithm, bytes, call);
          };
          return Object.assign(Object.create(client), { wrapKey });
        },
      };
      if (isDenied) vault.deny();
      const keyWrapper = wrapper({ keyId: vault.idOf(rsa, rsa.current), clients: watched });
      await Promise.allSettled([keyWrapper.wrap(samplePlaintext(), { context })]);
      expect(sent).toEqual([new Uint8Array(64)]);
    },
  );
});

describe('adapter rule 6: the vault and key of a call', () => {
  test.each([
    ['another provider', () => ({ provider: 'gcp-kms' })],
    ['another key', (id: string) => ({ keyId: id.replace('wrapping', 'signing') })],
    ['another vault', (id: string) => ({ keyId: id.replace('127.0.0.1', 'evil.example') })],
    ['the same host at another port', (id: string) => ({ keyId: id.replace(/:\d+/, ':1') })],
    ['the key without a version', (id: string) => ({ keyId: id.replace(/\/[0-9a-f]{32}$/, '') })],
    ['a path behind the version', (id: string) => ({ keyId: `${id}/wrapkey` })],
    ['nothing', () => ({ keyId: '' })],
  ])('contract 3: a wrapped key that names %s is corrupt, and no request is made', async (_, change) => {
    const { vault, wrapper } = setup();
    const keyWrapper = wrapper();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    vault.requests.length = 0;
    const forged = { ...made, ...change(made.keyId) };
    await expect(keyWrapper.unwrap(forged, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(vault.requests).toEqual([]);
    expect(keyWrapper.owns(forged)).toBe(false);
    expect(keyWrapper.owns(made)).toBe(true);
  });

  test.each([0, 513])(
    'a wrapped key of %i bytes, a length that no key makes, is corrupt, and no request is made',
    async (length) => {
      const { vault, rsa, wrapper } = setup();
      const made = {
        provider: 'azure-key-vault',
        keyId: vault.idOf(rsa, rsa.current),
        wrapped: new Uint8Array(length),
      };
      await expect(wrapper().unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
      expect(vault.requests).toEqual([]);
    },
  );

  test('with a pinned version, another version of the same key is refused before any request', async () => {
    const { vault, rsa, wrapper } = setup();
    const { keyWrapper } = await setup().pinned();
    const old = rsa.current;
    rsa.rotate();
    const newer = await wrapper().wrap(samplePlaintext(), { context });
    vault.requests.length = 0;
    await expect(keyWrapper.unwrap(newer, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(vault.requests).toEqual([]);
    const moved = wrapper({ keyId: newer.keyId, alsoUnwrap: [vault.idOf(rsa, old)] });
    const before = await keyWrapper.wrap(samplePlaintext(), { context });
    expect(await moved.unwrap(before, { context })).toEqual(samplePlaintext());
  });

  test('a wrapped key relabelled to another version of the same key is corrupt', async () => {
    const { vault, rsa, wrapper } = setup();
    const keyWrapper = wrapper();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    const relabelled = { ...made, keyId: vault.idOf(rsa, rsa.rotate()) };
    await expect(keyWrapper.unwrap(relabelled, { context })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('with alsoUnwrap, a replaced key is used to unwrap, but never to wrap', async () => {
    const { vault, rsa, wrapper } = setup();
    const old = await wrapper().wrap(samplePlaintext(), { context });
    const newer: VaultKey = vault.createKey('wrapping-2');
    const keyWrapper = wrapper({ keyId: vault.idOf(newer), alsoUnwrap: [vault.idOf(rsa)] });
    vault.requests.length = 0;
    expect(await keyWrapper.unwrap(old, { context })).toEqual(samplePlaintext());
    expect(vault.requests).toMatchObject([{ operation: 'unwrapKey', name: 'wrapping' }]);
    expect((await keyWrapper.wrap(samplePlaintext(), { context })).keyId).toContain('/wrapping-2/');
  });

  test('lists are copied: later changes to the caller’s lists have no effect', async () => {
    const { vault, rsa, wrapper, signing } = setup();
    const made = await wrapper().wrap(samplePlaintext(), { context });
    const alsoUnwrap: string[] = [];
    const signPublicKeys = [publicHalf(vault.createKey('stranger', 'EC').current.publicKey)];
    const other = vault.createKey('another');
    const keyWrapper = wrapper({ keyId: vault.idOf(other), alsoUnwrap, signPublicKeys });
    alsoUnwrap.push(vault.idOf(rsa));
    signPublicKeys[0] = publicHalf(signing.current.publicKey);
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    const signature = (await setup().signer().sign?.(samplePlaintext())) ?? new Uint8Array();
    expect(keyWrapper.verify?.(samplePlaintext(), signature)).toBe(false);
  });

  test('names are not case-sensitive, and the request uses the configured spelling', async () => {
    const { vault, wrapper } = setup();
    const made = await wrapper().wrap(samplePlaintext(), { context });
    const shouting = { ...made, keyId: made.keyId.replace('wrapping', 'WRAPPING') };
    vault.requests.length = 0;
    expect(await wrapper().unwrap(shouting, { context })).toEqual(samplePlaintext());
    expect(vault.requests).toMatchObject([{ name: 'wrapping' }]);
  });
});
