import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { azureBlobRing } from '@sealring/azure-blob';
import {
  createKmsCodec,
  fileRing,
  InvalidRequestState,
  type KeyWrapper,
  localKeyWrapper,
  memoryRing,
  type RingStore,
} from '@sealring/core';
import { dynamodbRing } from '@sealring/dynamodb';
import { gcsRing } from '@sealring/gcs';
import { kubernetesRing } from '@sealring/kubernetes';
import { migrate, postgresRing } from '@sealring/postgres';
import { redisRing } from '@sealring/redis';
import { s3Ring } from '@sealring/s3';
import { Client } from 'pg';
// @boundaries-ignore the example is under test here
import { keyWrapperFor } from '../../../docs/examples/main-job/kms.ts';
// @boundaries-ignore the example is under test here
import type { KmsSettings } from '../../../docs/examples/main-job/messages.ts';

// A user's server, on each service in `SERVICES`: prints one line of JSON for each.

/** A service and its address; the names belong to this run alone. */
export type Service =
  | { readonly kind: 'kms'; readonly title: string; readonly settings: KmsSettings }
  | { readonly kind: 'file' }
  | { readonly kind: 's3'; readonly endpoint: string; readonly bucket: string; readonly key: string }
  | { readonly kind: 'dynamodb'; readonly endpoint: string; readonly table: string; readonly name: string }
  | { readonly kind: 'gcs'; readonly endpoint: string; readonly bucket: string; readonly object: string }
  | { readonly kind: 'azure-blob'; readonly url: string; readonly account: Account; readonly blob: string }
  | { readonly kind: 'kubernetes'; readonly server: string; readonly namespace: string; readonly name: string }
  | { readonly kind: 'redis'; readonly url: string; readonly key: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly name: string };

/** The name and the key of a storage account. */
interface Account {
  readonly name: string;
  readonly key: string;
}

/** The result; `error` if the server failed. */
export interface Outcome {
  readonly title: string;
  readonly error?: string;
}

const folder = await mkdtemp(join(tmpdir(), 'sealring-services-'));
const aws = { region: 'us-east-1', maxAttempts: 1, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
const masterKey = crypto.getRandomValues(new Uint8Array(32));

async function storeOf(service: Exclude<Service, { kind: 'kms' }>): Promise<RingStore> {
  switch (service.kind) {
    case 'file':
      return fileRing(join(folder, 'of-a-file.ring'));
    case 's3': {
      const { endpoint, bucket, key } = service;
      return s3Ring({ bucket, key, client: new S3Client({ ...aws, endpoint, forcePathStyle: true }) });
    }
    case 'dynamodb': {
      const { endpoint, table, name } = service;
      return dynamodbRing({ table, name, client: new DynamoDBClient({ ...aws, endpoint }) });
    }
    case 'gcs': {
      const { endpoint, bucket, object } = service;
      return gcsRing({ bucket, object, endpoint });
    }
    case 'azure-blob': {
      const { url, account, blob } = service;
      const credential = new StorageSharedKeyCredential(account.name, account.key);
      return azureBlobRing({ container: new ContainerClient(url, credential), blob });
    }
    case 'kubernetes': {
      const { server, namespace, name } = service;
      // Its SDK does not load on every version of Node.js that runs this.
      const { KubeConfig } = await import('@kubernetes/client-node');
      const client = new KubeConfig();
      client.loadFromOptions({
        clusters: [{ name: 'test', server, skipTLSVerify: true }],
        users: [{ name: 'test', token: 'admin' }],
        contexts: [{ name: 'test', cluster: 'test', user: 'test' }],
        currentContext: 'test',
      });
      return kubernetesRing({ namespace, name, client });
    }
    case 'redis':
      return redisRing({ url: service.url, key: service.key });
    case 'postgres': {
      const client = new Client({ connectionString: service.url });
      await client.connect();
      await migrate(client);
      await client.end();
      return postgresRing({ connectionString: service.url, name: service.name });
    }
  }
}

/** Two members of one ring: each unseals the other's tokens, before and after a rotation; both refuse a forgery. */
async function work(keyWrapper: () => Promise<KeyWrapper>, ring: () => Promise<RingStore>): Promise<void> {
  const member = async () =>
    createKmsCodec({ keyWrapper: await keyWrapper(), ring: await ring(), ringName: 'consumer', create: 'now' });
  const a = await member();
  const b = await member();
  try {
    const token = a.seal(new TextEncoder().encode('state'));
    await a.rotate();
    await b.refresh();
    if (b.health().keys.length !== 2) throw new Error(`the ring has ${b.health().keys.length} keys, not 2`);
    if (new TextDecoder().decode(b.unseal(token)) !== 'state') throw new Error('opened something else');
    const reason = reasonOf(() => b.unseal(`${token.slice(0, -4)}AAAA`));
    if (reason !== 'authentication failed') throw new Error(`a changed token: ${reason}`);
  } finally {
    await a.close();
    await b.close();
  }
}

/** Two members must not overwrite each other: a write with a revision that is not stored must conflict. */
async function contest(ring: RingStore): Promise<void> {
  const { revision } = (await ring.read()) ?? {};
  await ring.write('second', { expected: revision });
  for (const expected of [undefined, revision]) {
    const outcome = await ring.write('third', { expected }).then(
      () => 'written',
      (error: unknown) => (error instanceof Error ? error.name : String(error)),
    );
    if (outcome !== 'RingConflictError') throw new Error(`a write with a wrong revision: ${outcome}`);
  }
  const { document } = (await ring.read()) ?? {};
  if (document !== 'second') throw new Error('a write with a wrong revision changed the document');
}

function reasonOf(open: () => unknown): string {
  try {
    open();
    return 'was opened';
  } catch (error) {
    return error instanceof InvalidRequestState ? error.reason : String(error);
  }
}

async function tryOut(service: Service): Promise<Outcome> {
  const title = service.kind === 'kms' ? service.title : service.kind;
  try {
    if (service.kind === 'kms') {
      const ring = memoryRing();
      await work(
        () => keyWrapperFor(service.settings),
        async () => ring,
      );
    } else {
      await work(
        async () => localKeyWrapper({ masterKey }),
        () => storeOf(service),
      );
      const ring = await storeOf(service);
      await contest(ring);
      await ring.close?.();
    }
    return { title };
  } catch (error) {
    return { title, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
}

const services: readonly Service[] = JSON.parse(process.env['SERVICES'] ?? '[]');
for (const service of services) console.log(JSON.stringify(await tryOut(service)));
await rm(folder, { recursive: true });
// A vendor's client may keep a connection for a later call; this project's code does not.
process.exit(0);
