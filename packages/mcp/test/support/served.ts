import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type AuthInfo,
  type CallToolResult,
  createMcpHandler,
  fromJsonSchema,
  InMemoryTransport,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type McpServerFactory,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

export const MODERN = '2026-07-28';

/** A JSON-RPC answer as it was on the wire. */
export interface Answer {
  readonly id: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export const REFUSED = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
};
export const NOT_SEALED = { code: -32603, message: 'Internal error' };

/** A signed-in user of the OAuth client `web`. */
export function signedIn(sub: unknown): AuthInfo {
  return {
    token: `access-token-of-${String(sub)}`,
    clientId: 'web',
    scopes: [],
    extra: { iss: 'https://idp.example', sub },
  };
}

/** The parameters of a 2026-07-28 request by a client that can do everything. */
export function modern(params: Record<string, unknown>): Record<string, unknown> {
  return {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, sampling: {}, roots: {} },
    },
  };
}

export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  /** Sends one 2026-07-28 request and returns the answer: in process, or with a signal over the socket. */
  call(method: string, params: Record<string, unknown>, options?: CallOptions): Promise<Answer>;
}

interface CallOptions {
  readonly user?: string;
  readonly signal?: AbortSignal;
}

/** Who an `Authorization: Bearer NAME` signs in: NAME, or with `client:ID` an OAuth client without a subject. */
function authOf(authorization: string | null | undefined): AuthInfo | undefined {
  const user = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
  const clientId = /^client:(.+)$/.exec(user ?? '')?.[1];
  if (clientId !== undefined) return { token: 'access-token', clientId, scopes: [] };
  return user === undefined ? undefined : signedIn(user);
}

/** A server of the SDK, also on a free port of the loopback interface. */
export async function serveHttp(factory: McpServerFactory): Promise<HttpServer> {
  const mcp = createMcpHandler(factory);
  const handle = toNodeHandler(mcp);
  const http = createServer((request, response) => {
    const { method = 'GET', url: path = '/' } = request;
    const auth = authOf(request.headers.authorization);
    void handle(Object.assign(request, { method, url: path }, auth && { auth }), response);
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  const address: AddressInfo | string | null = http.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  const url = `http://127.0.0.1:${address.port}/mcp`;
  let lastId = 0;
  return {
    url,
    async call(method, params, options) {
      lastId += 1;
      if (options?.signal !== undefined) return await call(url, lastId, method, params, options);
      const request = requestOf(url, lastId, method, params, options);
      const authInfo = authOf(request.headers.get('authorization'));
      return JSON.parse(await (await mcp.fetch(request, authInfo && { authInfo })).text());
    },
    async [Symbol.asyncDispose]() {
      await mcp.close();
      http.closeAllConnections();
      await new Promise((closed) => http.close(closed));
    },
  };
}

/** Sends one 2026-07-28 request to a server, which may be another process. */
export async function call(
  url: string,
  id: number,
  method: string,
  params: Record<string, unknown>,
  options?: CallOptions,
): Promise<Answer> {
  return JSON.parse(await (await fetch(requestOf(url, id, method, params, options))).text());
}

function requestOf(
  url: string,
  id: number,
  method: string,
  params: Record<string, unknown>,
  { user, signal }: CallOptions = {},
): Request {
  return new Request(url, {
    method: 'POST',
    signal: signal ?? null,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      'mcp-name': [params['name'], params['uri']].find((target) => typeof target === 'string') ?? '',
      ...(user === undefined ? {} : { authorization: `Bearer ${user}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: modern(params) }),
  });
}

export interface Connection {
  send(message: Record<string, unknown>): Promise<void>;
  /** The next message from the server, in order of arrival. */
  next(): Promise<Answer & { readonly method?: string; readonly params?: Record<string, unknown> }>;
  close(): Promise<void>;
}

/** A lasting connection, as over stdio, on which the opening message decides the era. */
export async function serveConnection(factory: McpServerFactory): Promise<Connection> {
  const [client, transport] = InMemoryTransport.createLinkedPair();
  serveStdio(factory, { transport });
  const arrived: Answer[] = [];
  const waiting: ((answer: Answer) => void)[] = [];
  Object.assign(client, {
    onmessage: (message: Answer) => {
      const first = waiting.shift();
      if (first === undefined) arrived.push(message);
      else first(message);
    },
  });
  await client.start();
  return {
    send: async (message) => client.send(Object.assign({ jsonrpc: '2.0' as const, method: '' }, message)),
    next: async () => arrived.shift() ?? (await new Promise<Answer>((resolve) => waiting.push(resolve))),
    close: () => client.close(),
  };
}

/** Opens a 2025-era session on a connection. */
export async function initialize(connection: Connection): Promise<void> {
  await connection.send({
    id: 'initialize',
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'test', version: '1.0.0' },
    },
  });
  await connection.next();
  await connection.send({ method: 'notifications/initialized' });
}

export const CONFIRM = {
  method: 'elicitation/create' as const,
  params: {
    mode: 'form' as const,
    message: 'Refund?',
    requestedSchema: { type: 'object' as const, properties: { ok: { type: 'boolean' as const } } },
  },
};
export const YES = { confirm: { action: 'accept', content: { ok: true } } };

/** The states that the refund tool received, call by call. */
export interface RefundCall {
  readonly order: unknown;
  readonly state: unknown;
  readonly answers: unknown;
}

/** Registers a tool of two rounds, which asks first and then reports the state that it got back. */
export function registerRefund(server: McpServer, seen: RefundCall[] = []): void {
  server.registerTool(
    'refund',
    { inputSchema: fromJsonSchema<{ order: string }>({ type: 'object', properties: { order: { type: 'string' } } }) },
    ({ order }, ctx): CallToolResult | InputRequiredResult => {
      const state = ctx.mcpReq.requestState<string>();
      seen.push({ order, state, answers: ctx.mcpReq.inputResponses });
      if (state === undefined)
        return inputRequired({ inputRequests: { confirm: CONFIRM }, requestState: `asked:${order}` });
      return { content: [{ type: 'text', text: state }] };
    },
  );
}

/** The token of an `input_required` answer. */
export function tokenOf(answer: Answer): string {
  const token = answer.result?.['requestState'];
  if (typeof token !== 'string') throw new Error(`no token in ${JSON.stringify(answer)}`);
  return token;
}

/** The text of a tool's answer. */
export function textOf(answer: Answer): unknown {
  const content = answer.result?.['content'];
  return Array.isArray(content) ? content[0]?.text : undefined;
}

/** A promise with its resolve function. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const waiting: (() => void)[] = [];
  const opened = new Promise<void>((resolve) => waiting.push(resolve));
  return {
    opened,
    open() {
      for (const resolve of waiting) resolve();
    },
  };
}
