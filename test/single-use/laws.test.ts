import { describeSingleUse } from '@sealring/conformance';
import { dynamodbSingleUse } from '@sealring/dynamodb';
import { memorySingleUse } from '@sealring/mcp';
import { postgresSingleUse } from '@sealring/postgres';
import { redisSingleUse } from '@sealring/redis';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { dynamodbClient, type Engine, engines } from './engines.ts';

const memory = memorySingleUse();
describeSingleUse({ name: 'memorySingleUse', create: () => ({ store: memory }) }, { describe, test });

describe.each([
  ['redis', (url: string) => redisSingleUse({ url })],
  ['postgres', (connectionString: string) => postgresSingleUse({ connectionString })],
  ['dynamodb', (endpoint: string) => dynamodbSingleUse({ table: 'sealring', client: dynamodbClient(endpoint) })],
] as const)('memorySingleUse and the stores on %s', (name, make) => {
  const closing: (() => unknown)[] = [];
  let engine: Engine;
  beforeAll(async () => {
    engine = await engines[name](closing);
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  const create = () => ({ store: make(engine.address) });
  const breakConnection = async () => {
    await engine.kill();
    return async () => void (await engine.start?.());
  };
  describeSingleUse({ name: `${name}SingleUse`, create, breakConnection }, { describe, test });
});
