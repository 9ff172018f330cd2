import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { RingStoreInstance } from '@sealring/conformance';
import { createKmsCodec, type KmsCodec, localKeyWrapper } from '@sealring/core';
import { s3Ring } from '@sealring/s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
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

  describe('a fleet on an s3 ring', () => {
    const closing: (() => Promise<void> | undefined)[] = [];
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close();
    });

    async function member(name: string): Promise<KmsCodec> {
      const opened = open(name);
      closing.push(async () => opened.close?.());
      const codec = await createKmsCodec({
        keyWrapper: localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') }),
        ring: opened.store,
        policy: { refreshEverySeconds: 0.5, createAfterSeconds: 20 },
      });
      closing.push(() => codec.close());
      return codec;
    }

    /** The ids of the keys in the object, parsed without this project's code. */
    async function storedKeyIds(name: string): Promise<string[]> {
      const { Body } = await admin.send(new GetObjectCommand({ Bucket: bucket, Key: `${name}/ring` }));
      const [body = ''] = ((await Body?.transformToString()) ?? '').split('\n');
      const { keys } = JSON.parse(body) as { keys: { id: string }[] };
      return keys.map((key) => key.id);
    }

    test('members create one ring, unseal what the other sealed, and repair it when the object is lost (F8, F31)', async () => {
      const state = new Uint8Array(Buffer.from('state'));
      const [a, b] = await Promise.all([member('fleet'), member('fleet')]);
      const ids = a.health().keys.map((key) => key.id);
      expect(ids).toHaveLength(1);
      expect(b.health().keys.map((key) => key.id)).toEqual(ids);
      const tokens = [a.seal(state), b.seal(state)];
      await remove('fleet');
      // It creates no ring, but waits for the members that know it.
      const late = await member('fleet');
      await until(() => late.health().ready);
      tokens.push(late.seal(state));
      for (const codec of [a, b, late]) for (const token of tokens) expect(codec.unseal(token)).toEqual(state);
      expect(late.health().keys.map((key) => key.id)).toEqual(ids);
      expect(await storedKeyIds('fleet')).toEqual(ids);
    });
  });
});
