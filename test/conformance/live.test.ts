import { DefaultAzureCredential } from '@azure/identity';
import { CryptographyClient, KeyClient } from '@azure/keyvault-keys';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { type AzureKeyVaultClients, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import { KEY_WRAPPER_REQUIREMENTS, type KeyWrapperTarget, runKeyWrapperConformance } from '@sealring/conformance';
import { createKmsCodec, memoryRing } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/redis.ts';
import { awsTarget } from './key-wrappers/aws.ts';
import { azureTargetOf, calling } from './key-wrappers/azure.ts';
import { gcpTargetOf } from './key-wrappers/gcp.ts';
import { vaultTargetOf } from './key-wrappers/vault.ts';

/** Your own service, if the environment names its keys. */
interface Live {
  /** Set all of them, except the optional ones. */
  readonly variables: readonly string[];
  readonly optional?: readonly string[];
  readonly target: (values: readonly string[], optional: readonly (string | undefined)[]) => Promise<KeyWrapperTarget>;
}

const LIVE: Readonly<Record<string, Live>> = {
  'AWS KMS, with the AWS default chain': {
    variables: ['SEALRING_LIVE_AWS_KEY_ID', 'SEALRING_LIVE_AWS_OTHER_KEY_ID'],
    target: async ([own = '', other = '']) =>
      awsTarget('AWS KMS', [own, other], { closed: `https://127.0.0.1:${await freePort()}` }),
  },
  'Google Cloud KMS, with Application Default Credentials': {
    variables: ['SEALRING_LIVE_GCP_KEY_NAME', 'SEALRING_LIVE_GCP_OTHER_KEY_NAME'],
    async target([own = '', other = '']) {
      const port = await freePort();
      return gcpTargetOf(
        'Google Cloud KMS',
        [own, other],
        () => new KeyManagementServiceClient(),
        () => new KeyManagementServiceClient({ apiEndpoint: '127.0.0.1', port }),
      );
    },
  },
  'Azure Key Vault, with DefaultAzureCredential': {
    variables: ['SEALRING_LIVE_AZURE_KEY_ID', 'SEALRING_LIVE_AZURE_OTHER_KEY_ID'],
    optional: ['SEALRING_LIVE_AZURE_SIGN_KEY_ID'],
    async target([own = '', other = ''], [signKeyId]) {
      const credential = new DefaultAzureCredential();
      const options = () => ({ retryOptions: { maxRetries: 0 } });
      const clients: AzureKeyVaultClients = {
        keys: (vaultUrl) => new KeyClient(vaultUrl, credential, options()),
        cryptography: (key) => new CryptographyClient(key, credential, options()),
      };
      const access = { clients, callTimeoutSeconds: 30 };
      const kind =
        signKeyId === undefined
          ? ({ algorithm: 'A256KW' } as const)
          : { signKeyId, signPublicKeys: await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], ...access }) };
      const nowhere = calling(`https://127.0.0.1:${await freePort()}`, clients);
      // Slow on purpose: a credential may have to find out where it runs.
      return azureTargetOf('Azure Key Vault', [own, other], { ...kind, callTimeoutSeconds: 30 }, clients, nowhere);
    },
  },
  'a Vault or OpenBao, with a member’s token and the engine at transit': {
    variables: [
      'SEALRING_LIVE_VAULT_ADDR',
      'SEALRING_LIVE_VAULT_TOKEN',
      'SEALRING_LIVE_VAULT_KEY',
      'SEALRING_LIVE_VAULT_OTHER_KEY',
    ],
    target: ([address = '', token = '', own = '', other = '']) =>
      vaultTargetOf('Vault transit', [own, other], { address, token }),
  },
};

// If requested, they run without a skip, so that any obstacle on the way to the service is a failure.
describe.each(Object.entries(LIVE))('live: %s', (_, { variables, optional = [], target }) => {
  const values = variables.map((name) => process.env[name]);
  const more = optional.map((name) => process.env[name]);

  test(`either all of ${variables.join(', ')} are set or none`, () => {
    const isAsked = [...values, ...more].some((value) => value !== undefined);
    expect(values.map((value) => value !== undefined)).toEqual(variables.map(() => isAsked));
  });
  const known = values.filter((value) => value !== undefined);
  if (known.length < variables.length) return;

  let made: Promise<KeyWrapperTarget> | undefined;
  const theTarget = (): Promise<KeyWrapperTarget> => {
    made ??= target(known, more);
    return made;
  };

  test.each(KEY_WRAPPER_REQUIREMENTS)('$id: $text', async ({ id }) => {
    const { results } = await runKeyWrapperConformance(await theTarget(), { only: [id] });
    expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
  });

  test('a codec creates a ring, and another one unseals a token of the first', async () => {
    const instance = await (await theTarget()).create();
    const { keyWrapper } = instance;
    try {
      const ring = memoryRing();
      await using first = await createKmsCodec({ keyWrapper, ring, ringName: 'conformance' });
      await using second = await createKmsCodec({ keyWrapper, ring, ringName: 'conformance' });
      const payload = new TextEncoder().encode('state');
      expect(second.unseal(first.seal(payload))).toEqual(payload);
      expect(first.health().status).toBe('ok');
    } finally {
      await instance.close?.();
    }
  });
});
