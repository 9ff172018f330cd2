import type { ServerResponse } from 'node:http';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
// @boundaries-ignore the servers that the tests share are not a package
import { type HttpStub, type SeenRequest, startHttpStub } from '../../../test/support/http-stub.ts';

/** A server whose answers the test sets. */
export interface Stub extends Omit<HttpStub, 'requests'> {
  /** Method and conditions of every request so far. */
  readonly requests: readonly string[];
}

/** Starts a server on a free loopback port. */
export async function startStub(answer: (request: SeenRequest, response: ServerResponse) => void): Promise<Stub> {
  const stub = await startHttpStub(answer);
  return {
    ...stub,
    get requests() {
      return stub.requests.map(kindOf);
    },
  };
}

function kindOf({ method, headers }: SeenRequest): string {
  return [method, headers['if-match'], headers['if-none-match']].filter(Boolean).join(' ');
}

/** Answers with an error in S3's form. */
export function sendError(response: ServerResponse, status: number, code: string, message = 'text'): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`,
  );
}

/** Answers with an object as S3 does. */
export function sendObject(
  response: ServerResponse,
  body: string | Buffer,
  headers: Record<string, string> = {},
): void {
  response.writeHead(200, { etag: '"e"', 'content-length': String(Buffer.byteLength(body)), ...headers });
  response.end(body);
}

/** The real SDK, at a local endpoint. */
export function clientOf(
  endpoint: string,
  accessKeyId = 'test',
  secretAccessKey = 'test',
  more: S3ClientConfig = {},
): S3Client {
  return new S3Client({
    endpoint,
    forcePathStyle: true,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
    ...more,
  });
}
