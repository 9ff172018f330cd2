import { fileRing, type RingStore } from '@sealring/core';
import type { AzuriteAccount } from '../support/azurite.ts';

/** The ring store of a member. `push: false` removes the notifications from a store that has them. */
export type RingPlace = { readonly push?: false } & (
  | { readonly file: string }
  | { readonly redis: string; readonly key: string }
  | { readonly postgres: string; readonly name: string }
  | { readonly s3: string; readonly bucket: string; readonly key: string }
  | { readonly dynamodb: string; readonly table: string; readonly name: string }
  | { readonly azurite: AzuriteAccount; readonly blob: string }
  | { readonly kubernetes: string; readonly name: string }
  | { readonly gcs: string; readonly bucket: string; readonly object: string }
);

/** The number of calls to a store. */
export interface StoreCalls {
  readonly reads: number;
  readonly writes: number;
}

/** A ring store that counts its calls. */
export interface CountedRing {
  readonly store: RingStore;
  readonly calls: StoreCalls;
}

/** Creates the store in the member's process. */
export async function ringAt(place: RingPlace): Promise<CountedRing> {
  const inner = await storeAt(place);
  const calls = { reads: 0, writes: 0 };
  const store: RingStore = {
    kind: inner.kind,
    read(options) {
      calls.reads += 1;
      return inner.read(options);
    },
    write(document, options) {
      calls.writes += 1;
      return inner.write(document, options);
    },
    ...(inner.watch === undefined || place.push === false
      ? {}
      : { watch: (changed: () => void) => inner.watch?.(changed) ?? (() => undefined) }),
    close: async () => inner.close?.(),
  };
  return { store, calls };
}

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

/** Options of a vendor's client for an emulator. */
function aws(endpoint: string) {
  return { endpoint, region: 'us-east-1', maxAttempts: 1, credentials };
}

/** Each service's client is loaded only by the members that need it: fifty processes start at once. */
async function storeAt(place: RingPlace): Promise<RingStore> {
  if ('file' in place) return fileRing(place.file);
  if ('redis' in place) {
    const { redisRing } = await import('@sealring/redis');
    return redisRing({ url: place.redis, key: place.key });
  }
  if ('postgres' in place) {
    const { postgresRing } = await import('@sealring/postgres');
    return postgresRing({ connectionString: place.postgres, name: place.name });
  }
  if ('s3' in place) {
    const [{ S3Client }, { s3Ring }] = await Promise.all([import('@aws-sdk/client-s3'), import('@sealring/s3')]);
    const client = new S3Client({ ...aws(place.s3), forcePathStyle: true });
    return s3Ring({ bucket: place.bucket, key: place.key, client });
  }
  if ('dynamodb' in place) {
    const [{ DynamoDBClient }, { dynamodbRing }] = await Promise.all([
      import('@aws-sdk/client-dynamodb'),
      import('@sealring/dynamodb'),
    ]);
    return dynamodbRing({ table: place.table, name: place.name, client: new DynamoDBClient(aws(place.dynamodb)) });
  }
  if ('azurite' in place) {
    const [{ azuriteClient }, { azureBlobRing }] = await Promise.all([
      import('../support/azurite.ts'),
      import('@sealring/azure-blob'),
    ]);
    return azureBlobRing({ container: azuriteClient(place.azurite), blob: place.blob });
  }
  if ('kubernetes' in place) {
    const [{ kubeConfig, NAMESPACE }, { kubernetesRing }] = await Promise.all([
      import('../support/kubernetes/api-server.ts'),
      import('@sealring/kubernetes'),
    ]);
    const client = kubeConfig({ server: place.kubernetes, skipTLSVerify: true }, 'admin');
    return kubernetesRing({ namespace: NAMESPACE, name: place.name, client });
  }
  const [{ Storage }, { PassThroughClient }, { gcsRing }] = await Promise.all([
    import('@google-cloud/storage'),
    import('google-auth-library'),
    import('@sealring/gcs'),
  ]);
  const client = new Storage({
    apiEndpoint: place.gcs,
    projectId: 'test',
    useAuthWithCustomEndpoint: true,
    authClient: new PassThroughClient(),
  });
  return gcsRing({ bucket: place.bucket, object: place.object, client });
}
