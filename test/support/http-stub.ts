import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A request as it arrived. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Answers a request, or leaves it unanswered. */
export type Answerer = (request: SeenRequest, response: ServerResponse) => void;

/** An HTTP server whose answers the test chooses. */
export interface HttpStub {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  /** Every request so far. */
  readonly requests: readonly SeenRequest[];
  /** Resolves when the clients have closed their connections. */
  allClosed(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server on a free loopback port. `answer` gets the request with its body read. */
export async function startHttpStub(answer: Answerer): Promise<HttpStub> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    void receive(request).then((seen) => {
      requests.push(seen);
      answer(seen, response);
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

async function receive(request: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method = '', url = '', headers } = request;
  return { method, url, headers, body: Buffer.concat(chunks) };
}
