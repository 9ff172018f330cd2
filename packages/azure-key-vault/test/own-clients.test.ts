import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { fixedCredential } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { FakeKeyVault } from '../../../test/support/azure-key-vault/fake-key-vault.ts';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '../src/index.ts';
import { startTunnel, type Tunnel } from './tunnel.ts';
import { context, samplePlaintext } from './vault-setup.ts';

const KEYS = 'https://payments.vault.azure.net/keys';
let vault: FakeKeyVault;
let tunnel: Tunnel;

// The SDK finds the fake by a vault's own name, through a proxy, and checks the challenge as it does for Azure's.
beforeAll(async () => {
  vault = await FakeKeyVault.start();
  tunnel = await startTunnel(vault.url);
  vi.stubEnv('HTTPS_PROXY', tunnel.url);
  for (const name of ['NO_PROXY', 'no_proxy']) vi.stubEnv(name, '127.0.0.1');
  setDefaultCACertificates([...getCACertificates('default'), vault.certificate]);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await vault.stop();
  await tunnel[Symbol.asyncDispose]();
});

describe('a key wrapper with only a credential', () => {
  test('uses the SDK’s clients to wrap, unwrap and sign with a vault under its own host name', async () => {
    const credential = fixedCredential(vault.issueToken());
    vault.createKey('ring-wrapping');
    const signKeyId = `${KEYS}/ring-signing/${vault.createKey('ring-signing', 'EC').current.id}`;
    const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], credential });
    const keyId = `${KEYS}/ring-wrapping`;
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, credential });
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    expect(made.keyId.startsWith(`${KEYS}/ring-wrapping/`)).toBe(true);
    expect(await keyWrapper.unwrap(made, { context })).toEqual(samplePlaintext());
    expect(await keyWrapper.sign?.(samplePlaintext())).toHaveLength(64);
    expect(new Set(tunnel.asked)).toEqual(new Set(['payments.vault.azure.net:443']));
  });

  test('adapter rule 3: the SDK’s own retries are off, so a refused call makes one request', async () => {
    const credential = fixedCredential(vault.issueToken());
    vault.createKey('ring-wrapping');
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId: `${KEYS}/ring-wrapping`, credential, maxAttempts: 1 });
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    vault.requests.length = 0;
    vault.throttle();
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'throttled' });
    await expect(
      azureKeyVaultKeyWrapper({ keyId: made.keyId, credential, maxAttempts: 1 }).wrap(samplePlaintext(), { context }),
    ).rejects.toMatchObject({ kind: 'throttled' });
    const looking = azureKeyVaultKeyWrapper({ keyId: `${KEYS}/ring-wrapping`, credential, maxAttempts: 1 });
    await expect(looking.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'throttled' });
    expect(vault.requests.map(({ operation }) => operation)).toEqual(['unwrapKey', 'wrapKey', 'get']);
    vault.heal();
  });

  test('reaches a vault under a different host name only with disableChallengeResourceVerification', async () => {
    const credential = fixedCredential(vault.issueToken());
    const options = { keyId: vault.idOf(vault.createKey('checked')), credential, maxAttempts: 1 };
    await expect(azureKeyVaultKeyWrapper(options).wrap(samplePlaintext(), { context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: {
        code: 'ERR_AZURE_CHALLENGE_RESOURCE',
        hint: expect.stringContaining('disableChallengeResourceVerification'),
      },
    });
    const keyWrapper = azureKeyVaultKeyWrapper({ ...options, disableChallengeResourceVerification: true });
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    expect(await keyWrapper.unwrap(made, { context })).toEqual(samplePlaintext());
  });
});
