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
