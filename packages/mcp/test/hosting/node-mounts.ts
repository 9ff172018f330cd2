import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { type AuthInfo, createMcpHandler, isLegacyRequest, type McpServerFactory } from '@modelcontextprotocol/server';
import type { HttpHost, Mount } from './http-variant.ts';

/** A request of node:http as the SDK's adapter accepts it; `auth` reaches handlers as `ctx.http.authInfo`. */
export type NodeRequest = IncomingMessage & { readonly method: string; readonly url: string; readonly auth?: AuthInfo };

/** The mounts on `(request, response, parsed body)`: node:http, Express and Fastify. */
export class NodeMounts {
  readonly #factory: McpServerFactory;
  readonly #handlers: readonly ReturnType<typeof createMcpHandler>[];
  readonly #both: ReturnType<typeof toNodeHandler>;
  readonly #modern: ReturnType<typeof toNodeHandler>;
  readonly #sessions = new Map<string, NodeStreamableHTTPServerTransport>();

  constructor(factory: McpServerFactory) {
    this.#factory = factory;
    const both = createMcpHandler(factory);
    const modern = createMcpHandler(factory, { legacy: 'reject' });
    this.#handlers = [both, modern];
    this.#both = toNodeHandler(both);
    this.#modern = toNodeHandler(modern);
  }

  async serve(mount: Mount, request: NodeRequest, response: ServerResponse, body?: unknown): Promise<void> {
    if (mount === '/mcp') return await this.#both(request, response, body);
    if (mount === '/transport') return await this.#serveAlone(request, response, body);
    if (mount === '/session-transport') return await this.#serveSession(request, response, body);
    const probe = await toWebRequest(request, body);
    // Without a parser in front, this has consumed the stream.
    const parsed: unknown = body ?? (request.method === 'POST' ? await probe.clone().json() : undefined);
    if (await isLegacyRequest(probe)) return await this.#serveSession(request, response, parsed);
    await this.#modern(request, response, parsed);
  }

  async close(): Promise<void> {
    for (const handler of this.#handlers) await handler.close();
    for (const transport of this.#sessions.values()) await transport.close();
  }

  async #serveAlone(request: NodeRequest, response: ServerResponse, body: unknown): Promise<void> {
    const transport = new NodeStreamableHTTPServerTransport();
    const server = await this.#factory({ era: 'legacy' });
    await server.connect(transport);
    await transport.handleRequest(request, response, body);
  }

  async #serveSession(request: NodeRequest, response: ServerResponse, body: unknown): Promise<void> {
    const id = request.headers['mcp-session-id'];
    const transport = typeof id === 'string' ? this.#sessions.get(id) : await this.#newSession();
    if (transport === undefined) response.writeHead(404).end();
    else await transport.handleRequest(request, response, body);
  }

  async #newSession(): Promise<NodeStreamableHTTPServerTransport> {
    const transport: NodeStreamableHTTPServerTransport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    const server = await this.#factory({ era: 'legacy' });
    await server.connect(transport);
    return transport;
  }
}

/** The remaining steps once a server of node:http listens. */
export function hostOf(http: Server, mounts: { close(): Promise<void> }): HttpHost {
  const address: AddressInfo | string | null = http.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      await mounts.close();
      http.closeAllConnections();
      await new Promise((closed) => http.close(closed));
    },
  };
}
