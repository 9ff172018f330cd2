import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import type { SealringConfig } from '@sealring/cli';
import { type KeyWrapper, memoryRing } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { clientOf, realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { examine, findingOf, found, idsOf } from './findings.ts';

const configOf = (keyWrapper: KeyWrapper): SealringConfig => ({ ringName: 'payments', ring: memoryRing(), keyWrapper });

describe('the doctor, on Google Cloud KMS', async () => {
  const gcp = await startGcpKms();
  const client = realClient(gcp);
  afterEach(() => gcp.kms.heal());
  afterAll(async () => {
    await client.close();
    await gcp.stop();
  });
  const keyName = gcp.kms.createKey();
  gcp.kms.grant('member', ['cloudkms.cryptoKeyVersions.useToEncrypt', 'cloudkms.cryptoKeyVersions.useToDecrypt']);
  const wrapperFor = (caller: string, name = keyName): KeyWrapper =>
    gcpKmsKeyWrapper({ keyName: name, client: clientOf(caller, client), maxAttempts: 1 });

  test('finds nothing wrong with a key that may be used', async () => {
    const config = configOf(wrapperFor('member'));
    await found(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test.each([
    ['encrypt', 'cloudkms.cryptoKeyVersions.useToDecrypt', 'useToEncrypt'],
    ['decrypt', 'cloudkms.cryptoKeyVersions.useToEncrypt', 'useToDecrypt'],
  ])('without the right to %s', async (caller, granted, missing) => {
    gcp.kms.grant(caller, [granted]);
    const report = await examine(configOf(wrapperFor(caller)));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain(missing);
  });

  test('F10: a key version that is disabled', async () => {
    const other = gcp.kms.createKey('disabled');
    gcp.kms.disable(`${other}/cryptoKeyVersions/1`);
    const report = await examine(configOf(wrapperFor('member', other)));
    expect(report.healthy).toBe(false);
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/gcloud kms keys versions enable/);
  });

  test('a key that nobody has', async () => {
    const none = keyName.replace(/[^/]+$/, 'no-such-key');
    const report = await examine(configOf(wrapperFor('member', none)));
    expect(idsOf(report, 'error')).toEqual(['kms-not-found']);
    expect(findingOf(report, 'kms-not-found')?.remedy).toMatch(/project/);
  });

  test('F21: an SDK that was told to print what it sends', async () => {
    const config = configOf(wrapperFor('member'));
    const report = await examine(config, { GOOGLE_SDK_NODE_LOGGING: 'all' });
    expect(idsOf(report, 'error')).toEqual(['google-logging']);
    expect(findingOf(report, 'google-logging')?.remedy).toMatch(/Unset/);
  });
});

describe('the doctor, on Azure Key Vault', async () => {
  const vault = await FakeKeyVault.start();
  afterEach(() => vault.heal());
  afterAll(() => vault.stop());
  const rsa = vault.createKey('wrapping');
  const signing = vault.createKey('signing', 'EC');
  const [keyId, signKeyId] = [vault.idOf(rsa), vault.idOf(signing, signing.current)];
  const all = vault.issueToken();
  const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], clients: sdkClients(vault, all) });
  const wrapperFor = (token: string): KeyWrapper =>
    azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, clients: sdkClients(vault, token), maxAttempts: 1 });

  test('finds nothing wrong with keys that may be used', async () => {
    const config = configOf(wrapperFor(all));
    await found(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test.each([
    ['wrap', ['get', 'unwrapKey', 'sign'], 'wrap/action'],
    ['unwrap', ['get', 'wrapKey', 'sign'], 'unwrap/action'],
    ['sign', ['get', 'wrapKey', 'unwrapKey'], 'sign/action'],
  ] as const)('without the right to %s', async (_, rights, missing) => {
    const report = await examine(configOf(wrapperFor(vault.issueToken([...rights]))));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain(missing);
  });

  test('F35: a wrapper that signs nothing', async () => {
    const report = await examine(configOf(azureKeyVaultKeyWrapper({ keyId, clients: sdkClients(vault, all) })));
    expect(idsOf(report, 'error')).toEqual(['options']);
    expect(findingOf(report, 'options')?.what).toMatch(/sign/);
  });

  test('a signing key whose public half is not the pinned one', async () => {
    const other = vault.createKey('other', 'EC');
    const id = vault.idOf(other, other.current);
    const pinned = await fetchAzureSignPublicKeys({ signKeyIds: [id], clients: sdkClients(vault, all) });
    const clients = sdkClients(vault, all);
    const wrapper = azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys: pinned, clients, maxAttempts: 1 });
    const report = await examine(configOf(wrapper));
    expect(idsOf(report, 'error')).toEqual(['kms-signature']);
  });

  test('F10: a key that is disabled', async () => {
    rsa.set({ enabled: false });
    const report = await examine(configOf(wrapperFor(all)));
    rsa.set({ enabled: true });
    expect(idsOf(report, 'error')).toEqual(['kms-disabled']);
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/set-attributes --enabled true/);
  });
});
