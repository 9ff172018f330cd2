import { CryptographyClient, KeyClient } from '@azure/keyvault-keys';
import type { FakeKeyVault } from './fake-key-vault.ts';
import type { KeyVersion } from './vault-key.ts';

/** The source of a client's bearer token; the shape of `TokenCredential` of `@azure/core-auth`. */
export interface FixedCredential {
  getToken(): Promise<{ readonly token: string; readonly expiresOnTimestamp: number }>;
}

/** A credential that always returns the same token, valid for an hour. */
export function fixedCredential(token: string): FixedCredential {
  return { getToken: () => Promise.resolve({ token, expiresOnTimestamp: Date.now() + 3_600_000 }) };
}

/** The key of a cryptography client, in the form that the SDK accepts without a request to the vault. */
interface KeyReference {
  readonly id: string;
  readonly name: string;
  readonly properties: { readonly vaultUrl: string; readonly name: string };
}

/** The SDK's own clients for a token, trusting the fake's certificate. Its address is not below `vault.azure.net`. */
export function sdkClients(
  { certificate }: Pick<FakeKeyVault, 'certificate'>,
  access: string | FixedCredential,
): { keys(vaultUrl: string): KeyClient; cryptography(key: KeyReference): CryptographyClient } {
  const credential = typeof access === 'string' ? fixedCredential(access) : access;
  // A new object for each client, because the SDK writes into it.
  const options = () => ({
    retryOptions: { maxRetries: 0 },
    disableChallengeResourceVerification: true,
    tlsOptions: { ca: certificate },
  });
  return {
    keys: (vaultUrl) => new KeyClient(vaultUrl, credential, options()),
    cryptography: (key) => new CryptographyClient(key, credential, options()),
  };
}

/** A public key as `signPublicKeys` takes it. */
export function publicHalf(key: KeyVersion['publicKey']): { kty: string; crv: string; x: string; y: string } {
  const { kty = '', crv = '', x = '', y = '' } = key?.export({ format: 'jwk' }) ?? {};
  return { kty, crv, x, y };
}
