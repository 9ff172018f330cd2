import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { RingStoreInstance } from '@sealring/conformance';
import { s3Ring } from '@sealring/s3';
import { afterAll, beforeAll, describe } from 'vitest';
import { startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

const moto = await startOrSkip(startMoto);
afterAll(() => moto?.stop());
const bucket = 'sealring-laws';

let network: TcpProxy | undefined;

function newClient(): S3Client {
  return new S3Client({
    endpoint: `http://127.0.0.1:${network?.port ?? 1}`,
    forcePathStyle: true,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
}

function open(name: string): RingStoreInstance {
  const client = newClient();
  const store = s3Ring({ bucket, key: `${name}/ring`, client });
  return {
    store,
    async close() {
      await store.close();
      client.destroy();
    },
  };
}

describe.skipIf(moto === undefined)('S3', () => {
  let admin: S3Client;
  beforeAll(async () => {
    network = await startTcpProxy(Number(new URL(moto?.address ?? '').port));
    admin = newClient();
    await admin.send(new CreateBucketCommand({ Bucket: bucket }));
  });
  afterAll(async () => {
    admin.destroy();
    await network?.close();
  });

  const remove = async (name: string): Promise<void> =>
    void (await admin.send(new DeleteObjectCommand({ Bucket: bucket, Key: `${name}/ring` })));

  describeOurRingStore({
    name: 's3',
    supports: { push: false, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name),
    remove,
    plant: async (name, document) =>
      void (await admin.send(
        new PutObjectCommand({ Bucket: bucket, Key: `${name}/ring`, Body: Buffer.from(document) }),
      )),
    async breakConnection() {
      network?.cut();
      return async () => network?.mend();
    },
  });

  const fleets = new Set<string>();
  describeFleet('s3', {
    hasPush: false,
    create(name) {
      fleets.add(name);
      return open(name);
    },
    async flush() {
      for (const name of fleets) await remove(name);
    },
    async document(name) {
      const { Body } = await admin.send(new GetObjectCommand({ Bucket: bucket, Key: `${name}/ring` }));
      return Body?.transformToString();
    },
  });
});
