import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamodbRing, dynamodbSingleUse } from '@sealring/dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createUser, enforcePolicies, startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';

// A separate moto server, because the whole server enforces the policies.
const moto = await startOrSkip(startMoto);
afterAll(() => moto?.stop());
const address = moto?.address ?? '';

function newClient(accessKeyId: string, secretAccessKey: string): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: address,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
}

const denied = { name: 'RingStoreError', kind: 'denied' };

describe.skipIf(moto === undefined)('DynamoDB with IAM policies', () => {
  const closing: (() => void)[] = [];
  const rings: Record<string, ReturnType<typeof dynamodbRing>> = {};
  const claims: Record<string, ReturnType<typeof dynamodbSingleUse>> = {};

  beforeAll(async () => {
    const admin = newClient('test', 'test');
    await admin.send(
      new CreateTableCommand({
        TableName: 'sealring',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    );
    admin.destroy();
    const users = {
      member: ['dynamodb:GetItem', 'dynamodb:PutItem'],
      reader: ['dynamodb:GetItem'],
      writer: ['dynamodb:PutItem'],
      stranger: [],
    };
    for (const [name, actions] of Object.entries(users)) {
      const { accessKeyId, secretAccessKey } = await createUser(address, name, actions);
      const client = newClient(accessKeyId, secretAccessKey);
      closing.push(() => client.destroy());
      rings[name] = dynamodbRing({ table: 'sealring', client });
      claims[name] = dynamodbSingleUse({ table: 'sealring', client });
    }
    await enforcePolicies(address);
  });
  afterAll(() => {
    for (const close of closing) close();
  });

  test('the policies in the README are sufficient for a member and for a reader, and do not let a reader write', async () => {
    const { member, reader } = rings;
    expect(await member?.read()).toBeUndefined();
    const first = await member?.write('x', { expected: undefined });
    await member?.write('y', { expected: first?.revision });
    const stored = await reader?.read();
    expect(stored?.document).toBe('y');
    await expect(reader?.write('z', { expected: stored?.revision })).rejects.toMatchObject(denied);
    await expect(reader?.write('z', { expected: undefined })).rejects.toMatchObject(denied);
    expect(await member?.read()).toEqual(stored);
  });

  test('a server without permission to read is denied, whether or not there is a ring (F9)', async () => {
    for (const name of ['writer', 'stranger']) await expect(rings[name]?.read()).rejects.toMatchObject(denied);
    await expect(rings['stranger']?.write('z', { expected: undefined })).rejects.toMatchObject(denied);
    await expect(rings['stranger']?.write('z', { expected: 'x' })).rejects.toMatchObject(denied);
  });

  test('the permission PutItem is sufficient and necessary for a claim', async () => {
    const expiresAt = new Date(Date.now() + 60_000);
    expect(await claims['writer']?.claim('id', expiresAt)).toBe(true);
    expect(await claims['writer']?.claim('id', expiresAt)).toBe(false);
    await expect(claims['reader']?.claim('other', expiresAt)).rejects.toMatchObject({
      name: 'SingleUseStoreError',
      kind: 'denied',
    });
    expect(await claims['writer']?.claim('other', expiresAt)).toBe(true);
  });

  test('a wrong secret is denied', async () => {
    const client = newClient('AKIAXXXXXXXXXXXXXXXX', 'wrong');
    await expect(dynamodbRing({ table: 'sealring', client }).read()).rejects.toMatchObject(denied);
    client.destroy();
  });
});
