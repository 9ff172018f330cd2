import {
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { RingStoreInstance } from '@sealring/conformance';
import { createKmsCodec, type KmsCodec, localKeyWrapper } from '@sealring/core';
import { dynamodbRing, dynamodbSingleUse } from '@sealring/dynamodb';
import type { SingleUseStore } from '@sealring/mcp';
import { afterAll, afterEach, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { describeOurRingStore } from './our-ring-store.ts';

const moto = await startOrSkip(startMoto);
afterAll(() => moto?.stop());
const table = 'sealring-laws';
const keyOf = (name: string) => ({ pk: { S: `ring#${name}` } });

let network: TcpProxy | undefined;

function newClient(): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: `http://127.0.0.1:${network?.port ?? 1}`,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
}

function open(name: string): RingStoreInstance {
  const client = newClient();
  const store = dynamodbRing({ table, name, client });
  return {
    store,
    async close() {
      await store.close();
      client.destroy();
    },
  };
}

describe.skipIf(moto === undefined)('DynamoDB', () => {
  let admin: DynamoDBClient;
  beforeAll(async () => {
    network = await startTcpProxy(Number(new URL(moto?.address ?? '').port));
    admin = newClient();
    await admin.send(
      new CreateTableCommand({
        TableName: table,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    );
  });
  afterAll(async () => {
    admin.destroy();
    await network?.close();
  });

  const remove = async (name: string): Promise<void> =>
    void (await admin.send(new DeleteItemCommand({ TableName: table, Key: keyOf(name) })));

  describeOurRingStore({
    name: 'dynamodb',
    supports: { push: false, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name),
    remove,
    plant: async (name, document) =>
      void (await admin.send(
        new PutItemCommand({
          TableName: table,
          Item: { ...keyOf(name), document: { S: document }, revision: { S: 'planted' } },
        }),
      )),
    async breakConnection() {
      network?.cut();
      return async () => network?.mend();
    },
  });

  describe('a fleet on a dynamodb ring', () => {
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

    /** The ids of the keys in the item, parsed without this project's code. */
    async function storedKeyIds(name: string): Promise<string[]> {
      const { Item } = await admin.send(new GetItemCommand({ TableName: table, Key: keyOf(name) }));
      const [body = ''] = (Item?.['document']?.S ?? '').split('\n');
      const { keys } = JSON.parse(body) as { keys: { id: string }[] };
      return keys.map((key) => key.id);
    }

    test('members create one ring, unseal what the other sealed, and repair it when the item is lost (F8, F31)', async () => {
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

  test('the single-use store works with the boundary', () => {
    expectTypeOf(dynamodbSingleUse).returns.toExtend<SingleUseStore>();
    expect(moto).toBeDefined();
  });
});
