import { randomBytes } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, test } from 'vitest';
import { MODERN, modern, REFUSED, textOf, tokenOf, YES } from '../support/served.ts';
import { deskFactory, type Told } from './desk.ts';
import { onFastify } from './fastify.ts';
import { type BodyParser, type HttpHost, type HttpVariant, type Mount, verifier } from './http-variant.ts';
import { HTTP_VARIANTS } from './variants.ts';

const REFUND = { name: 'refund', arguments: { order: 'A1' } };
const variants = Object.entries(HTTP_VARIANTS);

interface Open extends HttpHost {
  readonly told: readonly Told[];
}

async function open(host: HttpVariant, bodyParser?: BodyParser): Promise<Open> {
  const told: Told[] = [];
  const factory = deskFactory({ key: randomBytes(32).toString('hex') }, (event) => told.push(event));
  const { origin, ...hosted } = await host(factory, {
    verifier,
    ...(bodyParser === undefined ? {} : { bodyParser }),
  });
  return { ...hosted, origin, told };
}

interface Sent {
  readonly mount?: Mount;
  /** Null if there is no user. Default: Ada. */
  readonly user?: string | null;
  readonly headers?: Record<string, string>;
}

/** Sends one `tools/call` unchanged; returns the answer, whether it was JSON or an event. */
async function post(origin: string, params: string, { mount = '/mcp', user = 'ada', headers }: Sent = {}) {
  const response = await fetch(new URL(mount, origin), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(user === null ? {} : { authorization: `Bearer ${user}` }),
      ...(headers ?? { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'refund' }),
    },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
  });
  return { status: response.status, text: await response.text() };
}

const asModern = (params: Record<string, unknown>) => JSON.stringify(modern(params));

describe.each(variants)('a server hosted by %s', (name, host) => {
  test('authenticates before anything else', async () => {
    await using desk = await open(host);
    expect((await post(desk.origin, asModern(REFUND), { user: null })).status).toBe(401);
    expect(desk.told).toEqual([]);
  });

  test.each(['before', 'none'] as const)('with the body parser setting %s, both rounds pass', async (bodyParser) => {
    await using desk = await open(host, bodyParser);
    const first = await post(desk.origin, asModern(REFUND));
    const requestState = tokenOf(JSON.parse(first.text));
    const second = await post(desk.origin, asModern({ ...REFUND, requestState, inputResponses: YES }));
    expect(textOf(JSON.parse(second.text))).toBe('asked:A1 yes');
    const forged = await post(desk.origin, asModern({ ...REFUND, requestState: 'asked:A1', inputResponses: YES }));
    expect(JSON.parse(forged.text).error).toEqual(REFUSED);
  });

  test('if the result of a body parser is not passed on, the call fails and no handler runs', async () => {
    await using desk = await open(host, 'not handed on');
    // The adapters for node:http find a consumed stream; a web-standard request that was read cannot be cloned.
    expect((await post(desk.origin, asModern(REFUND))).status).toBe(name === 'Hono' ? 500 : 400);
    expect(desk.told).toEqual([]);
  });

  describe('a transport without a legacy check in front of it', () => {
    const MOUNTS = ['/transport', '/session-transport'] as const;

    test.each(MOUNTS)('%s does not serve 2026-07-28', async (mount) => {
      await using desk = await open(host);
      const client = new Client({ name: 'guest', version: '1.0.0' }, { versionNegotiation: { mode: { pin: MODERN } } });
      const transport = new StreamableHTTPClientTransport(new URL(mount, desk.origin), {
        authProvider: { token: async () => 'ada' },
      });
      await expect(client.connect(transport)).rejects.toThrow('did not offer pinned protocol version');
      expect((await post(desk.origin, asModern(REFUND), { mount })).status).toBe(400);
      expect(desk.told).toEqual([]);
    });

    test('a client that negotiates falls back to 2025-11-25, and is asked for input within its session', async () => {
      await using desk = await open(host);
      const client = new Client(
        { name: 'guest', version: '1.0.0' },
        { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
      );
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
      const url = new URL('/session-transport', desk.origin);
      await client.connect(new StreamableHTTPClientTransport(url, { authProvider: { token: async () => 'ada' } }));
      expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
      expect((await client.callTool(REFUND)).content).toEqual([{ type: 'text', text: 'asked:A1 yes' }]);
      await client.close();
    });

    test('sends no state and refuses a forged one, even if the body claims 2026-07-28', async () => {
      await using desk = await open(host);
      for (const params of [REFUND, modern(REFUND)]) {
        const first = await post(desk.origin, JSON.stringify(params), { mount: '/transport', headers: {} });
        expect(first.text).toContain('per-request legacy serving cannot receive');
        expect(first.text).not.toContain('asked:A1');
      }
      for (const params of [{ ...REFUND, requestState: 'asked:A1' }, modern({ ...REFUND, requestState: 'asked:A1' })]) {
        const forged = await post(desk.origin, JSON.stringify(params), { mount: '/transport', headers: {} });
        expect(forged.text).toContain(JSON.stringify(REFUSED));
      }
      const refused = { what: 'refused', event: { direction: 'inbound', method: 'tools/call', reason: 'malformed' } };
      expect(desk.told.slice(2)).toEqual([refused, refused]);
    });
  });
});

describe('differences between frameworks', () => {
  const poisoned = asModern(REFUND).replace('"order":"A1"', '"order":"A1","__proto__":{"order":"A2"}');

  test.each(variants.filter(([name]) => name !== 'Fastify'))(
    '%s passes on a __proto__ member of arguments, which the SDK drops: it is neither bound nor visible',
    async (_name, host) => {
      await using desk = await open(host);
      const requestState = tokenOf(JSON.parse((await post(desk.origin, poisoned)).text));
      const second = await post(desk.origin, asModern({ ...REFUND, requestState, inputResponses: YES }));
      expect(textOf(JSON.parse(second.text))).toBe('asked:A1 yes');
    },
  );

  test('Fastify refuses a body with __proto__', async () => {
    await using desk = await open(onFastify);
    expect((await post(desk.origin, poisoned)).status).toBe(400);
    expect(desk.told).toEqual([]);
  });

  test.each(variants)('%s accepts a body of 150 kB, except Express, whose limit is 100 kB', async (name, host) => {
    await using desk = await open(host);
    const largest = asModern({ ...REFUND, arguments: { order: 'A1', note: 'x'.repeat(150_000) } });
    expect((await post(desk.origin, largest)).status).toBe(name === 'Express' ? 413 : 200);
  });
});
