import type { KeyWrapper, RingStore } from '@sealring/core';
import { Failure } from '../failure.ts';
import { kmsFailuresOf, lineOf, refusedOptionIn } from '../foreign-error.ts';
import { UsageError } from '../usage-error.ts';
import { functionOf, loadPackage } from './adapter-packages.ts';
import { closeConfig, type SealringConfig, type Settings } from './settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that the Terraform modules name in their output `environment`. */
const KEYS = {
  aws: 'SEALRING_AWS_KMS_KEY_ID',
  gcp: 'SEALRING_GCP_KMS_KEY_NAME',
  azure: 'SEALRING_AZURE_KEY_ID',
} as const;
const STORES: readonly string[] = ['s3', 'dynamodb', 'gcs', 'azure-blob'];

/** Whether the environment says anything of a ring. */
export function isInEnvironment(environment: Environment): boolean {
  return ['SEALRING_RING_STORE', ...Object.values(KEYS)].some((name) => isSet(environment[name]));
}

/** Makes ring store and key wrappers of the `SEALRING_*` variables. @throws {UsageError} naming the variable. */
export async function loadEnvironment(environment: Environment): Promise<Settings> {
  const made: { keyWrapper: KeyWrapper[]; ring?: RingStore } = { keyWrapper: [] };
  try {
    for (const make of [awsKms, gcpKms, azureKeyVault]) {
      const wrapper = await make(environment);
      if (wrapper !== undefined) made.keyWrapper.push(wrapper);
    }
    if (made.keyWrapper.length === 0) {
      throw new UsageError(`no KMS key is named: set one of ${Object.values(KEYS).join(', ')}`);
    }
    made.ring = await ringOf(environment);
  } catch (error) {
    await closeConfig(made);
    throw refusal(error);
  }
  const config: SealringConfig = {
    ring: made.ring,
    keyWrapper: made.keyWrapper,
    ringName: setting(environment, 'SEALRING_RING_NAME'),
  };
  return { config, origin: 'the environment', close: () => closeConfig(config) };
}

async function awsKms(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = environment[KEYS.aws];
  if (!isSet(keyId)) return undefined;
  const module = await loadPackage('@sealring/aws-kms', KEYS.aws);
  const multiRegion = flag(environment, 'SEALRING_AWS_KMS_MULTI_REGION');
  return functionOf(module, '@sealring/aws-kms', 'awsKmsKeyWrapper')({ keyId, multiRegion }) as KeyWrapper;
}

async function gcpKms(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = environment[KEYS.gcp];
  if (!isSet(keyId)) return undefined;
  const module = await loadPackage('@sealring/gcp-kms', KEYS.gcp);
  return functionOf(module, '@sealring/gcp-kms', 'gcpKmsKeyWrapper')({ keyId }) as KeyWrapper;
}

async function azureKeyVault(environment: Environment): Promise<KeyWrapper | undefined> {
  const keyId = environment[KEYS.azure];
  if (!isSet(keyId)) return undefined;
  const signKeyId = setting(environment, 'SEALRING_AZURE_SIGN_KEY_ID');
  const module = await loadPackage('@sealring/azure-key-vault', KEYS.azure);
  const credential = await azureCredential(KEYS.azure);
  const fetchKeys = functionOf(module, '@sealring/azure-key-vault', 'fetchAzureSignPublicKeys');
  const signPublicKeys = await fetchKeys({ signKeyIds: [signKeyId], credential });
  const make = functionOf(module, '@sealring/azure-key-vault', 'azureKeyVaultKeyWrapper');
  return make({ keyId, signKeyId, signPublicKeys, credential }) as KeyWrapper;
}

async function ringOf(environment: Environment): Promise<RingStore> {
  const kind = setting(environment, 'SEALRING_RING_STORE');
  const make = async (name: string, factory: string, options: object): Promise<RingStore> =>
    functionOf(await loadPackage(name, `SEALRING_RING_STORE "${kind}"`), name, factory)(options) as RingStore;
  switch (kind) {
    case 's3': {
      const expectedBucketOwner = environment['SEALRING_S3_BUCKET_OWNER'];
      return make('@sealring/s3', 's3Ring', {
        bucket: setting(environment, 'SEALRING_S3_BUCKET'),
        key: setting(environment, 'SEALRING_S3_KEY'),
        ...(isSet(expectedBucketOwner) && { expectedBucketOwner }),
      });
    }
    case 'dynamodb':
      return make('@sealring/dynamodb', 'dynamodbRing', {
        table: setting(environment, 'SEALRING_DYNAMODB_TABLE'),
        name: setting(environment, 'SEALRING_RING_NAME'),
      });
    case 'gcs':
      return make('@sealring/gcs', 'gcsRing', {
        bucket: setting(environment, 'SEALRING_GCS_BUCKET'),
        object: setting(environment, 'SEALRING_GCS_OBJECT'),
      });
    case 'azure-blob':
      return make('@sealring/azure-blob', 'azureBlobRing', {
        container: setting(environment, 'SEALRING_AZURE_BLOB_CONTAINER'),
        blob: setting(environment, 'SEALRING_AZURE_BLOB'),
        credential: await azureCredential('SEALRING_RING_STORE "azure-blob"'),
      });
    default:
      throw new UsageError(
        `SEALRING_RING_STORE "${kind}" must be one of ${STORES.join(', ')}; another store goes into a sealring.config.mjs`,
      );
  }
}

async function azureCredential(why: string): Promise<unknown> {
  const module = await loadPackage('@azure/identity', why);
  const { DefaultAzureCredential } = module as { readonly DefaultAzureCredential?: new () => unknown };
  if (DefaultAzureCredential === undefined)
    throw new UsageError(`${why}: @azure/identity has no DefaultAzureCredential`);
  return new DefaultAzureCredential();
}

function setting(environment: Environment, name: string): string {
  const value = environment[name];
  if (!isSet(value)) throw new UsageError(`${name} is not set`);
  return value;
}

function flag(environment: Environment, name: string): boolean {
  const value = environment[name];
  if (!isSet(value)) return false;
  if (value !== 'true' && value !== 'false') throw new UsageError(`${name} "${value}" must be true or false`);
  return value === 'true';
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

/** An adapter refuses an option by name and value: that is the variable's fault. A service that refuses is not. */
function refusal(error: unknown): unknown {
  const failures = kmsFailuresOf(error);
  if (failures.length > 0) {
    const isDenied = failures.some(({ kind }) => kind === 'denied');
    const remedy = isDenied ? 'grant keys/read on that key to members and readers' : 'check network and credentials';
    return new Failure(`reading the public half of SEALRING_AZURE_SIGN_KEY_ID: ${lineOf(error)}; ${remedy}`);
  }
  const refused = refusedOptionIn(error);
  return refused === undefined ? error : new UsageError(`the SEALRING_* environment: ${refused}`);
}
