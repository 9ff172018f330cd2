import {
  type AzureKeyVaultClients,
  type AzureKeyVaultKeyWrapperOptions,
  azureKeyVaultKeyWrapper,
} from '@sealring/azure-key-vault';
import type { KeyWrapperTarget } from '@sealring/conformance';
import { publicHalf, sdkClients } from '../../support/azure-key-vault/clients.ts';
import type { FakeKeyVault } from '../../support/azure-key-vault/fake-key-vault.ts';
import { freePort } from '../../support/redis.ts';

type Options = Omit<AzureKeyVaultKeyWrapperOptions, 'keyId' | 'credential' | 'clients'>;

/** Key types that wrap. */
export const AZURE_KEYS = ['RSA-OAEP-256, the current version', 'RSA-OAEP-256, one version', 'A256KW'] as const;

/** The same clients, except that they call `to`: a vault's address is a part of its keys' names. */
export function calling(to: string, clients: AzureKeyVaultClients): AzureKeyVaultClients {
  const move = (url: string): string => `${to}${new URL(url).pathname.replace(/^\/$/, '')}`;
  return {
    keys: (vaultUrl) => clients.keys(move(vaultUrl)),
    cryptography: ({ id, name, properties }) =>
      clients.cryptography({
        id: move(id),
        name,
        properties: { ...properties, vaultUrl: move(properties.vaultUrl) },
      }),
  };
}

/** Wrappers of two keys of one vault. */
export function azureTargetOf(
  name: string,
  [own, other]: readonly [string, string],
  options: Options,
  clients: AzureKeyVaultClients,
  unreachable: AzureKeyVaultClients,
): KeyWrapperTarget {
  const start = (keyId: string, used = clients) => ({
    keyWrapper: azureKeyVaultKeyWrapper({ keyId, clients: used, ...options }),
  });
  return {
    name,
    create: () => start(own),
    createOtherKey: () => start(other),
    createUnreachable: () => start(own, unreachable),
  };
}

/** The fake vault, through the vendor's clients. */
export async function azureTarget(form: (typeof AZURE_KEYS)[number], vault: FakeKeyVault): Promise<KeyWrapperTarget> {
  const type = form === 'A256KW' ? 'oct-HSM' : 'RSA';
  const [own, other] = [vault.createKey('own', type), vault.createKey('other', type)];
  const signing = vault.createKey('signing', 'EC');
  const clients = sdkClients(vault, vault.issueToken());
  const isPinned = form === 'RSA-OAEP-256, one version';
  const idOf = (key: typeof own): string => (isPinned ? vault.idOf(key, key.current) : vault.idOf(key));
  const signs: Options = {
    signKeyId: vault.idOf(signing, signing.current),
    signPublicKeys: [publicHalf(signing.current.publicKey)],
  };
  const target = azureTargetOf(
    `Azure Key Vault, ${form}`,
    [idOf(own), idOf(other)],
    type === 'RSA' ? signs : { algorithm: 'A256KW' },
    clients,
    calling(`https://127.0.0.1:${await freePort()}`, clients),
  );
  const control = {
    disable: () => own.set({ enabled: false }),
    enable: () => own.set({ enabled: true }),
    deny: () => vault.deny(),
    allow: () => vault.heal(),
    // A pinned version stays the same.
    ...(!isPinned && { rotate: () => void own.rotate() }),
  };
  return { ...target, control };
}
