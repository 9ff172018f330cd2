import type { ServerResponse } from 'node:http';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
// @boundaries-ignore the servers that the tests share are not a package
import { type HttpStub, type SeenRequest, startHttpStub } from '../../../test/support/http-stub.ts';

/** A server whose answers the test sets. */
export interface Stub extends Omit<HttpStub, 'requests'> {
  /** The operation and the input of every request so far. */
  readonly requests: readonly (readonly [string, unknown])[];
}

/** Starts a server on a free loopback port. */
export async function startStub(answer: (request: SeenRequest, response: ServerResponse) => void): Promise<Stub> {
  const stub = await startHttpStub(answer);
  return {
    ...stub,
    get requests() {
      return stub.requests.map(callOf);
    },
  };
}

function callOf({ headers, body }: SeenRequest): readonly [string, unknown] {
  return [String(headers['x-amz-target']).split('.')[1] ?? '', JSON.parse(body.toString('utf8'))];
}

/** Answers with an error in DynamoDB's form. */
export function sendError(response: ServerResponse, status: number, name: string, message = 'text'): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' });
  response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message }));
}

/** The real SDK, at a local endpoint. */
export function clientOf(endpoint: string, accessKeyId = 'test', secretAccessKey = 'test'): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
}

/** Creates the table as in the README. */
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
