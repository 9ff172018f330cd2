import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { startMoto } from '../support/moto.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { ServerSettings } from './server.ts';

export function dynamodbClient(endpoint: string): DynamoDBClient {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return new DynamoDBClient({ endpoint, region: 'us-east-1', maxAttempts: 1, credentials });
}

/** An engine that a test can stop. */
export interface Engine {
  readonly address: string;
  kill(): Promise<unknown>;
  start?(): Promise<unknown>;
}

/** Starts each engine, and adds the function that stops it to `closing`. */
export const engines: Readonly<Record<ServerSettings['store'], (closing: (() => unknown)[]) => Promise<Engine>>> = {
  redis: async (closing) => {
    const redis = await startRedis();
    closing.push(() => redis.stop());
    return { address: redis.address, kill: () => redis.kill(), start: () => redis.start() };
  },
  postgres: async (closing) => {
    const postgres = await startPostgres();
    closing.push(() => postgres.stop());
    const pool = new Pool({ connectionString: postgres.address });
    await migrate(pool);
    await pool.end();
    return { address: postgres.address, kill: () => postgres.kill(), start: () => postgres.start() };
  },
  dynamodb: async (closing) => {
    const moto = await startMoto();
    closing.push(() => moto.stop());
    const client = dynamodbClient(moto.address);
    const command = new CreateTableCommand({
      TableName: 'sealring',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      BillingMode: 'PAY_PER_REQUEST',
    });
    await client.send(command);
    client.destroy();
    return { address: moto.address, kill: () => moto.stop() };
  },
};

/** The connection to an engine, which can be cut and restored: a killed engine may forget. */
export async function wayTo(
  { address }: Engine,
  closing: (() => unknown)[],
): Promise<{ readonly address: string; breakConnection(): Promise<() => void> }> {
  const url = new URL(address);
  const network = await startTcpProxy(Number(url.port));
  closing.push(() => network.close());
  url.port = String(network.port);
  const breakConnection = async (): Promise<() => void> => {
    network.cut();
    return () => network.mend();
  };
  return { address: url.href, breakConnection };
}
