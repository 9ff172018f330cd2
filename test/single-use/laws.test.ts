import { describeSingleUse } from '@sealring/conformance';
import { dynamodbSingleUse } from '@sealring/dynamodb';
import { memorySingleUse } from '@sealring/mcp';
import { postgresSingleUse } from '@sealring/postgres';
import { redisSingleUse } from '@sealring/redis';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { dynamodbClient, engines, wayTo } from './engines.ts';

const memory = memorySingleUse();
describeSingleUse({ name: 'memorySingleUse', create: () => ({ store: memory }) }, { describe, test });

describe.each([
  ['redis', (url: string) => redisSingleUse({ url })],
  ['postgres', (connectionString: string) => postgresSingleUse({ connectionString })],
  ['dynamodb', (endpoint: string) => dynamodbSingleUse({ table: 'sealring', client: dynamodbClient(endpoint) })],
] as const)('the single-use store on %s', (name, make) => {
  const closing: (() => unknown)[] = [];
  let way: Awaited<ReturnType<typeof wayTo>>;
  beforeAll(async () => {
    way = await wayTo(await engines[name](closing), closing);
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  const create = () => ({ store: make(way.address) });
  const breakConnection = () => way.breakConnection();
  describeSingleUse({ name: `${name}SingleUse`, create, breakConnection }, { describe, test });
});
