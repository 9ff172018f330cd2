import { randomUUID } from 'node:crypto';
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHandlerRequestOptions,
  type McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Mount } from './http-variant.ts';

/** The mounts on web-standard requests and responses: Hono, and everything else with `fetch(request)`. */
export class WebMounts {
  readonly #factory: McpServerFactory;
  readonly #both: ReturnType<typeof createMcpHandler>;
  readonly #modern: ReturnType<typeof createMcpHandler>;
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();

  constructor(factory: McpServerFactory) {
    this.#factory = factory;
    this.#both = createMcpHandler(factory);
    this.#modern = createMcpHandler(factory, { legacy: 'reject' });
  }

  async serve(mount: Mount, request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    if (mount === '/mcp') return await this.#both.fetch(request, options);
    if (mount === '/transport') return await this.#serveAlone(request, options);
    if (mount === '/session-transport') return await this.#serveSession(request, options);
    if (await isLegacyRequest(request, options.parsedBody)) return await this.#serveSession(request, options);
    return await this.#modern.fetch(request, options);
  }

  async close(): Promise<void> {
    await this.#both.close();
    await this.#modern.close();
    for (const transport of this.#sessions.values()) await transport.close();
  }

  async #serveAlone(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport();
    const server = await this.#factory({ era: 'legacy' });
    await server.connect(transport);
    return await transport.handleRequest(request, options);
  }

  async #serveSession(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    const transport = id === null ? await this.#newSession() : this.#sessions.get(id);
    return transport === undefined
      ? new Response(null, { status: 404 })
      : await transport.handleRequest(request, options);
  }

  async #newSession(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    const server = await this.#factory({ era: 'legacy' });
    await server.connect(transport);
    return transport;
  }
}
