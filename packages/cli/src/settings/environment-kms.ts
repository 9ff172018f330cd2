import { readFileSync } from 'node:fs';
import { type KeyWrapper, localKeyWrapper } from '@sealring/core';
import { kmsFailuresOf } from '../foreign-error.ts';
import { UsageError } from '../usage-error.ts';
import { functionOf, loadPackage } from './adapter-packages.ts';
import { azureCredential } from './azure-credential.ts';
import { ConfigFailure } from './config-failure.ts';
import { type Environment, flag, optional, required } from './variables.ts';

/** The variable that names the KMS key, for each provider. Each variable that is set configures one key wrapper. */
export const KMS_VARIABLES = {
  aws: 'SEALRING_AWS_KMS_KEY_ID',
  gcp: 'SEALRING_GCP_KMS_KEY_ID',
  azure: 'SEALRING_AZURE_KEY_ID',
  vault: 'SEALRING_VAULT_KEY_ID',
  local: 'SEALRING_LOCAL_KEY_FILE',
} as const;

/** Longest wait for the public part of the signing key in Azure. */
const FETCH_MS = 15_000;

/** The key wrappers of the environment. */
export async function keyWrappersIn(environment: Environment): Promise<readonly KeyWrapper[]> {
  const made: KeyWrapper[] = [];
  for (const make of [awsKms, gcpKms, azureKeyVault, vaultTransit, local]) {
    const wrapper = await make(environment);
    if (wrapper !== undefined) made.push(wrapper);
  }
  return made;
}

async function awsKms(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = optional(environment, KMS_VARIABLES.aws);
  if (keyId === undefined) return undefined;
  const multiRegion = flag(environment, 'SEALRING_AWS_KMS_MULTI_REGION');
  return wrapperOf(KMS_VARIABLES.aws, '@sealring/aws-kms', 'awsKmsKeyWrapper', { keyId, multiRegion });
}

async function gcpKms(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = optional(environment, KMS_VARIABLES.gcp);
  if (keyId === undefined) return undefined;
  return wrapperOf(KMS_VARIABLES.gcp, '@sealring/gcp-kms', 'gcpKmsKeyWrapper', { keyId });
}

async function azureKeyVault(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = optional(environment, KMS_VARIABLES.azure);
  if (keyId === undefined) return undefined;
  const signKeyId = required(environment, 'SEALRING_AZURE_SIGN_KEY_ID');
  const owner = '@sealring/azure-key-vault';
  const credential = await azureCredential(KMS_VARIABLES.azure);
  const fetchKeys = functionOf(await loadPackage(owner, KMS_VARIABLES.azure), owner, 'fetchAzureSignPublicKeys');
  const signal = AbortSignal.timeout(FETCH_MS);
  let signPublicKeys: unknown;
  try {
    signPublicKeys = await fetchKeys({ signKeyIds: [signKeyId], credential, signal });
  } catch (error) {
    throw kmsFailuresOf(error).length > 0 ? new ConfigFailure('the environment', error, signKeyId) : error;
  }
  return wrapperOf(KMS_VARIABLES.azure, owner, 'azureKeyVaultKeyWrapper', {
    keyId,
    signKeyId,
    signPublicKeys,
    credential,
  });
}

/** The address, the token and the namespace come from the variables of Vault's own command line. */
async function vaultTransit(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = optional(environment, KMS_VARIABLES.vault);
  if (keyId === undefined) return undefined;
  const mount = optional(environment, 'SEALRING_VAULT_MOUNT');
  const namespace = optional(environment, 'VAULT_NAMESPACE');
  return wrapperOf(KMS_VARIABLES.vault, '@sealring/vault-transit', 'vaultTransitKeyWrapper', {
    address: required(environment, 'VAULT_ADDR'),
    token: required(environment, 'VAULT_TOKEN'),
    keyId,
    ...(mount !== undefined && { mount }),
    ...(namespace !== undefined && { namespace }),
  });
}

/** For development: a key in a file, such as the one that `init --local` writes. */
async function local(environment: Environment): Promise<KeyWrapper | undefined> {
  const file = optional(environment, KMS_VARIABLES.local);
  if (file === undefined) return undefined;
  let masterKey: string;
  try {
    masterKey = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new UsageError(`${KMS_VARIABLES.local}: cannot read "${file}" (${code})`);
  }
  return localKeyWrapper({ masterKey });
}

async function wrapperOf(variable: string, name: string, factory: string, options: object): Promise<KeyWrapper> {
  return functionOf(await loadPackage(name, variable), name, factory)(options) as KeyWrapper;
}
