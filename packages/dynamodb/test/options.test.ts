import { inspect } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { dynamodbRing, dynamodbSingleUse } from '../src/index.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const table = 'sealring';
const credentials = { accessKeyId: 'AKCANARY', secretAccessKey: 'canary-secret' };
const STORES = [
  ['dynamodbRing', dynamodbRing],
  ['dynamodbSingleUse', dynamodbSingleUse],
] as const;

describe.each(STORES)('options of %s', (owner, create) => {
  test.each([
    ['nothing', undefined, 'options'],
    ['an unknown option', { table, region: 'eu-west-1' }, 'region'],
    ['no table', {}, 'table'],
    ['a table that is not a string', { table: 7 }, 'table'],
    ['a client without send', { table, client: {} }, 'client must be a DynamoDBClient'],
    ['a client of null', { table, client: null }, 'client'],
    ['callTimeoutSeconds as text', { table, callTimeoutSeconds: '5' }, 'callTimeoutSeconds'],
  ])('%s causes a TypeError that names the function and the option', (_, options, name) => {
    expect(() => Reflect.apply(create, undefined, [options])).toThrow(TypeError);
    expect(() => Reflect.apply(create, undefined, [options])).toThrow(new RegExp(`^${owner}: .*${name}`));
  });

  test.each([
    ["table must be a table's name or ARN", { table: '' }],
    ['table', { table: 'ab' }],
    ['table', { table: 'a/b/c' }],
    ['table', { table: 'arn:aws:dynamodb:eu-west-1:111122223333:table/sealring/index/x' }],
    ['table', { table: 'arn:aws:s3:eu-west-1:111122223333:table/sealring' }],
    ['table', { table: 'x arn:aws:dynamodb:eu-west-1:111122223333:table/sealring' }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: 61 }],
  ])('a %s that DynamoDB or the bounds do not allow causes a RangeError that names it: %j', (name, options) => {
    expect(() => create(options)).toThrow(RangeError);
    expect(() => create(options)).toThrow(name);
  });

  test('inspect shows no part of the client (F21)', () => {
    const store = create({ table, client: new DynamoDBClient({ region: 'eu-west-1', maxAttempts: 1, credentials }) });
    expect(inspect(store, { depth: Infinity, showHidden: true })).not.toMatch(/canary|accessKey/i);
    expect(Object.isFrozen(store)).toBe(true);
  });

  test.each([
    [table, 'us-east-7'],
    ['arn:aws-cn:dynamodb:eu-west-1:111122223333:table/sealring', 'eu-west-1'],
  ])(
    'a store of %s with its own client is created and closed without a region or credentials, and does not retry',
    async (name, region) => {
      vi.stubEnv('AWS_REGION', 'us-east-7');
      const send = vi.spyOn(DynamoDBClient.prototype, 'send').mockImplementation(() => {
        throw new Error('sent');
      });
      const destroy = vi.spyOn(DynamoDBClient.prototype, 'destroy');
      const store = create({ table: name, callTimeoutSeconds: 1 });
      const call = 'claim' in store ? store.claim('x', new Date()) : store.read();
      await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
      await expect(store.close()).resolves.toBeUndefined();
      const [{ config } = expect.unreachable()] = send.mock.contexts as DynamoDBClient[];
      expect(await config.maxAttempts()).toBe(1);
      expect(await config.region()).toBe(region);
      expect(destroy).toHaveBeenCalledOnce();
    },
  );

  test('the caller’s client is not closed', async () => {
    let destroyed = false;
    const client = { send: async () => undefined, destroy: () => void (destroyed = true) };
    await create({ table, client }).close();
    expect(destroyed).toBe(false);
  });
});

test.each([
  ['a number', 7, TypeError],
  ['empty', '', RangeError],
  ['spelled with a #', 'a#b', RangeError],
  ['of 65 characters', 'x'.repeat(65), RangeError],
])('a ring name that is %s is rejected', (_, name, error) => {
  expect(() => Reflect.apply(dynamodbRing, undefined, [{ table, name }])).toThrow(error);
});

const capacity = { ConsumedCapacity: {} };
/** Answers calls in sequence, and records the requests. */
function answering(...answers: unknown[]) {
  const asked: object[] = [];
  const send = async ({ input }: { readonly input: object }): Promise<unknown> => {
    asked.push(input);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { asked, options: { table, client: { send } } };
}
const refused = (name: string) => Object.assign(new Error('text'), { name });

test('a ring names its location, and rejects a wrong argument before any call (F17)', async () => {
  const { asked, options } = answering();
  const ring = dynamodbRing({ ...options, name: 'payments' });
  expect(ring).toMatchObject({ kind: 'dynamodb', location: 'dynamodb table sealring, item ring#payments' });
  const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
  for (const wrong of [call('read', { key: 'k' }), call('write', 7, { expected: undefined })]) {
    await expect(wrong).rejects.toBeInstanceOf(TypeError);
    await expect(wrong).rejects.toThrow(/^dynamodbRing: /);
  }
  expect(asked).toEqual([]);
});

test('a document of exactly the maximum size is read, and an answer without ConsumedCapacity counts as unavailable', async () => {
  const Item = { document: { S: 'x'.repeat(262_144) }, revision: { S: 'r' } };
  const { options } = answering({ ...capacity, Item }, { Item }, { ConsumedCapacity: null, Item }, undefined);
  const ring = dynamodbRing(options);
  expect(await ring.read()).toEqual({ document: Item.document.S, revision: 'r' });
  for (let i = 0; i < 3; i++) await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable' });
});

test('a write makes one PutItem on the condition that the expected revision is stored', async () => {
  const { asked, options } = answering(capacity, capacity, capacity);
  const ring = dynamodbRing(options);
  const { revision } = await ring.write('x', { expected: undefined });
  await ring.write('x', { expected: 'r' });
  await ring.write('x', { expected: 'foreign' });
  const ExpressionAttributeNames = { '#revision': 'revision' };
  expect(asked).toEqual([
    {
      ReturnConsumedCapacity: 'TOTAL',
      TableName: table,
      Item: { pk: { S: 'ring#default' }, document: { S: 'x' }, revision: { S: revision } },
      ConditionExpression: 'attribute_not_exists(pk)',
    },
    expect.objectContaining({
      ConditionExpression: '#revision = :expected',
      ExpressionAttributeNames,
      ExpressionAttributeValues: { ':expected': { S: 'r' } },
    }),
    expect.objectContaining({
      ConditionExpression:
        'attribute_exists(pk) AND (NOT attribute_type(#revision, :string) OR #revision IN (:expected, :empty))',
      ExpressionAttributeNames,
      ExpressionAttributeValues: { ':expected': { S: 'foreign' }, ':string': { S: 'S' }, ':empty': { S: '' } },
    }),
  ]);
});

test('a claim before its end plus the clock skew makes one PutItem, and resolves to false only on a conflict (F48)', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_795_000_000_500 });
  const { asked, options } = answering(
    capacity,
    refused('ConditionalCheckFailedException'),
    refused('TransactionConflictException'),
    refused('AccessDeniedException'),
  );
  const store = dynamodbSingleUse({ ...options, clockSkewSeconds: 10 });
  expect(store.clockSkewSeconds).toBe(10);
  const claim = (leftMs: number) => store.claim('x', new Date(Date.now() - 10_000 + leftMs));
  expect(await claim(0)).toBe(false);
  expect(asked).toEqual([]);
  expect(await claim(501)).toBe(true);
  expect(asked).toEqual([
    {
      ReturnConsumedCapacity: 'TOTAL',
      TableName: table,
      Item: { pk: { S: 'used#x' }, expires: { N: '1795000002' } },
      ConditionExpression: 'attribute_not_exists(pk) OR #expires < :now',
      ExpressionAttributeNames: { '#expires': 'expires' },
      ExpressionAttributeValues: { ':now': { N: '1795000000' } },
    },
  ]);
  expect(await claim(1)).toBe(false);
  await expect(claim(1)).rejects.toMatchObject({ name: 'SingleUseStoreError', kind: 'unavailable' });
  await expect(claim(1)).rejects.toMatchObject({ kind: 'denied', serviceCode: 'AccessDeniedException' });
  await expect(store.claim('', new Date())).rejects.toThrow(/^dynamodbSingleUse: id/);
});
