import { CryptographyClient, KeyClient } from '@azure/keyvault-keys';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { credentials } from '@grpc/grpc-js';
import type { AzureKeyVaultClients } from '@sealring/azure-key-vault';

/** Cloud KMS without TLS and without credentials, at `http://HOST:PORT`. */
export function gcpEmulatorClient(endpoint: string): KeyManagementServiceClient {
  const { hostname, port } = new URL(endpoint);
  type Options = NonNullable<ConstructorParameters<typeof KeyManagementServiceClient>[0]>;
  return new KeyManagementServiceClient({
    apiEndpoint: hostname,
    port: Number(port),
    sslCreds: credentials.createInsecure(),
    // Without it the SDK looks for credentials around it; it asks nothing else of this object.
    auth: { getUniverseDomain: async () => 'googleapis.com' } as unknown as NonNullable<Options['auth']>,
  });
}

/** Made anew for each client: the SDK writes into what it is given. */
const options = () => ({ retryOptions: { maxRetries: 0 }, disableChallengeResourceVerification: true });

/** Key Vault at an address that is none of Azure's; its certificate is trusted by `NODE_EXTRA_CA_CERTS`. */
export function azureEmulatorClients(token: string): AzureKeyVaultClients {
  const credential = { getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3_600_000 }) };
  return {
    keys: (vaultUrl) => new KeyClient(vaultUrl, credential, options()),
    cryptography: (key) => new CryptographyClient(key, credential, options()),
  };
}
