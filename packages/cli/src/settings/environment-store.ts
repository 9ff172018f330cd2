import { fileURLToPath } from 'node:url';
import { fileRing, type RingStore } from '@sealring/core';
import { UsageError } from '../usage-error.ts';
import { functionOf, loadPackage } from './adapter-packages.ts';
import { azureCredential } from './azure-credential.ts';
import { type Environment, optional, required } from './variables.ts';

/** Names the ring store: either its kind, which requires the variables of that kind, or a URL. */
export const STORE_VARIABLE = 'SEALRING_RING_STORE';

/** One kind of ring store: its environment variables, and how to create it from them. */
interface StoreKind {
  /** Its URL form, for messages. */
  readonly url: string;
  /** The variables that a URL replaces. The URL is never repeated in a message, because it can contain a password. */
  variablesIn(url: URL): Environment;
  make(environment: Environment): Promise<RingStore>;
}

const KINDS: Readonly<Record<string, StoreKind>> = {
  s3: {
    url: 's3://BUCKET/KEY',
    variablesIn: (url) => ({ SEALRING_S3_BUCKET: url.host, SEALRING_S3_KEY: pathOf(url) }),
    make: (environment) => {
      const expectedBucketOwner = optional(environment, 'SEALRING_S3_BUCKET_OWNER');
      return made('@sealring/s3', 's3Ring', {
        bucket: required(environment, 'SEALRING_S3_BUCKET'),
        key: required(environment, 'SEALRING_S3_KEY'),
        ...(expectedBucketOwner !== undefined && { expectedBucketOwner }),
      });
    },
  },
  dynamodb: {
    url: 'dynamodb://TABLE',
    variablesIn: (url) => ({ SEALRING_DYNAMODB_TABLE: url.host }),
    make: (environment) =>
      made('@sealring/dynamodb', 'dynamodbRing', {
        table: required(environment, 'SEALRING_DYNAMODB_TABLE'),
        name: required(environment, 'SEALRING_RING_NAME'),
      }),
  },
  gcs: {
    url: 'gs://BUCKET/OBJECT',
    variablesIn: (url) => ({ SEALRING_GCS_BUCKET: url.host, SEALRING_GCS_OBJECT: pathOf(url) }),
    make: (environment) =>
      made('@sealring/gcs', 'gcsRing', {
        bucket: required(environment, 'SEALRING_GCS_BUCKET'),
        object: required(environment, 'SEALRING_GCS_OBJECT'),
      }),
  },
  'azure-blob': {
    url: 'https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB',
    variablesIn: (url) => {
      const [container = '', ...blob] = pathOf(url).split('/');
      return { SEALRING_AZURE_BLOB_CONTAINER: `${url.origin}/${container}`, SEALRING_AZURE_BLOB: blob.join('/') };
    },
    make: async (environment) =>
      made('@sealring/azure-blob', 'azureBlobRing', {
        container: required(environment, 'SEALRING_AZURE_BLOB_CONTAINER'),
        blob: required(environment, 'SEALRING_AZURE_BLOB'),
        credential: await azureCredential(`${STORE_VARIABLE} "azure-blob"`),
      }),
  },
  kubernetes: {
    url: 'kubernetes://NAMESPACE/NAME',
    variablesIn: (url) => ({ SEALRING_KUBERNETES_NAMESPACE: url.host, SEALRING_KUBERNETES_NAME: pathOf(url) }),
    make: (environment) => {
      const kind = optional(environment, 'SEALRING_KUBERNETES_KIND');
      return made('@sealring/kubernetes', 'kubernetesRing', {
        namespace: required(environment, 'SEALRING_KUBERNETES_NAMESPACE'),
        name: required(environment, 'SEALRING_KUBERNETES_NAME'),
        ...(kind !== undefined && { kind }),
      });
    },
  },
  redis: {
    url: 'redis://HOST:PORT',
    variablesIn: ({ href }) => ({ SEALRING_REDIS_URL: href }),
    make: (environment) => {
      const key = optional(environment, 'SEALRING_REDIS_KEY');
      const url = required(environment, 'SEALRING_REDIS_URL');
      return made('@sealring/redis', 'redisRing', { url, ...(key !== undefined && { key }) });
    },
  },
  postgres: {
    url: 'postgres://HOST/DATABASE',
    variablesIn: ({ href }) => ({ SEALRING_POSTGRES_URL: href }),
    make: (environment) => {
      const table = optional(environment, 'SEALRING_POSTGRES_TABLE');
      const name = optional(environment, 'SEALRING_POSTGRES_NAME');
      return made('@sealring/postgres', 'postgresRing', {
        connectionString: required(environment, 'SEALRING_POSTGRES_URL'),
        ...(table !== undefined && { table }),
        ...(name !== undefined && { name }),
      });
    },
  },
  file: {
    url: 'file:///PATH',
    variablesIn: (url) => {
      if (url.host !== '') throw new UsageError(`${STORE_VARIABLE} must be file:///PATH, with three slashes`);
      return { SEALRING_RING_FILE: fileURLToPath(url) };
    },
    make: async (environment) => fileRing(required(environment, 'SEALRING_RING_FILE')),
  },
};

const SCHEMES: Readonly<Record<string, string>> = {
  's3:': 's3',
  'dynamodb:': 'dynamodb',
  'gs:': 'gcs',
  'https:': 'azure-blob',
  'kubernetes:': 'kubernetes',
  'redis:': 'redis',
  'rediss:': 'redis',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'file:': 'file',
};

/** The ring store of the environment. @throws {UsageError} that names the variable. */
export async function storeIn(environment: Environment): Promise<RingStore> {
  const text = required(environment, STORE_VARIABLE);
  if (Object.hasOwn(KINDS, text)) return (KINDS[text] as StoreKind).make(environment);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const kind = url === undefined ? undefined : KINDS[SCHEMES[url.protocol] ?? ''];
  if (url === undefined || kind === undefined) {
    const urls = Object.values(KINDS).map((one) => one.url);
    // Text with :// or @ can contain a password.
    const shown = text.includes('://') ? 'another URL' : text.includes('@') ? 'other text' : `"${text.slice(0, 40)}"`;
    throw new UsageError(
      `${STORE_VARIABLE} must be ${Object.keys(KINDS).join(', ')}, or a URL: ${urls.join(', ')}; got ${shown}. ` +
        'Any other store needs a sealring.config.mjs',
    );
  }
  const variables = variablesOf(kind, url);
  if (Object.values(variables).includes('')) throw new UsageError(`${STORE_VARIABLE} must be ${kind.url}`);
  return kind.make({ ...environment, ...variables });
}

/** The variables that a URL replaces. The decoders of Node.js throw for a URL that they cannot decode. */
function variablesOf(kind: StoreKind, url: URL): Environment {
  try {
    return kind.variablesIn(url);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${STORE_VARIABLE} must be ${kind.url}, with valid percent-encoding`);
  }
}

async function made(name: string, factory: string, options: object): Promise<RingStore> {
  return functionOf(await loadPackage(name, STORE_VARIABLE), name, factory)(options) as RingStore;
}

function pathOf(url: URL): string {
  return decodeURIComponent(url.pathname.slice(1));
}
