/**
 * A server on the official SDK whose tokens are redeemed once, in its own process. Its first argument is a
 * {@link ServerSettings} in JSON; it prints its port and ends with its standard input.
 */
import { createServer } from 'node:http';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type CallToolResult,
  createMcpHandler,
  type InputRequiredResult,
  inputRequired,
  McpServer,
} from '@modelcontextprotocol/server';
import { dynamodbSingleUse } from '@sealring/dynamodb';
import { createProtectedMcpServer, RequestStateSecurity, type SingleUseStore } from '@sealring/mcp';
import { postgresSingleUse } from '@sealring/postgres';
import { redisSingleUse } from '@sealring/redis';

export interface ServerSettings {
  /** 32 bytes or more, base64. */
  readonly key: string;
  readonly store: 'redis' | 'postgres' | 'dynamodb';
  /** The address of the engine. */
  readonly address: string;
  readonly ttlSeconds?: number;
  readonly futureSkewSeconds?: number;
  /** How far this machine's clock is ahead of the test's. */
  readonly aheadSeconds?: number;
}

const { aheadSeconds = 0, ...settings }: ServerSettings = JSON.parse(process.argv[2] ?? '');
const exactNow = Date.now;
Date.now = () => exactNow() + aheadSeconds * 1_000;

const stores: Readonly<Record<ServerSettings['store'], (address: string) => SingleUseStore>> = {
  redis: (url) => redisSingleUse({ url }),
  postgres: (connectionString) => postgresSingleUse({ connectionString }),
  dynamodb: (endpoint) => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const requestHandler = { socketAcquisitionWarningTimeout: 60_000 };
    const client = new DynamoDBClient({ endpoint, region: 'us-east-1', maxAttempts: 1, credentials, requestHandler });
    // The emulator serves one request at a time: the last of a thousand requests waits long.
    return dynamodbSingleUse({ table: 'sealring', client, callTimeoutSeconds: 60 });
  },
};

/** How often the tool ran with a state. */
let redeemed = 0;
const { key, store, address: engine, ...policy } = settings;
const security = new RequestStateSecurity({
  keys: [Buffer.from(key, 'base64')],
  singleUse: stores[store](engine),
  ...policy,
});
const mcp = createMcpHandler(() => {
  const server = createProtectedMcpServer({
    McpServer,
    serverInfo: { name: 'refund-desk', version: '1.0.0' },
    security,
  });
  server.registerTool('refund', {}, (ctx): CallToolResult | InputRequiredResult => {
    if (ctx.mcpReq.requestState() === undefined) return inputRequired({ requestState: 'asked' });
    redeemed += 1;
    return { content: [{ type: 'text', text: 'refunded' }] };
  });
  return server;
});
const handle = toNodeHandler(mcp);
const http = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const { method = 'GET', url = '/' } = request;
  if (url === '/redeemed') response.end(String(redeemed));
  else void handle(Object.assign(request, { method, url }), response);
});
http.listen(0, '127.0.0.1', () => {
  const address = http.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit());
