import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { type AzureKeyVaultAccess, azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import { type KeyWrapper, localKeyWrapper } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import type { KmsSettings } from './messages.ts';

/** The few lines that differ between a laptop and production. The ring itself repeats calls: one attempt is enough. */
export async function keyWrapperFor(kms: KmsSettings): Promise<KeyWrapper> {
  const maxAttempts = 1;
  switch (kms.kind) {
    case 'local':
      return localKeyWrapper({ masterKey: Buffer.from(kms.masterKey, 'base64url') });
    case 'aws':
      return awsKmsKeyWrapper({ keyId: kms.keyId, maxAttempts });
    case 'gcp': {
      const { keyId, endpoint } = kms;
      return gcpKmsKeyWrapper({ keyId, maxAttempts, ...(endpoint && { endpoint }) });
    }
    case 'azure': {
      const { keyId, signKeyId } = kms;
      const access = await azureAccess();
      const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], ...access });
      return azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, maxAttempts, ...access });
    }
    case 'vault': {
      const { address, keyId } = kms;
      return vaultTransitKeyWrapper({ address, keyId, maxAttempts, token: process.env['VAULT_TOKEN'] ?? '' });
    }
  }
}

async function azureAccess(): Promise<AzureKeyVaultAccess> {
  const emulatorToken = process.env['AZURE_EMULATOR_TOKEN'];
  if (emulatorToken !== undefined) {
    const getToken = async () => ({ token: emulatorToken, expiresOnTimestamp: Date.now() + 3_600_000 });
    // The host name of an emulator is not under vault.azure.net; its certificate is trusted by NODE_EXTRA_CA_CERTS.
    return { credential: { getToken }, disableChallengeResourceVerification: true };
  }
  const { DefaultAzureCredential } = await import('@azure/identity');
  return { credential: new DefaultAzureCredential() };
}

/** A key wrapper that counts the calls of another one. */
export function counted(keyWrapper: KeyWrapper): {
  readonly keyWrapper: KeyWrapper;
  readonly calls: { generate: number; wrap: number; unwrap: number };
} {
  const calls = { generate: 0, wrap: 0, unwrap: 0 };
  const { provider, keyId, supports } = keyWrapper;
  const generate = keyWrapper.generate?.bind(keyWrapper);
  const sign = keyWrapper.sign?.bind(keyWrapper);
  const verify = keyWrapper.verify?.bind(keyWrapper);
  return {
    calls,
    keyWrapper: {
      provider,
      keyId,
      supports,
      async wrap(dataKey, options) {
        calls.wrap += 1;
        return keyWrapper.wrap(dataKey, options);
      },
      async unwrap(wrapped, options) {
        calls.unwrap += 1;
        return keyWrapper.unwrap(wrapped, options);
      },
      ...(generate && {
        async generate(options) {
          calls.generate += 1;
          return generate(options);
        },
      }),
      ...(sign && { sign }),
      ...(verify && { verify }),
      owns: (wrapped) => keyWrapper.owns?.(wrapped) ?? wrapped.provider === provider,
      close: async () => keyWrapper.close?.(),
    },
  };
}

/** The AWS SDK reads the endpoint of an emulator, and credentials for it, from the environment. */
export function environmentFor(endpoint: string | undefined): NodeJS.ProcessEnv {
  if (endpoint === undefined) return process.env;
  return {
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'emulator',
    AWS_SECRET_ACCESS_KEY: 'emulator',
    ...process.env,
    AWS_ENDPOINT_URL_KMS: endpoint,
  };
}
