import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** A server that answers as a test says. */
export interface Stub {
  readonly endpoint: string;
  /** The operation and the input of every request so far. */
  readonly requests: readonly (readonly [string, unknown])[];
  /** Resolves when the clients have closed their connections. */
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server on a free loopback port. */
export async function startStub(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Stub> {
  const requests: (readonly [string, unknown])[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const target = String(request.headers['x-amz-target']).split('.')[1] ?? '';
      requests.push([target, JSON.parse(body)]);
      answer(request, response);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    // A client that gives up resets the connection.
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async allClosed() {
      while (sockets.size > 0) await pause(5);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers with an error as DynamoDB spells it. */
export function sendError(response: ServerResponse, status: number, name: string, message = 'text'): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' });
  response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message }));
}

/** The real SDK, at an endpoint of ours. */
export function clientOf(endpoint: string, accessKeyId = 'test', secretAccessKey = 'test'): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
}

/** Makes the table as the README says. */
export async function createTable(client: DynamoDBClient, TableName: string): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    }),
  );
}
