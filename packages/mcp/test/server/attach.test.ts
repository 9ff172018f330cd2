import { createRequire } from 'node:module';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createRequestStateCodec,
  InMemoryTransport,
  inputRequired,
  McpServer,
  ResourceTemplate,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import {
  createProtectedMcpServer,
  protectRequestState,
  type RejectEvent,
  RequestStateSecurity,
} from '../../src/index.ts';
import { markSealed, watch } from '../../src/server/tripwire.ts';
import {
  type Answer,
  CONFIRM,
  gate,
  initialize,
  MODERN,
  modern,
  NOT_SEALED,
  REFUSED,
  type RefundCall,
  registerRefund,
  serveConnection,
  serveHttp,
  textOf,
  tokenOf,
  YES,
} from '../support/served.ts';

const INFO = { name: 'refund-desk', version: '1.0.0' };
const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const AUDIENCE = { defaultAudience: 'refund-desk' };
const PLAINTEXT = 'plaintext-state';

function watched(options: object = {}): { security: RequestStateSecurity; events: RejectEvent[] } {
  const events: RejectEvent[] = [];
  return {
    security: new RequestStateSecurity({ keys: [KEY], onReject: (event) => events.push(event), ...options }),
    events,
  };
}

function refundServer(security: RequestStateSecurity, seen: RefundCall[] = []): McpServer {
  const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
  registerRefund(server, seen);
  return server;
}

function namedServer(name: string, options: object): McpServer {
  const server = createProtectedMcpServer({
    McpServer,
    serverInfo: { ...INFO, name },
    security: watched(options).security,
  });
  registerRefund(server);
  return server;
}

/** The state in a token, read with the key and without the boundary. */
function sealedIn(token: string): unknown {
  const claims: Record<string, unknown> = JSON.parse(
    Buffer.from(new AesGcmRequestStateCodec([KEY]).unseal(token)).toString(),
  );
  return claims['s'];
}

describe('the server to protect', () => {
  const { security } = watched();

  test.each([
    ['a tool', (server: McpServer) => server.registerTool('t', {}, () => ({ content: [] })), 'tools/call'],
    ['a prompt', (server: McpServer) => server.registerPrompt('p', {}, () => ({ messages: [] })), 'prompts/get'],
    [
      'a resource',
      (server: McpServer) => server.registerResource('r', 'a:b', {}, () => ({ contents: [] })),
      'resources/read',
    ],
  ])('a server with %s registered is rejected', (_name, register, method) => {
    const server = new McpServer(INFO);
    register(server);
    expect(() => protectRequestState(server, security, AUDIENCE)).toThrow(TypeError);
    expect(() => protectRequestState(server, security, AUDIENCE)).toThrow(method);
  });

  test.each(['tools', 'prompts', 'resources'])('a server with the capability %s is rejected', (capability) => {
    const server = new McpServer(INFO, { capabilities: { [capability]: {} } });
    expect(() => protectRequestState(server, security, AUDIENCE)).toThrow(TypeError);
  });

  test('a server that is connected, or already protected, is rejected', async () => {
    const server = new McpServer(INFO);
    await server.connect(InMemoryTransport.createLinkedPair()[1]);
    expect(() => protectRequestState(server, security, AUDIENCE)).toThrow('connected');
    const other = protectRequestState(new McpServer(INFO), security, AUDIENCE);
    expect(() => protectRequestState(other, security, AUDIENCE)).toThrow('already');
    expect(() => protectRequestState(other.server, security, AUDIENCE)).toThrow('already');
  });

  test('a value that is not a server or not a policy is rejected', () => {
    for (const value of [undefined, null, {}, 'server', { setRequestHandler: () => {} }]) {
      expect(() => Reflect.apply(protectRequestState, undefined, [value, security, AUDIENCE])).toThrow(TypeError);
    }
    expect(() => Reflect.apply(protectRequestState, undefined, [new McpServer(INFO), {}, AUDIENCE])).toThrow(TypeError);
  });

  test('an audience is required, but may be null', () => {
    expect(() => protectRequestState(new McpServer(INFO), security)).toThrow(TypeError);
    expect(() => protectRequestState(new McpServer(INFO), security, {})).toThrow('audience');
    expect(() =>
      Reflect.apply(protectRequestState, undefined, [new McpServer(INFO), security, { audience: 'x' }]),
    ).toThrow('"audience"');
    const server = new McpServer(INFO);
    expect(protectRequestState(server, security, { defaultAudience: null })).toBe(server);
  });

  test('createProtectedMcpServer answers list requests for announced capabilities that have no entries', async () => {
    const capabilities = { tools: {}, prompts: { listChanged: false }, resources: {}, logging: {} };
    await using http = await serveHttp(() =>
      createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: { capabilities } }),
    );
    expect((await http.call('tools/list', {})).result).toMatchObject({ tools: [] });
    expect((await http.call('prompts/list', {})).result).toMatchObject({ prompts: [] });
    expect((await http.call('resources/list', {})).result).toMatchObject({ resources: [] });
    expect((await http.call('resources/templates/list', {})).result).toMatchObject({ resourceTemplates: [] });
  });

  test('createProtectedMcpServer uses the server’s name as the audience if the policy has none (F25)', async () => {
    await using a = await serveHttp(() => namedServer('a', {}));
    await using b = await serveHttp(() => namedServer('b', {}));
    await using alsoA = await serveHttp(() => namedServer('b', { audience: 'a' }));
    const params = { name: 'refund', arguments: { order: 'A1' } };
    const echo = { ...params, requestState: tokenOf(await a.call('tools/call', params)), inputResponses: YES };
    expect((await b.call('tools/call', echo)).error).toEqual(REFUSED);
    expect(textOf(await alsoA.call('tools/call', echo))).toBe('asked:A1');
  });
});

const askOnce = (state: string | undefined): Record<string, unknown> =>
  state === undefined
    ? { resultType: 'input_required', requestState: PLAINTEXT }
    : { content: [{ type: 'text', text: state }] };

describe('the guard around handlers', () => {
  const coercing = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => ({ value: { amount: Number(Object(Object(value).arguments).amount) } }),
    },
  };

  const ways: Readonly<Record<string, (server: Server) => void>> = {
    'setRequestHandler of two arguments': (server) =>
      server.setRequestHandler('tools/call', (_request, ctx) => Object(askOnce(ctx.mcpReq.requestState<string>()))),
    'setRequestHandler of three arguments': (server) =>
      server.setRequestHandler('tools/call', { params: coercing }, (params, ctx) => {
        expect(params).toEqual({ amount: 1 });
        return Object(askOnce(ctx.mcpReq.requestState<string>()));
      }),
    fallbackRequestHandler: (server) => {
      server.fallbackRequestHandler = async (_request, ctx) => askOnce(ctx.mcpReq.requestState<string>());
    },
    'a fallbackRequestHandler that was read and assigned again': (server) => {
      server.fallbackRequestHandler = async (_request, ctx) => askOnce(ctx.mcpReq.requestState<string>());
      const handler = server.fallbackRequestHandler;
      server.fallbackRequestHandler = handler;
      server.fallbackRequestHandler = async (request, ctx) => handler(request, ctx);
      server.fallbackRequestHandler = handler;
    },
  };

  test.each(Object.entries(ways))('a handler that is registered with %s is guarded', async (_name, register) => {
    const { security, events } = watched();
    await using http = await serveHttp(() => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
      register(server);
      return server;
    });
    const params = { name: 't', arguments: { amount: 1 } };
    const token = tokenOf(await http.call('tools/call', params));
    expect(sealedIn(token)).toBe(PLAINTEXT);
    expect(textOf(await http.call('tools/call', { ...params, requestState: token }))).toBe(PLAINTEXT);
    expect(events).toEqual([]);
    expect((await http.call('tools/call', { ...params, requestState: PLAINTEXT })).error).toEqual(REFUSED);
    expect((await http.call('tools/call', { name: 't', arguments: { amount: 2 }, requestState: token })).error).toEqual(
      REFUSED,
    );
    expect(events.map((event) => event.reason)).toEqual(['malformed', 'request binding']);
  });

  test('a token is bound to the arguments as sent, not as changed by a schema', async () => {
    const { security, events } = watched();
    await using http = await serveHttp(() => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
      ways['setRequestHandler of three arguments']?.(server);
      return server;
    });
    const token = tokenOf(await http.call('tools/call', { name: 't', arguments: { amount: '1' } }));
    const echo = { name: 't', arguments: { amount: 1 }, requestState: token };
    expect((await http.call('tools/call', echo)).error).toEqual(REFUSED);
    expect(events.map((event) => event.reason)).toEqual(['request binding']);
  });

  test('a __proto__ member of arguments, which the SDK’s schema drops, is neither bound nor passed to the handler', async () => {
    const { security } = watched();
    const seen: unknown[] = [];
    await using http = await serveHttp(() => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
      server.setRequestHandler('tools/call', (request, ctx) => {
        seen.push(request.params.arguments);
        return Object(askOnce(ctx.mcpReq.requestState<string>()));
      });
      return server;
    });
    const poisoned: unknown = JSON.parse('{"a":1,"__proto__":{"admin":true},"deep":{"__proto__":1}}');
    const token = tokenOf(await http.call('tools/call', { name: 't', arguments: poisoned }));
    const plain: unknown = JSON.parse('{"a":1,"deep":{"__proto__":1}}');
    expect(textOf(await http.call('tools/call', { name: 't', arguments: plain, requestState: token }))).toBe(PLAINTEXT);
    expect(seen).toEqual([plain, plain]);
    expect(seen.map((args) => Reflect.get(Object(args), 'admin'))).toEqual([undefined, undefined]);
    // Deeper levels drop nothing, and the boundary binds what the handler sees.
    const other = { name: 't', arguments: JSON.parse('{"a":1,"deep":{}}'), requestState: token };
    expect((await http.call('tools/call', other)).error).toEqual(REFUSED);
  });

  test('a fallback handler that was set before protection is guarded, and none is added if there was none', async () => {
    const { security } = watched();
    await using http = await serveHttp(() => {
      const server = new Server(INFO);
      server.fallbackRequestHandler = async (_request, ctx) => askOnce(ctx.mcpReq.requestState<string>());
      return protectRequestState(server, security, AUDIENCE);
    });
    expect(sealedIn(tokenOf(await http.call('tools/call', { name: 't' })))).toBe(PLAINTEXT);
    const [server, other] = [new Server(INFO), new Server(INFO)];
    const fallback = async () => ({});
    server.fallbackRequestHandler = fallback;
    for (const each of [server, other]) protectRequestState(each, security, AUDIENCE);
    expect(server.fallbackRequestHandler).not.toBe(fallback);
    expect(other.fallbackRequestHandler).toBe(undefined);
  });

  test('other methods, and arguments that are not handlers, are passed to the SDK unchanged', async () => {
    const { security } = watched();
    const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
    expect(() => Reflect.apply(Reflect.get(server, 'setRequestHandler'), server, ['tools/call', {}])).toThrow(
      TypeError,
    );
    server.setRequestHandler('tools/list', () => ({ tools: [] }));
    expect(() => server.assertCanSetRequestHandler('tools/list')).toThrow('already exists');
    server.setRequestHandler('acme/search', { params: coercing }, () => ({ requestState: PLAINTEXT }));
    expect(() => server.assertCanSetRequestHandler('acme/search')).toThrow('already exists');
  });

  test('prompts and resources are guarded like tools', async () => {
    const { security } = watched();
    await using http = await serveHttp(() => {
      const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
      server.registerPrompt('p', {}, (ctx) => {
        const text = ctx.mcpReq.requestState<string>();
        if (text === undefined) return inputRequired({ requestState: PLAINTEXT });
        return { messages: [{ role: 'user', content: { type: 'text', text } }] };
      });
      server.registerResource(
        'r',
        new ResourceTemplate('note:{id}', { list: undefined }),
        {},
        (uri, _variables, ctx) => {
          const text = ctx.mcpReq.requestState<string>();
          if (text === undefined) return inputRequired({ requestState: PLAINTEXT });
          return { contents: [{ uri: uri.href, text }] };
        },
      );
      return server;
    });
    const prompt = tokenOf(await http.call('prompts/get', { name: 'p' }));
    const note = tokenOf(await http.call('resources/read', { uri: 'note:1' }));
    const told = await http.call('prompts/get', { name: 'p', requestState: prompt });
    expect(told.result).toMatchObject({ messages: [{ content: { text: PLAINTEXT } }] });
    const read = await http.call('resources/read', { uri: 'note:1', requestState: note });
    expect(read.result).toMatchObject({ contents: [{ text: PLAINTEXT }] });
    expect((await http.call('resources/read', { uri: 'note:2', requestState: note })).error).toEqual(REFUSED);
    expect((await http.call('prompts/get', { name: 'p', requestState: note })).error).toEqual(REFUSED);
  });
});

const asking = (requestState: string) => ({ id: 1, result: { resultType: 'input_required', requestState } });

describe('the check at the transport', () => {
  test('stops a result of an unguarded handler, for clients of both revisions', async () => {
    const { security, events } = watched();
    const smuggling = () => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
      Object.defineProperty(server, 'fallbackRequestHandler', {
        value: async () => askOnce(undefined),
        writable: false,
      });
      return server;
    };
    await using http = await serveHttp(smuggling);
    const answer = await http.call('tools/call', { name: 't' });
    expect(answer).toEqual({ jsonrpc: '2.0', id: answer.id, error: NOT_SEALED });
    const connection = await serveConnection(smuggling);
    await initialize(connection);
    await connection.send({ id: 9, method: 'tools/call', params: { name: 't' } });
    expect(await connection.next()).toEqual({ jsonrpc: '2.0', id: 9, error: NOT_SEALED });
    await connection.close();
    const event = { direction: 'outbound', method: 'unknown', reason: 'unsealed requestState' };
    expect(events).toEqual([event, event]);
  });

  test('stops a token of this server that was changed before it reached the transport', async () => {
    const { security, events } = watched();
    await using http = await serveHttp(() => {
      const server = refundServer(security);
      const connect = server.server.connect.bind(server.server);
      server.server.connect = async (transport) => {
        await connect(transport);
        const send = transport.send.bind(transport);
        transport.send = (message, options) => {
          const result: unknown = Reflect.get(message, 'result');
          return send(
            Object.assign(message, { result: Object.assign({}, result, { requestState: PLAINTEXT }) }),
            options,
          );
        };
      };
      return server;
    });
    // Patched outside this package's patch, which therefore notices and stops a change by middleware.
    const answer = await http.call('tools/call', { name: 'refund', arguments: { order: 'A1' } });
    expect(answer.error).toEqual(NOT_SEALED);
    expect(events.map((event) => event.reason)).toEqual(['unsealed requestState']);
  });

  test('does not replace the transport or change its class', async () => {
    const { security } = watched();
    const server = refundServer(security);
    const [, transport] = InMemoryTransport.createLinkedPair();
    await server.connect(transport);
    expect(server.server.transport).toBe(transport);
    expect(transport).toBeInstanceOf(InMemoryTransport);
  });

  test('removes the mark of a token each time the token is sent, and keeps no record of the token (F23)', async () => {
    const left: unknown[] = [];
    let trips = 0;
    const transport = { send: async (message: unknown) => void left.push(message), start: async () => {} };
    const watcher = { mayEnter: () => true, tripped: () => (trips += 1) };
    watch(transport, watcher);
    const patched = transport.send;
    watch(transport, watcher);
    expect(transport.send).toBe(patched);
    const mark = markSealed('');
    expect(mark).toMatch(/^[\w-]{22}:$/);
    for (const token of ['token', 'other', 'token']) await transport.send(asking(markSealed(token)));
    expect([left, trips]).toEqual([[asking('token'), asking('other'), asking('token')], 0]);
    await transport.send(asking('token'));
    await transport.send(asking(`x${mark}token`));
    expect(trips).toBe(2);
    expect(left.slice(3)).toEqual([
      { jsonrpc: '2.0', id: 1, error: NOT_SEALED },
      { jsonrpc: '2.0', id: 1, error: NOT_SEALED },
    ]);
  });

  test.each<[string, boolean, (server: Server, seen: unknown[]) => void]>([
    [
      'a handler set through the method of the prototype',
      true,
      (server, seen) => {
        const handler = (_request: unknown, ctx: ServerContext) => {
          seen.push(ctx.mcpReq.requestState());
          return { content: [] };
        };
        Reflect.apply(Reflect.get(Server.prototype, 'setRequestHandler'), server, ['tools/call', handler]);
      },
    ],
    [
      'a fallback that cannot be guarded',
      false,
      (server, seen) => {
        const value = async (_request: unknown, ctx: ServerContext) => {
          seen.push(ctx.mcpReq.requestState());
          return {};
        };
        Object.defineProperty(server, 'fallbackRequestHandler', { value, writable: false });
      },
    ],
  ])('stops and reports an incoming state for an unguarded handler: %s', async (_name, isValidated, register) => {
    const method = 'tools/call';
    const params = { name: 't', requestState: PLAINTEXT };
    const { security, events } = watched();
    const seen: unknown[] = [];
    const make = () => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
      register(server, seen);
      return server;
    };
    const connection = await serveConnection(make);
    await initialize(connection);
    await connection.send({ id: 9, method, params });
    expect(await connection.next()).toEqual({ jsonrpc: '2.0', id: 9, error: REFUSED });
    await using http = await serveHttp(make);
    expect((await http.call(method, params)).error).toEqual(REFUSED);
    const event = { direction: 'inbound', method, reason: 'unverified requestState' };
    expect([events, seen]).toEqual([[event, event], []]);
    // A message without a state goes to the handler.
    await connection.send({ id: 10, method, params: { name: 't', requestState: null } });
    // The SDK itself refuses null, except before a fallback handler.
    expect(await connection.next()).toHaveProperty(isValidated ? 'error' : 'result');
    await connection.send({ id: 11, method, params: { name: 't' } });
    expect(await connection.next()).toHaveProperty('result');
    await connection.close();
  });

  test('guards a fallback handler that is assigned after the server is connected', async () => {
    const { security, events } = watched();
    const server = protectRequestState(new Server(INFO), security, AUDIENCE);
    const [client, transport] = InMemoryTransport.createLinkedPair();
    await server.connect(transport);
    server.fallbackRequestHandler = async (_request, ctx) => askOnce(ctx.mcpReq.requestState<string>());
    const answer = new Promise<Answer>((resolve) => Object.assign(client, { onmessage: resolve }));
    await client.start();
    await client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 't' } });
    expect(sealedIn(tokenOf(await answer))).toBe(PLAINTEXT);
    expect(events).toEqual([]);
    await server.close();
  });
});

describe('concurrent requests with the same id', () => {
  test.each(['modern', 'legacy'])(
    'two concurrent requests with the same id keep their states apart on a %s connection',
    async (era) => {
      const { security } = watched();
      const first = gate();
      const connection = await serveConnection(() => {
        const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
        server.fallbackRequestHandler = async (request, ctx) => {
          const order = String(request.params?.['name']);
          const state = ctx.mcpReq.requestState<string>();
          if (order === 'one') await first.opened;
          if (state !== undefined) return { order, state };
          return { resultType: 'input_required', requestState: `state of ${order}` };
        };
        return server;
      });
      if (era === 'legacy') await initialize(connection);
      const call = async (name: string, requestState?: string) => {
        const params = { name, ...(requestState === undefined ? {} : { requestState }) };
        await connection.send({ id: 7, method: 'tools/call', params: era === 'modern' ? modern(params) : params });
      };
      // The second is answered first, under the same id.
      await call('one');
      await call('two');
      const two = tokenOf(await connection.next());
      first.open();
      const one = tokenOf(await connection.next());
      await call('one', two);
      await call('two', one);
      expect([(await connection.next()).error, (await connection.next()).error]).toEqual([REFUSED, REFUSED]);
      await call('one', one);
      expect((await connection.next()).result).toMatchObject({ order: 'one', state: 'state of one' });
      await call('two', two);
      expect((await connection.next()).result).toMatchObject({ order: 'two', state: 'state of two' });
      await connection.close();
    },
  );
});

describe('a client of a 2025 revision', () => {
  test('a client of a 2025 revision is served by the SDK in process: the handler gets plaintext, and nothing is sealed', async () => {
    const sealed: Uint8Array[] = [];
    const seal = (payload: Uint8Array) => `token-${sealed.push(payload)}`;
    const { security, events } = watched({ keys: undefined, codec: { seal, unseal: () => new Uint8Array() } });
    const seen: RefundCall[] = [];
    const [mine, transport] = InMemoryTransport.createLinkedPair();
    await refundServer(security, seen).connect(transport);
    const client = new Client(INFO, { capabilities: { elicitation: {} } });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(mine);
    const result = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
    expect(result.content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    expect(seen.map((call) => call.state)).toEqual([undefined, 'asked:A1']);
    expect(sealed).toEqual([]);
    expect(events).toEqual([]);
    await client.close();
  });

  test('a client of a 2025 revision is refused if it sends a requestState, even one that a handler has just returned', async () => {
    const { security, events } = watched();
    const seen: RefundCall[] = [];
    const connection = await serveConnection(() => refundServer(security, seen));
    await initialize(connection);
    const call = { method: 'tools/call', params: { name: 'refund', arguments: { order: 'A1' } } };
    await connection.send({ id: 1, ...call });
    // The SDK is asking: the first request is in flight, and its plaintext is remembered.
    const question = await connection.next();
    expect(question.method).toBe('elicitation/create');
    await connection.send({ id: 2, ...call, params: { ...call.params, requestState: 'asked:A1' } });
    expect((await connection.next()).error).toEqual(REFUSED);
    await connection.send({ id: 1, ...call, params: { ...call.params, requestState: 'asked:A1' } });
    expect((await connection.next()).error).toEqual(REFUSED);
    expect(events.map((event) => event.reason)).toEqual(['malformed', 'malformed']);
    expect(seen).toHaveLength(1);
    await connection.close();
  });

  test('gets its state back with a token that was sealed for the same request', async () => {
    const { security } = watched();
    await using http = await serveHttp(() => refundServer(security));
    const params = { name: 'refund', arguments: { order: 'A1' } };
    const requestState = tokenOf(await http.call('tools/call', params));
    const connection = await serveConnection(() => refundServer(security));
    await initialize(connection);
    await connection.send({ id: 1, method: 'tools/call', params: { ...params, requestState } });
    expect(textOf(await connection.next())).toBe('asked:A1');
    await connection.close();
  });

  test('a client of a 2025 revision is refused in the same way over stateless HTTP', async () => {
    const { security, events } = watched();
    await using http = await serveHttp(() => refundServer(security));
    const response = await fetch(http.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'refund', arguments: { order: 'A1' }, requestState: 'asked:A1' },
      }),
    });
    expect(await response.text()).toContain(JSON.stringify(REFUSED));
    expect(events.map((event) => event.reason)).toEqual(['malformed']);
  });
});

describe('a client that disconnects', () => {
  test.each(['codec.prepare', 'the single-use store'])(
    'no handler runs for a client that disconnects while %s is awaited',
    async (where) => {
      const [reached, released] = [gate(), gate()];
      const wait = async () => {
        reached.open();
        await released.opened;
      };
      const seen: RefundCall[] = [];
      const codec = new AesGcmRequestStateCodec([KEY]);
      const seal = codec.seal.bind(codec);
      const unsealed: string[] = [];
      const unseal = (token: string) => {
        unsealed.push(token);
        return codec.unseal(token);
      };
      const claims: string[] = [];
      const claim = async (id: string) => {
        claims.push(id);
        await wait();
        return true;
      };
      const options =
        where === 'codec.prepare'
          ? { codec: { seal, unseal, prepare: wait }, singleUse: { claim: async (id: string) => claims.push(id) > 0 } }
          : { codec, singleUse: { claim } };
      const { security, events } = watched({ keys: undefined, ...options });
      await using http = await serveHttp(() => refundServer(security, seen));
      const params = { name: 'refund', arguments: { order: 'A1' } };
      const requestState = tokenOf(await http.call('tools/call', params));
      const leaving = new AbortController();
      const echo = http.call(
        'tools/call',
        { ...params, requestState, inputResponses: YES },
        { signal: leaving.signal },
      );
      await reached.opened;
      leaving.abort();
      await expect(echo).rejects.toThrow('abort');
      await new Promise((resolve) => setTimeout(resolve, 50));
      released.open();
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(seen).toHaveLength(1);
      expect(unsealed).toEqual([]);
      // Verified, still connected, then claimed: an earlier disconnect does not consume the token.
      expect(claims).toHaveLength(where === 'codec.prepare' ? 0 : 1);
      // The token itself was valid.
      expect(events).toEqual([]);
    },
  );
});

describe('the CommonJS build of the SDK', () => {
  test('a server of the CommonJS build is protected, and refuses a malformed token', async () => {
    const cjs: typeof import('@modelcontextprotocol/server') = createRequire(import.meta.url)(
      '@modelcontextprotocol/server',
    );
    expect(cjs.McpServer).not.toBe(McpServer);
    const { security, events } = watched();
    const server = createProtectedMcpServer({
      McpServer: cjs.McpServer,
      serverInfo: INFO,
      security,
      serverOptions: { capabilities: { tools: {} } },
    });
    server.registerTool('t', {}, (ctx) => {
      const text = ctx.mcpReq.requestState<string>();
      return text === undefined
        ? cjs.inputRequired({ requestState: PLAINTEXT })
        : { content: [{ type: 'text', text }] };
    });
    const handler = cjs.createMcpHandler(() => server);
    const call = async (params: Record<string, unknown>) => {
      const response = await handler.fetch(
        new Request('http://127.0.0.1/mcp', {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': MODERN,
            'mcp-method': 'tools/call',
            'mcp-name': 't',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: modern(params) }),
        }),
      );
      return JSON.parse(await response.text());
    };
    const token = tokenOf(await call({ name: 't' }));
    expect(sealedIn(token)).toBe(PLAINTEXT);
    expect(textOf(await call({ name: 't', requestState: token }))).toBe(PLAINTEXT);
    expect((await call({ name: 't', requestState: `${token}.` })).error).toEqual(REFUSED);
    expect(events.map((event) => event.reason)).toEqual(['malformed']);
  });
});

describe('the user’s own verify hook', () => {
  test('createProtectedMcpServer rejects the user’s own verify hook', () => {
    const { security } = watched();
    const requestState = createRequestStateCodec({ key: KEY });
    expect(() =>
      createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: { requestState } }),
    ).toThrow(TypeError);
    expect(() =>
      createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: { requestState: {} } }),
    ).not.toThrow();
  });

  test('gets the sealed token with protectRequestState, and can only accept it or throw', async () => {
    const verified: string[] = [];
    let verdict: unknown;
    const verify = async (state: string) => {
      verified.push(state);
      if (verdict instanceof Error) throw verdict;
      return verdict;
    };
    const { security, events } = watched();
    await using http = await serveHttp(() => {
      const server = protectRequestState(new McpServer(INFO, { requestState: { verify } }), security, AUDIENCE);
      registerRefund(server);
      return server;
    });
    const params = { name: 'refund', arguments: { order: 'A1' } };
    const requestState = tokenOf(await http.call('tools/call', params));
    const echo = { ...params, requestState, inputResponses: YES };
    expect(textOf(await http.call('tools/call', echo))).toBe('asked:A1');
    expect(verified).toEqual([requestState]);
    verdict = { decoded: true };
    expect((await http.call('tools/call', echo)).error).toEqual(REFUSED);
    expect(events.map((event) => event.reason)).toEqual(['non-string requestState']);
    verdict = new Error('no');
    expect((await http.call('tools/call', echo)).error).toEqual(REFUSED);
  });
});

describe('a server for each HTTP request, with one policy', () => {
  test('accepts from the official client the state that the server of the previous request sealed', async () => {
    const { security, events } = watched();
    const seen: RefundCall[] = [];
    let servers = 0;
    await using http = await serveHttp(() => {
      servers += 1;
      return refundServer(security, seen);
    });
    const client = new Client(INFO, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: { pin: MODERN } },
    });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(new StreamableHTTPClientTransport(new URL(http.url)));
    const result = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
    expect(result.content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    expect(seen).toEqual([
      { order: 'A1', state: undefined, answers: undefined },
      { order: 'A1', state: 'asked:A1', answers: YES },
    ]);
    expect(servers).toBeGreaterThanOrEqual(2);
    expect(events).toEqual([]);
    await client.close();
  });
});

describe('errors in the callback of a tool', () => {
  test('an error that the callback throws becomes a tool error, and a refusal becomes a protocol error', async () => {
    const { security } = watched();
    await using http = await serveHttp(() => {
      const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
      server.registerTool('throws', {}, () => {
        throw new Error('boom');
      });
      return server;
    });
    const answer = await http.call('tools/call', { name: 'throws' });
    expect(answer.result).toMatchObject({ isError: true, content: [{ text: 'boom' }] });
    expect((await http.call('tools/call', { name: 'throws', requestState: 'forged' })).error).toEqual(REFUSED);
  });
});

describe('caching', () => {
  test('a result is not cacheable if its request had a requestState, and other results are unchanged', async () => {
    const { security } = watched();
    const make = (protect: boolean) => () => {
      const options = { cacheHints: { 'resources/read': { ttlMs: 60_000, cacheScope: 'public' as const } } };
      const server = protect
        ? createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: options })
        : new McpServer(INFO, options);
      registerRefund(server);
      server.registerResource('ask', 'note:ask', {}, (uri, ctx) =>
        ctx.mcpReq.requestState() === undefined
          ? inputRequired({ requestState: PLAINTEXT })
          : { contents: [{ uri: uri.href, text: 'secret' }], ttlMs: 5000 },
      );
      server.registerResource('plain', 'note:plain', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'x' }] }));
      return server;
    };
    await using http = await serveHttp(make(true));
    await using bare = await serveHttp(make(false));
    const asked = await http.call('resources/read', { uri: 'note:ask' });
    expect(asked.result).not.toHaveProperty('ttlMs');
    const told = await http.call('resources/read', { uri: 'note:ask', requestState: tokenOf(asked) });
    expect(told.result).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
    const plain = { uri: 'note:plain' };
    expect((await http.call('resources/read', plain)).result).toEqual(
      (await bare.call('resources/read', plain)).result,
    );
    const params = { name: 'refund', arguments: { order: 'A1' } };
    const requestState = tokenOf(await http.call('tools/call', params));
    const ours = await http.call('tools/call', { ...params, requestState });
    const theirs = await bare.call('tools/call', { ...params, requestState: 'asked:A1' });
    expect(ours.result).toEqual(theirs.result);
  });
});

describe('a state that is not a string', () => {
  test.each([[{ a: 1 }], [5], [null], [true], [['x']]])(
    '%j from a handler is not sent to clients of either revision',
    async (state) => {
      const { security, events } = watched();
      const make = () => {
        const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, AUDIENCE);
        server.setRequestHandler('tools/call', () => Object({ resultType: 'input_required', requestState: state }));
        return server;
      };
      await using http = await serveHttp(make);
      const answer = await http.call('tools/call', { name: 't' });
      expect(answer).toEqual({ jsonrpc: '2.0', id: answer.id, error: NOT_SEALED });
      const connection = await serveConnection(make);
      await initialize(connection);
      await connection.send({ id: 3, method: 'tools/call', params: { name: 't' } });
      expect(await connection.next()).toEqual({ jsonrpc: '2.0', id: 3, error: NOT_SEALED });
      await connection.close();
      const event = { direction: 'outbound', method: 'tools/call', reason: 'non-string requestState' };
      expect(events).toEqual([event, event]);
    },
  );

  test('a state in a result that is not input_required is not sent', async () => {
    const { security, events } = watched();
    await using http = await serveHttp(() => {
      const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
      server.registerTool('t', {}, () => ({ content: [], requestState: PLAINTEXT }));
      return server;
    });
    expect((await http.call('tools/call', { name: 't' })).error).toEqual(NOT_SEALED);
    expect(events.map((event) => event.reason)).toEqual(['unsealed requestState']);
  });

  test.each([[{ a: 1 }], [5], [null], [true], [['x']]])('%j from a client is refused', async (requestState) => {
    const { security } = watched();
    const seen: RefundCall[] = [];
    await using http = await serveHttp(() => refundServer(security, seen));
    const answer = await http.call('tools/call', { name: 'refund', arguments: { order: 'A1' }, requestState });
    expect(answer.error).toEqual(REFUSED);
    expect(seen).toEqual([]);
  });

  test('an input_required result without a state is unchanged', async () => {
    const { security } = watched();
    await using http = await serveHttp(() => {
      const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
      server.registerTool('t', {}, () => inputRequired({ inputRequests: { confirm: CONFIRM } }));
      return server;
    });
    const answer = await http.call('tools/call', { name: 't' });
    expect(answer.result).toMatchObject({ resultType: 'input_required', inputRequests: { confirm: CONFIRM } });
    expect(answer.result).not.toHaveProperty('requestState');
  });
});
