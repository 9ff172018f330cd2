import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import { createMcpHandler as createHandlerOfFramework, withMcpAuth } from 'mcp-handler';
import { afterEach, describe, expect, test } from 'vitest';
import { type FetchHandler, protectFetch, RequestStateSecurity } from '../../src/index.ts';
import { call, REFUSED, registerRefund, signedIn, tokenOf } from '../support/served.ts';
import { clientOf, codec, plainHandler, type Served, serveFetch, serveProtected } from './fetch-server.ts';

const REFUND = { name: 'refund', arguments: { order: 'A1' } };

/** Each has the tool `refund` of two rounds at `/mcp`, and no code for tokens. */
const FRAMEWORKS: Readonly<Record<string, FetchHandler>> = {
  'a plain fetch handler': plainHandler('json'),
  Hono: honoApp(),
  'mcp-handler': createHandlerOfFramework((server) => registerRefund(server), {
    serverInfo: { name: 'a', version: '1' },
  }),
};

function honoApp(): FetchHandler {
  const mcp = createMcpHandler(() => {
    const server = new McpServer({ name: 'desk', version: '1.0.0' });
    registerRefund(server);
    return server;
  });
  const app = new Hono();
  app.get('/', (c) => c.text('welcome'));
  app.all('/mcp', (c) => mcp.fetch(c.req.raw));
  return (request) => app.fetch(request);
}

describe.each(Object.keys(FRAMEWORKS))('protectFetch around %s', (name) => {
  let served: Served | undefined;
  afterEach(() => served?.[Symbol.asyncDispose]());
  const serve = async (): Promise<Served> => {
    served = await serveProtected(FRAMEWORKS[name] ?? plainHandler('json'), { requireSubject: true });
    return served;
  };

  test('serves two rounds to the official client', async () => {
    const { url, events } = await serve();
    const client = await clientOf(url);
    expect((await client.callTool(REFUND)).content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    await client.close();
    expect(events).toEqual([]);
  });

  test('serves a client of a 2025 revision, which sends no state', async () => {
    const { url } = await serve();
    const client = new Client({ name: 'guest', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    expect((await client.listTools()).tools.map((tool) => tool.name)).toContain('refund');
    await client.close();
  });
});

test('inside withMcpAuth of mcp-handler, the principal is the user of the verified access token', async () => {
  const handler = createHandlerOfFramework((server) => registerRefund(server), {
    serverInfo: { name: 'a', version: '1' },
  });
  const guarded = protectFetch(handler, new RequestStateSecurity({ codec, requireSubject: true }), {
    audience: 'desk',
    bindPrincipal: (request) => request.auth,
  });
  const withAuth = withMcpAuth(guarded, (_request, token) => signedIn(token), { required: true });
  await using served = await serveFetch(withAuth);
  const client = await clientOf(served.url);
  expect((await client.callTool(REFUND)).content).toEqual([{ type: 'text', text: 'asked:A1' }]);
  await client.close();
  const requestState = tokenOf(await call(served.url, 1, 'tools/call', REFUND, { user: 'ada' }));
  const stolen = await call(served.url, 2, 'tools/call', { ...REFUND, requestState }, { user: 'mallory' });
  expect(stolen.error).toEqual(REFUSED);
});
