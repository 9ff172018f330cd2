import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport, McpServer, Server, type ServerContext } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  authenticatedPrincipal,
  compactJson,
  createProtectedMcpServer,
  protectRequestState,
  type RejectEvent,
  RequestStateSecurity,
} from '../../src/index.ts';
import { policyOf } from '../../src/server/policy.ts';
import { principalBinder } from '../../src/server/principal-binder.ts';
import { type GuardedRequest, ServerGuard } from '../../src/server/server-guard.ts';
import { markSealed, watch } from '../../src/server/tripwire.ts';
import { answerOf } from '../support/exchange.ts';
import { CONFIRM, NOT_SEALED, REFUSED } from '../support/served.ts';

const INFO = { name: 'refund-desk', version: '1.0.0' };
const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const NOBODY = { defaultAudience: null };
const security = new RequestStateSecurity({ keys: [KEY] });

const protectedServer = (): Server =>
  protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, NOBODY);

afterEach(() => vi.restoreAllMocks());

describe('a guard', () => {
  interface Guarded {
    readonly rejected: RejectEvent[];
    readonly sealed: string[];
    readonly run: (
      call: Partial<GuardedRequest> & {
        readonly signal?: AbortSignal;
        readonly wire?: unknown;
        readonly revision?: string;
        readonly handle?: (ctx: ServerContext) => unknown;
      },
    ) => Promise<unknown>;
  }

  /** A server's guard alone: requests in sequence, each with the given context. */
  function guarded(): Guarded {
    const rejected: RejectEvent[] = [];
    const sealed: string[] = [];
    const policy = policyOf(new RequestStateSecurity({ keys: [KEY], onReject: (event) => rejected.push(event) }));
    let negotiated = '2026-07-28';
    const server = { getNegotiatedProtocolVersion: () => negotiated };
    const guard = new ServerGuard(server, policy, policy.boundaryFor(null));
    const mark = markSealed('');
    return {
      rejected,
      sealed,
      run: async ({
        signal = new AbortController().signal,
        wire,
        revision = '2026-07-28',
        handle = () => ({}),
        ...call
      }) => {
        negotiated = revision;
        const ctx: ServerContext = Object({ mcpReq: { signal, requestState: () => wire } });
        const identity = guard.identify('resources/read', { uri: 'a:b' });
        const request = { method: 'resources/read' as const, identity, ctx, isShimmed: true, ...call };
        const result = await guard.run(request, (_request, seen) => handle(seen), undefined);
        const state: unknown = Reflect.get(Object(result), 'requestState');
        if (typeof state === 'string' && state.startsWith(mark)) sealed.push(state.slice(mark.length));
        return result;
      },
    };
  }

  const asks = (requestState: unknown) => () => ({ resultType: 'input_required', requestState });

  test.each([[null], [undefined], ['text'], [5]])(
    'returns the result %o unchanged, in the first round and in a later one',
    async (result) => {
      const { run, sealed, rejected } = guarded();
      await run({ handle: asks('x') });
      expect(await run({ handle: () => result })).toBe(result);
      expect(await run({ wire: sealed[0], handle: () => result })).toBe(result);
      expect(rejected).toEqual([]);
    },
  );

  test('treats a requestState that is undefined as absent', async () => {
    const { run, rejected } = guarded();
    const result = { contents: [], requestState: undefined };
    expect(await run({ handle: () => result })).toBe(result);
    expect(rejected).toEqual([]);
  });

  test('treats a requestState that is null as absent: the result stays cacheable', async () => {
    const result = { contents: [] };
    expect(await guarded().run({ wire: null, handle: () => result })).toBe(result);
  });

  test('nothing is sealed, and no refusal is reported, after the client disconnects', async () => {
    const { run, sealed, rejected } = guarded();
    const leaving = new AbortController();
    const handle = () => {
      leaving.abort(new Error('left'));
      return asks(5)();
    };
    await expect(run({ signal: leaving.signal, handle })).rejects.toThrow('left');
    expect([sealed, rejected]).toEqual([[], []]);
  });

  test('accepts from a client of a 2025 revision only the state of the same request, byte for byte', async () => {
    const { run, sealed, rejected } = guarded();
    const call = { revision: '2025-11-25', signal: new AbortController().signal };
    await run({ ...call, handle: asks('plaintext') });
    await expect(run({ ...call, wire: 'plaintext ' })).rejects.toMatchObject(REFUSED);
    // And once: a refused state is no longer awaited.
    await expect(run({ ...call, wire: 'plaintext' })).rejects.toMatchObject(REFUSED);
    expect(rejected.map((event) => event.reason)).toEqual(['malformed', 'malformed']);
    await run({ ...call, handle: asks('plaintext') });
    const state = await run({ ...call, wire: 'plaintext', handle: (ctx) => ctx.mcpReq.requestState() });
    expect([state, sealed]).toEqual(['plaintext', []]);
  });
});

describe('a handler with three arguments', () => {
  test.each([
    ['issues', { issues: [{ message: 'no' }] }],
    ['a value and issues', { value: { name: 't' }, issues: [{ message: 'no' }] }],
  ])('a handler does not run if its schema returns %s', async (_name, outcome) => {
    const server = protectedServer();
    let ran = false;
    const params = { '~standard': { version: 1 as const, vendor: 'test', validate: () => Object(outcome) } };
    server.setRequestHandler('tools/call', { params }, () => {
      ran = true;
      return Object({ content: [] });
    });
    const { error } = await answerOf(server, { method: 'tools/call', params: { name: 't' } });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('no') });
    expect(ran).toBe(false);
  });

  const anything = {
    '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => ({ value, issues: [] }) },
  };

  test('serves a client of a 2025 revision in process, and seals nothing', async () => {
    const sealed: unknown[] = [];
    const listen = (event: unknown) => void sealed.push(event);
    subscribe('sealring:boundary-sealed', listen);
    const server = protectedServer();
    server.setRequestHandler('tools/call', { params: anything }, (_params, ctx) => {
      const text = ctx.mcpReq.requestState<string>();
      if (text !== undefined) return Object({ content: [{ type: 'text', text }] });
      return Object({ resultType: 'input_required', inputRequests: { confirm: CONFIRM }, requestState: 'plaintext' });
    });
    const [mine, transport] = InMemoryTransport.createLinkedPair();
    await server.connect(transport);
    const client = new Client(INFO, { capabilities: { elicitation: {} } });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(mine);
    const { content } = await client.callTool({ name: 't' });
    unsubscribe('sealring:boundary-sealed', listen);
    expect(content).toEqual([{ type: 'text', text: 'plaintext' }]);
    expect(sealed).toEqual([]);
    await client.close();
  });

  test('a handler of another method may return any result', async () => {
    const server = protectedServer();
    server.setRequestHandler('acme/search', { params: anything }, (params) => ({ params, requestState: 'mine' }));
    const { result, error } = await answerOf(server, { method: 'acme/search', params: { q: 1 } });
    expect(error).toBe(undefined);
    expect(result).toMatchObject({ params: { q: 1 }, requestState: 'mine' });
  });
});

test('a refusal is reported once even without onReject, and answered even without onerror', async () => {
  const request = { method: 'tools/call', params: { name: 't', requestState: 'forged' } };
  const told: string[] = [];
  const server = protectedServer();
  server.fallbackRequestHandler = async () => ({});
  Object.assign(server, { onerror: (error: Error) => told.push(error.message) });
  expect((await answerOf(server, request)).error).toEqual(REFUSED);
  expect(told).toEqual(['requestState: refused inbound on tools/call: malformed']);
  const silent = protectedServer();
  silent.fallbackRequestHandler = async () => ({ resultType: 'input_required', requestState: 5 });
  expect((await answerOf(silent, request)).error).toEqual(REFUSED);
  const again = protectedServer();
  again.fallbackRequestHandler = async () => ({ resultType: 'input_required', requestState: 5 });
  expect((await answerOf(again, { ...request, params: { name: 't' } })).error).toEqual(NOT_SEALED);
});

test('a protected server still has every enumerable property that it had before', () => {
  const server = new Server(INFO);
  const shown = Object.keys(server);
  expect(shown).toContain('fallbackRequestHandler');
  expect(Object.keys(protectRequestState(server, security, NOBODY))).toEqual(expect.arrayContaining(shown));
});

describe('the capabilities that createProtectedMcpServer announces', () => {
  const all = { tools: { listChanged: false }, prompts: { listChanged: false }, resources: { subscribe: true } };
  const lists = { tools: 'tools/list', prompts: 'prompts/list', resources: 'resources/list' };
  const names = ['tools', 'prompts', 'resources'] as const;
  const subsets = Array.from({ length: 8 }, (_, bits) => names.filter((_name, bit) => (bits & (1 << bit)) !== 0));

  test.each(subsets.map((subset) => [subset.join(', ') || 'nothing', subset] as const))(
    'the announced capabilities are those that the class announces for %s',
    (_name, subset) => {
      const capabilities = Object.fromEntries(subset.map((name) => [name, all[name]]));
      const options = { capabilities: { ...capabilities, logging: {} } };
      const plain = new McpServer(INFO, options).server;
      const warned = vi.spyOn(console, 'warn').mockImplementation(() => {});
      const ours = createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: options }).server;
      expect(warned).not.toHaveBeenCalled();
      expect(ours.getCapabilities()).toEqual(plain.getCapabilities());
      const answered = names.filter((name) => {
        try {
          ours.assertCanSetRequestHandler(lists[name]);
          return false;
        } catch {
          return true;
        }
      });
      expect(answered).toEqual(subset);
    },
  );

  test.each([[undefined], [{}], [{ requestState: {} }], [{ requestState: { verify: undefined } }]])(
    'the options %o, which have neither capabilities nor verify, are accepted',
    (options) => {
      const given = options === undefined ? undefined : Object(options);
      const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security, serverOptions: given });
      expect(server.server.getCapabilities()).toEqual(new McpServer(INFO).server.getCapabilities());
      expect(() => protectRequestState(server, security, NOBODY)).toThrow('already');
    },
  );
});

describe('watch', () => {
  const asking = (requestState: unknown) => ({ id: 1, result: { resultType: 'input_required', requestState } });

  function wired() {
    const trips: number[] = [];
    const watcher = { mayEnter: () => true, tripped: () => trips.push(1) };
    const transport = () => {
      const left: unknown[] = [];
      return { left, send: async (message: unknown) => void left.push(message), start: async () => {} };
    };
    return { trips, watcher, transport };
  }

  test('wraps a transport once, and reports to the last watcher when the transport is connected again', async () => {
    const { trips, watcher, transport } = wired();
    const [a, b] = [transport(), transport()];
    for (const each of [a, b, a, b, a]) watch(each, watcher);
    for (const each of [a, b]) {
      await each.send(asking(markSealed('token')));
      expect(each.left).toEqual([asking('token')]);
    }
    expect(trips).toEqual([]);
    for (const each of [a, b]) await each.send(asking('token'));
    expect(trips).toHaveLength(2);
    const later: number[] = [];
    watch(a, { mayEnter: () => true, tripped: () => later.push(1) });
    await a.send(asking('token'));
    expect([trips.length, later.length]).toEqual([2, 1]);
  });

  test('sends an error in place of a state that is not a marked string', async () => {
    const { trips, watcher, transport } = wired();
    const watched = transport();
    watch(watched, watcher);
    for (const state of ['token', 5, null]) await watched.send(asking(state));
    expect(watched.left).toEqual(Array.from({ length: 3 }, () => ({ jsonrpc: '2.0', id: 1, error: NOT_SEALED })));
    expect(trips).toHaveLength(3);
  });

  test('the mark of a token is random for each process', async () => {
    vi.resetModules();
    const fresh = await import('../../src/server/tripwire.ts');
    const marked = fresh.markSealed('token');
    expect(marked).toMatch(/^[\w-]{22}:token$/);
    expect(marked).not.toBe(markSealed('token'));
  });

  test('passes on every other message unchanged', async () => {
    const { trips, watcher, transport } = wired();
    const watched = transport();
    watch(watched, watcher);
    const messages: unknown[] = [
      { id: 1, result: null },
      { id: 2, result: { requestState: 'of a method that carries no state' } },
      { id: 3, result: { resultType: 'input_required' } },
      { method: 'notifications/message', params: null },
      null,
    ];
    for (const message of messages) await watched.send(message);
    expect(watched.left).toEqual(messages);
    expect(trips).toEqual([]);
  });

  test('ignores a value that is not a transport', () => {
    const { watcher } = wired();
    const [send, start] = [async () => {}, async () => {}];
    for (const value of [undefined, null, {}, { send: 'text', start }, { send }, { start }])
      expect(() => watch(value, watcher)).not.toThrow();
  });
});

describe('the event for access tokens without a subject', () => {
  const CHANNEL = 'sealring:principal-without-subject';
  const by = (clientId: string) => Object({ http: { authInfo: { token: 't', clientId, scopes: [] } } });

  /** The warnings and events during a run. */
  function telling(run: () => void): unknown[] {
    const told: unknown[] = [];
    const listen = (message: unknown) => void told.push(message);
    subscribe(CHANNEL, listen);
    try {
      run();
    } finally {
      unsubscribe(CHANNEL, listen);
    }
    return told;
  }

  test('the event is emitted for a client that was seen before anyone subscribed', () => {
    const bind = principalBinder(policyOf(new RequestStateSecurity({ keys: [KEY] })));
    expect(bind(by('early'))).toBe('["early",null,null]');
    const told = telling(() => bind(by('early')));
    expect(told).toEqual([{ client: expect.stringMatching(/^[\w-]{16}$/) }]);
    expect(Object.isFrozen(told[0])).toBe(true);
    expect(telling(() => bind(by('early')))).toEqual([]);
  });

  test('the event is emitted once for each of a thousand clients, and again for the oldest (F23)', () => {
    const bind = principalBinder(policyOf(new RequestStateSecurity({ keys: [KEY] })));
    const many = Array.from({ length: 1_000 }, (_, n) => by(`client-${n}`));
    expect(telling(() => many.forEach(bind))).toHaveLength(1_000);
    expect(telling(() => many.forEach(bind))).toEqual([]);
    expect(telling(() => bind(by('one more')))).toHaveLength(1);
    expect(telling(() => many.slice(1).forEach(bind))).toEqual([]);
    expect(telling(() => bind(by('client-0')))).toHaveLength(1);
  });

  test.each([
    ['no HTTP', {}],
    ['no user is signed in', { http: {} }],
    ['null as the authInfo', { http: { authInfo: null } }],
  ])('the event is not emitted for a request without a principal: %s', (_name, context) => {
    const bind = principalBinder(policyOf(new RequestStateSecurity({ keys: [KEY] })));
    expect(telling(() => expect(bind(Object(context))).toBe(null))).toEqual([]);
  });

  test('authenticatedPrincipal returns no issuer and no subject if extra is null', () => {
    const context = Object({ http: { authInfo: { token: 't', clientId: 'web', scopes: [], extra: null } } });
    expect(authenticatedPrincipal(context)).toBe('["web",null,null]');
  });
});

test('compactJson keeps the order of members by default', () => {
  const value = { b: 1, a: { d: 1, c: 1 } };
  expect(compactJson(value)).toBe('{"b":1,"a":{"d":1,"c":1}}');
  expect(compactJson(value, { sortKeys: false })).toBe('{"b":1,"a":{"d":1,"c":1}}');
  expect(compactJson(value, { sortKeys: true })).toBe('{"a":{"c":1,"d":1},"b":1}');
});
