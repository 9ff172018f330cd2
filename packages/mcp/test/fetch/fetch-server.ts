import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import {
  type FetchHandler,
  type ProtectFetchOptions,
  protectFetch,
  type RejectEvent,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from '../../src/index.ts';
import { CONFIRM, MODERN, modern, signedIn } from '../support/served.ts';

export const codec = new AesGcmRequestStateCodec(['a key of thirty-two bytes or more, for tests']);

/** An unprotected handler of the SDK: tool, prompt and resource of two rounds, in plaintext. */
export function plainHandler(mode: 'json' | 'sse', seen: unknown[] = []): FetchHandler {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'plain', version: '1.0.0' });
      const round = (ctx: ServerContext, about: string) => {
        const state = ctx.mcpReq.requestState<string>();
        seen.push({ state, answers: ctx.mcpReq.inputResponses });
        return state ?? inputRequired({ inputRequests: { confirm: CONFIRM }, requestState: `asked:${about}` });
      };
      const inputSchema = fromJsonSchema<{ order: string }>({
        type: 'object',
        properties: { order: { type: 'string' } },
      });
      for (const name of ['refund', 'cancel']) {
        server.registerTool(name, { inputSchema }, ({ order }, ctx) => {
          const outcome = round(ctx, order);
          return typeof outcome === 'string' ? { content: [{ type: 'text', text: outcome }] } : outcome;
        });
      }
      server.registerPrompt('terms', {}, (ctx) => {
        const outcome = round(ctx, 'terms');
        if (typeof outcome !== 'string') return outcome;
        return { messages: [{ role: 'user', content: { type: 'text', text: outcome } }] };
      });
      server.registerResource('note', new ResourceTemplate('note:{id}', { list: undefined }), {}, (uri, _, ctx) => {
        const outcome = round(ctx, uri.href);
        return typeof outcome === 'string' ? { contents: [{ uri: uri.href, text: outcome }] } : outcome;
      });
      return server;
    },
    // The SDK answers with JSON until a handler notifies.
    { responseMode: mode === 'json' ? 'auto' : mode },
  );
  return (request) => handler.fetch(request);
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly events: RejectEvent[];
  readonly errors: string[];
  /** Sends one message, and returns the answer with its bytes. */
  post(message: unknown, options?: PostOptions): Promise<{ readonly status: number; readonly text: string }>;
  /** Sends one request of 2026-07-28, and returns its message. */
  ask(params: Record<string, unknown>, options?: PostOptions): Promise<Record<string, unknown>>;
}

interface PostOptions {
  readonly user?: string | undefined;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** Sent in place of the message's JSON. */
  readonly raw?: string | Uint8Array<ArrayBuffer> | ReadableStream;
  readonly signal?: AbortSignal;
}

/** The user in `Authorization: Bearer NAME`, as a verifier returns it. */
const bindPrincipal = async (request: Request) => {
  const user = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1];
  return user === undefined ? null : signedIn(user);
};

/** A protected handler, also on a socket of the loopback interface. */
export async function serveProtected(
  handler: FetchHandler,
  policy: Partial<RequestStateSecurityOptions> = {},
  options: ProtectFetchOptions = {},
): Promise<Served> {
  const events: RejectEvent[] = [];
  const errors: string[] = [];
  const security = new RequestStateSecurity({ codec, onReject: (event) => void events.push(event), ...Object(policy) });
  const guarded = protectFetch(handler, security, {
    audience: 'desk',
    bindPrincipal,
    onerror: ({ message }) => void errors.push(message),
    ...options,
  });
  const served = await serveFetch(guarded);
  const post: Served['post'] = async (message, { user = 'ada', method = 'tools/call', headers, raw, signal } = {}) => {
    const params: unknown = Reflect.get(Object(message), 'params');
    const name = [Reflect.get(Object(params), 'name'), Reflect.get(Object(params), 'uri')].find(
      (one) => typeof one === 'string',
    );
    // In process, unless the client leaves; clients of `served.url` show the effect of a socket.
    const send = signal === undefined ? guarded : fetch;
    const request = new Request(served.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        'mcp-name': name ?? '',
        ...(user === '' ? {} : { authorization: `Bearer ${user}` }),
        ...headers,
      },
      body: raw ?? JSON.stringify(message),
      signal: signal ?? null,
      ...(raw instanceof ReadableStream ? { duplex: 'half' } : {}),
    });
    const response = await send(request);
    return { status: response.status, text: await response.text() };
  };
  return {
    ...served,
    events,
    errors,
    post,
    async ask(params, asked = {}) {
      const message = { jsonrpc: '2.0', id: 1, method: asked.method ?? 'tools/call', params: modern(params) };
      const { text } = await post(message, asked);
      const data = /^data: (.*)$/m.exec(text)?.[1];
      return JSON.parse(data ?? text);
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

/** A web-standard handler on a socket of the loopback interface. */
export async function serveFetch(
  handler: (request: Request) => Response | Promise<Response>,
): Promise<AsyncDisposable & { readonly url: string }> {
  const { address, close } = await new Promise<{ address: AddressInfo; close: () => Promise<void> }>((listening) => {
    const server = serve({ fetch: handler, port: 0, hostname: '127.0.0.1' }, (info) =>
      listening({
        address: info,
        close: async () => {
          if ('closeAllConnections' in server) server.closeAllConnections();
          await new Promise((closed) => server.close(closed));
        },
      }),
    );
  });
  return { url: `http://127.0.0.1:${address.port}/mcp`, [Symbol.asyncDispose]: close };
}

/** The official client, which answers yes to every question and repeats the call by itself. */
export async function clientOf(url: string, user = 'ada'): Promise<Client> {
  const client = new Client(
    { name: 'client', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: MODERN } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: { token: async () => user } }));
  return client;
}
