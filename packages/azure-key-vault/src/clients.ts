import { CryptographyClient, KeyClient } from '@azure/keyvault-keys';
import { formatKeyId, type VaultKeyVersionId } from './key-id.ts';

/** Provides bearer tokens: a `TokenCredential` of `@azure/identity`, or any object with the same `getToken` method. */
export interface AzureCredential {
  /**
   * Resolves to a token for the scopes and its expiry time in milliseconds since the epoch, or to null if there is no
   * token.
   */
  getToken(
    scopes: string | string[],
    options?: object,
  ): Promise<{ readonly token: string; readonly expiresOnTimestamp: number } | null>;
}

/** Options of each call of a client. */
export interface AzureCallOptions {
  /** Ends the request. */
  readonly abortSignal: AbortSignal;
  /**
   * Called with each answer from the service, including refusals, before the SDK reads the answer. `response` has the
   * status, the headers and the parsed body.
   */
  readonly onResponse: (response: object) => void;
}

/** The part of `KeyClient` (`@azure/keyvault-keys`) that is used. The caller checks its results. */
export interface AzureKeyClient {
  /** Gets the public part of a key, in its current version unless one is named. */
  getKey(name: string, options: AzureCallOptions & { readonly version?: string }): Promise<unknown>;
}

/** The wrapping algorithm: RSA with 2048 bits or more, or 256-bit AES in a Managed HSM. */
export type AzureWrapAlgorithm = 'RSA-OAEP-256' | 'A256KW';

/** The part of `CryptographyClient` (`@azure/keyvault-keys`) that is used. */
export interface AzureCryptographyClient {
  /** Resolves to `{ result, keyID }`, where `result` is the wrapped bytes. */
  wrapKey(algorithm: AzureWrapAlgorithm, key: Uint8Array, options: AzureCallOptions): Promise<unknown>;
  /** Resolves to `{ result, keyID }`, where `result` is the unwrapped bytes; the wrapper overwrites their buffer. */
  unwrapKey(algorithm: AzureWrapAlgorithm, encryptedKey: Uint8Array, options: AzureCallOptions): Promise<unknown>;
  /** Signs 32 bytes; resolves to `{ result, keyID }`, where `result` is 64 bytes. */
  sign(algorithm: 'ES256', digest: Uint8Array, options: AzureCallOptions): Promise<unknown>;
}

/**
 * One version of a key, in a form for which a `CryptographyClient` makes no preliminary request and checks no dates
 * itself, because the vault decides what a key may do.
 */
export interface AzureKeyReference {
  /** The key's identifier, with its version. */
  readonly id: string;
  readonly name: string;
  readonly properties: { readonly vaultUrl: string; readonly name: string };
}

/**
 * Creates the SDK's clients. Implement it to set options of `KeyClient` and `CryptographyClient`, such as a proxy.
 *
 * Set `retryOptions: { maxRetries: 0 }` on both. Otherwise the SDK's retries multiply the wrapper's retries, outlast
 * the wrapper's deadline and hide the first refusal.
 */
export interface AzureKeyVaultClients {
  /** `(vaultUrl) => new KeyClient(vaultUrl, credential, options)` */
  keys(vaultUrl: string): AzureKeyClient;
  /** `(key) => new CryptographyClient(key, credential, options)` */
  cryptography(key: AzureKeyReference): AzureCryptographyClient;
}

/** Returns functions that create the SDK's clients, with one attempt per call. */
export function ownClients(
  credential: AzureCredential,
  disableChallengeResourceVerification: boolean,
): AzureKeyVaultClients {
  // Each client gets new options, because the SDK writes into the object that it receives.
  const options = () => ({ retryOptions: { maxRetries: 0 }, disableChallengeResourceVerification });
  return {
    keys: (vaultUrl) => new KeyClient(vaultUrl, credential, options()),
    cryptography: (key) => new CryptographyClient(key, credential, options()),
  };
}

/** Creates a client for one version of a key. */
export function cryptographyClient(clients: AzureKeyVaultClients, version: VaultKeyVersionId): AzureCryptographyClient {
  const { vaultUrl, name } = version;
  return clients.cryptography({ id: formatKeyId(version), name, properties: { vaultUrl, name } });
}
