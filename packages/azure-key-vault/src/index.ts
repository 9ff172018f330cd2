/**
 * Wraps data keys with Azure Key Vault or Managed HSM: {@link azureKeyVaultKeyWrapper}, and
 * {@link createAzureKeyVaultCodec} for a codec in one call.
 *
 * @packageDocumentation
 */

export type {
  AzureCallOptions,
  AzureCredential,
  AzureCryptographyClient,
  AzureKeyClient,
  AzureKeyReference,
  AzureKeyVaultClients,
  AzureWrapAlgorithm,
} from './clients.ts';
export { type AzureKeyVaultCodecOptions, createAzureKeyVaultCodec } from './create-codec.ts';
export { azureKeyVaultKeyWrapper } from './key-wrapper.ts';
export type { AzureKeyVaultAccess, AzureKeyVaultKeyWrapperOptions } from './options.ts';
export { type FetchAzureSignPublicKeysOptions, fetchAzureSignPublicKeys } from './sign-public-keys.ts';
export type { AzureSignPublicKey } from './signing.ts';
