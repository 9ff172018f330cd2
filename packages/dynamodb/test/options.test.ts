import { inspect } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from 'vitest';
import { dynamodbRing, dynamodbSingleUse } from '../src/index.ts';

const table = 'sealring';
const credentials = { accessKeyId: 'AKCANARY', secretAccessKey: 'canary-secret' };
const STORES = [
  ['dynamodbRing', dynamodbRing],
  ['dynamodbSingleUse', dynamodbSingleUse],
] as const;

describe.each(STORES)('options of %s', (owner, create) => {
  test.each([
    ['nothing', undefined],
    ['an unknown option', { table, region: 'eu-west-1' }],
    ['no table', {}],
    ['a table that is not a string', { table: 7 }],
    ['a client without send', { table, client: {} }],
    ['a client of null', { table, client: null }],
    ['callTimeoutSeconds as text', { table, callTimeoutSeconds: '5' }],
  ])('%s is a TypeError that names the function', (_, options) => {
    expect(() => Reflect.apply(create, undefined, [options])).toThrow(TypeError);
    expect(() => Reflect.apply(create, undefined, [options])).toThrow(owner);
  });

  test.each([
    ['table', { table: '' }],
    ['table', { table: 'ab' }],
    ['table', { table: 'a/b/c' }],
    ['table', { table: 'arn:aws:dynamodb:eu-west-1:111122223333:table/sealring/index/x' }],
    ['table', { table: 'arn:aws:s3:eu-west-1:111122223333:table/sealring' }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { table, callTimeoutSeconds: 61 }],
  ])('a %s that DynamoDB or the bounds do not allow is a RangeError that names it: %j', (name, options) => {
    expect(() => create(options)).toThrow(RangeError);
    expect(() => create(options)).toThrow(name);
  });

  test('inspect shows nothing of the client (F21)', () => {
    const store = create({ table, client: new DynamoDBClient({ region: 'eu-west-1', maxAttempts: 1, credentials }) });
    expect(inspect(store, { depth: Infinity, showHidden: true })).not.toMatch(/canary|accessKey/i);
    expect(Object.isFrozen(store)).toBe(true);
  });

  test.each([table, 'arn:aws:dynamodb:eu-west-1:111122223333:table/sealring'])(
    'a store of %s with its own client is created and closed without a region or credentials',
    async (name) => {
      await expect(create({ table: name }).close()).resolves.toBeUndefined();
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
  ['with a #', 'a#b', RangeError],
  ['of 65 characters', 'x'.repeat(65), RangeError],
])('a ring name that is %s is rejected', (_, name, error) => {
  expect(() => Reflect.apply(dynamodbRing, undefined, [{ table, name }])).toThrow(error);
});
