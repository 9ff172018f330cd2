import {
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { RingStoreInstance } from '@sealring/conformance';
import { dynamodbRing, dynamodbSingleUse } from '@sealring/dynamodb';
import type { SingleUseStore } from '@sealring/mcp';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { describeFleet } from './fleet-laws.ts';
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

  const fleets = new Set<string>();
  describeFleet('dynamodb', {
    hasPush: false,
    create(name) {
      fleets.add(name);
      return open(name);
    },
    async flush() {
      for (const name of fleets) await remove(name);
    },
    async document(name) {
      const { Item } = await admin.send(new GetItemCommand({ TableName: table, Key: keyOf(name) }));
      return Item?.['document']?.S;
    },
  });

  test('the single-use store works with the boundary', () => {
    expectTypeOf(dynamodbSingleUse).returns.toExtend<SingleUseStore>();
    expect(moto).toBeDefined();
  });
});
