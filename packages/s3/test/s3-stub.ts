import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { S3Client } from '@aws-sdk/client-s3';

/** A server that answers as a test says. */
export interface Stub {
  readonly endpoint: string;
  /** Method and conditions of every request so far. */
  readonly requests: readonly string[];
  /** Resolves when the clients have closed their connections. */
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server on a free loopback port. `answer` gets the request with its body read. */
export async function startStub(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Stub> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const { 'if-match': match, 'if-none-match': noneMatch } = request.headers;
    requests.push([request.method, match, noneMatch].filter(Boolean).join(' '));
    request.resume().on('end', () => answer(request, response));
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

/** Answers with an error as S3 spells it. */
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

/** The real SDK, at an endpoint of ours. */
export function clientOf(endpoint: string, accessKeyId = 'test', secretAccessKey = 'test'): S3Client {
  return new S3Client({
    endpoint,
    forcePathStyle: true,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
  });
}
