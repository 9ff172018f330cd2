import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { afterAll, afterEach, beforeAll } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { publicHalf, sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { FakeKeyVault } from '../../../test/support/azure-key-vault/fake-key-vault.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import type { VaultKey } from '../../../test/support/azure-key-vault/vault-key.ts';
import {
  type AzureKeyVaultClients,
  type AzureKeyVaultKeyWrapperOptions,
  type AzureSignPublicKey,
  azureKeyVaultKeyWrapper,
} from '../src/index.ts';

export const context = { 'sealring:ring': 'test', 'sealring:purpose': 'data-key' };

/** The entry to sign. */
export const entry: Uint8Array = new TextEncoder().encode('{"ring":"test"}');

/** 64 bytes, as the ring passes them: a data key and the hash of its context. */
export function samplePlaintext(): Uint8Array {
  return Uint8Array.from({ length: 64 }, (_, i) => i + 1);
}

type Call = (keyWrapper: KeyWrapper, made: WrappedKey, options?: Partial<WrapOptions>) => Promise<unknown>;

/** Every call of a wrapper that signs, for invariants that hold for all of them. */
export const CALLS: readonly [string, Call][] = [
  ['wrap', (keyWrapper, _, options) => keyWrapper.wrap(samplePlaintext(), { context, ...options })],
  ['unwrap', (keyWrapper, made, options) => keyWrapper.unwrap(made, { context, ...options })],
  ['sign', async (keyWrapper, _, options) => keyWrapper.sign?.(entry, options)],
];

/** A vault for the tests of one file, reset after each of them. */
export interface VaultSetup {
  readonly vault: FakeKeyVault;
  readonly rsa: VaultKey;
  readonly hsm: VaultKey;
  readonly signing: VaultKey;
  /** A token with every permission. */
  readonly token: string;
  readonly clients: AzureKeyVaultClients;
  /** The current public half of `signing`. */
  readonly publicKey: () => AzureSignPublicKey;
  /** A wrapper that calls `rsa` and does not sign, unless the options change that. */
  readonly wrapper: (extra?: Partial<AzureKeyVaultKeyWrapperOptions>) => ReturnType<typeof azureKeyVaultKeyWrapper>;
  /** Operations and versions of the requests to the vault. */
  readonly asked: () => string[];
  /** A wrapper that signs and is pinned to the current version, so that a wrap is one request; and a wrap by it. */
  readonly pinned: (
    extra?: Partial<AzureKeyVaultKeyWrapperOptions>,
  ) => Promise<{ keyWrapper: KeyWrapper; made: WrappedKey }>;
  /** A wrapper that calls `rsa` and signs. */
  readonly signer: (extra?: Partial<AzureKeyVaultKeyWrapperOptions>) => ReturnType<typeof azureKeyVaultKeyWrapper>;
}

/** Starts a vault before the tests of this file; call `it()` inside of them. */
export function useVault(): () => VaultSetup {
  let setup: VaultSetup | undefined;
  const it = (): VaultSetup => {
    if (setup === undefined) throw new Error('the vault exists only during tests');
    return setup;
  };
  beforeAll(async () => {
    setup = setupOf(await FakeKeyVault.start());
  });
  afterEach(() => {
    const { vault, rsa, hsm, signing } = it();
    vault.heal();
    vault.requests.length = 0;
    for (const key of [rsa, hsm, signing]) {
      key.state = 'present';
      key.set({ enabled: true, notBefore: undefined, expires: undefined });
    }
  });
  afterAll(() => it().vault.stop());
  return it;
}

function setupOf(vault: FakeKeyVault): VaultSetup {
  const rsa = vault.createKey('wrapping');
  const hsm = vault.createKey('hsm-wrapping', 'oct-HSM');
  const signing = vault.createKey('signing', 'EC');
  const token = vault.issueToken();
  const clients = sdkClients(vault, token);
  const publicKey = (): AzureSignPublicKey => publicHalf(signing.current.publicKey);
  const wrapper: VaultSetup['wrapper'] = (extra = {}) =>
    azureKeyVaultKeyWrapper({ keyId: vault.idOf(rsa), clients, ...extra });
  const signer: VaultSetup['signer'] = (extra = {}) =>
    wrapper({ signKeyId: vault.idOf(signing, signing.current), signPublicKeys: [publicKey()], ...extra });
  const asked = (): string[] =>
    vault.requests.map(({ operation, version }) => `${operation} ${version === '' ? 'current' : version}`);
  const pinned: VaultSetup['pinned'] = async (extra = {}) => {
    const keyWrapper = signer({ keyId: vault.idOf(rsa, rsa.current), ...extra });
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    vault.requests.length = 0;
    return { keyWrapper, made };
  };
  return { vault, rsa, hsm, signing, token, clients, publicKey, wrapper, signer, asked, pinned };
}
