import type { KeyWrapper } from '@sealring/core';
import { cryptographyClient } from './clients.ts';
import { formatKeyId } from './key-id.ts';
import { type AzureKeyVaultKeyWrapperOptions, readOptions } from './options.ts';
import { EntrySigner, isSigned, readSignOptions } from './signing.ts';
import { PROVIDER, VaultCalls } from './vault-calls.ts';
import { DataKeyWrapping, SUPPORTS } from './wrapping.ts';

/**
 * Wraps data keys with a key of Azure Key Vault or Managed HSM: wrapKey and unwrapKey with RSA-OAEP-256 or A256KW. It
 * wraps 32 bytes, or 64 if the ring appends the hash of the context to the data key. The ring does so because neither
 * algorithm takes a context.
 *
 * A wrapped key records the exact version that made it, but never determines which vault or key is used: a wrapped key
 * that belongs to neither `keyId` nor `alsoUnwrap` is refused before any call. If `keyId` names no version, the wrapper
 * looks up the current version when it wraps a key, and remembers it for 300 seconds.
 *
 * **RSA wrapping does not authenticate its origin**: anyone who has the public key can wrap their own data key. With
 * RSA-OAEP-256 a ring therefore accepts this wrapper only with `signKeyId` and `signPublicKeys`; to read a ring,
 * `signPublicKeys` is enough.
 *
 * Its methods reject with {@link KeyWrapperError}, or with a `TypeError` or `RangeError` for wrong arguments. A call
 * ends within `maxAttempts` × `callTimeoutSeconds`, plus pauses of up to 0.1, 0.2, 0.4 … 2 seconds; wrapping makes two
 * such calls when it looks up a version.
 *
 * Source: Azure Key Vault REST API reference, version 2025-07-01; RFC 7518, sections 3.4, 4.3 and 4.4.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds, or options that contradict each other.
 *
 * @example
 * ```ts
 * import { DefaultAzureCredential } from '@azure/identity';
 * import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
 *
 * const credential = new DefaultAzureCredential();
 * const signKeyId = 'https://payments.vault.azure.net/keys/ring-signing/0123456789abcdef0123456789abcdef';
 * const keyWrapper = azureKeyVaultKeyWrapper({
 *   keyId: 'https://payments.vault.azure.net/keys/ring-wrapping',
 *   signKeyId,
 *   signPublicKeys: await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], credential }),
 *   credential,
 * });
 * ```
 */
export function azureKeyVaultKeyWrapper(
  options: AzureKeyVaultKeyWrapperOptions,
): KeyWrapper & Required<Pick<KeyWrapper, 'owns' | 'close'>> {
  const settings = readOptions(options);
  const { keyId, algorithm, clients, signKeyId, signPublicKeys } = settings;
  const calls = new VaultCalls(settings);
  const wrapping = new DataKeyWrapping(settings, calls);
  const signer =
    signKeyId === undefined || signPublicKeys === undefined
      ? undefined
      : new EntrySigner(signKeyId, cryptographyClient(clients, signKeyId), calls, signPublicKeys);

  // The object has only closures and public values, because inspect() would show the fields of a client, including its
  // credentials.
  return Object.freeze({
    provider: PROVIDER,
    keyId: formatKeyId(keyId),
    supports: Object.freeze({
      ...SUPPORTS,
      authenticated: algorithm === 'A256KW',
      keyVersions: keyId.version === undefined,
    }),
    owns: (wrapped) => wrapping.owns(wrapped),
    wrap: (dataKey, wrapOptions) => wrapping.wrap(dataKey, wrapOptions),
    unwrap: (wrapped, wrapOptions) => wrapping.unwrap(wrapped, wrapOptions),
    // This function is asynchronous itself, so that it also rejects, rather than throws, for wrong options.
    ...(signer !== undefined && {
      sign: async (entry, signOptions) => signer.sign(entry, readSignOptions(signOptions)),
    }),
    ...(signPublicKeys !== undefined && { verify: (entry, signature) => isSigned(entry, signature, signPublicKeys) }),
    close: async () => calls.close(),
  } satisfies KeyWrapper);
}
