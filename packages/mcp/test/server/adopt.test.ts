import { Client } from '@modelcontextprotocol/client';
import { createRequestStateCodec, InMemoryTransport, McpServer, Server } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { protectRequestState, type RejectEvent, RequestStateSecurity } from '../../src/index.ts';
import {
  CONFIRM,
  initialize,
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
const KEY = 'a key of thirty-two bytes or more, for tests';
const REFUND = { name: 'refund', arguments: { order: 'A1' } };
const ADOPT = { defaultAudience: 'refund-desk', adopt: true };

function adopting(seen: RefundCall[] = [], events: RejectEvent[] = [], policy: object = {}): () => McpServer {
  const codec = new AesGcmRequestStateCodec([KEY]);
  const security = new RequestStateSecurity({ codec, onReject: (event) => void events.push(event), ...policy });
  return () => {
    const server = new McpServer(INFO, { capabilities: { tools: {}, prompts: {} } });
    registerRefund(server, seen);
    protectRequestState(server, security, ADOPT);
    server.registerTool('later', {}, () => ({
      resultType: 'input_required',
      inputRequests: { confirm: CONFIRM },
      requestState: 'late',
    }));
    server.registerResource('note', 'note:1', {}, () => ({ resultType: 'input_required', requestState: 'read' }));
    return server;
  };
}

test.each([false, true])(
  'with adopt: %s, a protected server does not send an input_required result that a handler wrote as text',
  async (adopt) => {
    const events: RejectEvent[] = [];
    const security = new RequestStateSecurity({ keys: [KEY], onReject: (event) => void events.push(event) });
    const asked = { resultType: 'input_required', inputRequests: { confirm: CONFIRM }, requestState: 'plaintext' };
    const register = (server: McpServer): McpServer => {
      server.registerTool('printed', {}, () => ({ content: [{ type: 'text', text: JSON.stringify(asked) }] }));
      return server;
    };
    await using http = await serveHttp(() => {
      const server = new McpServer(INFO);
      if (!adopt) return register(protectRequestState(server, security, ADOPT));
      return protectRequestState(register(server), security, ADOPT);
    });
    const answer = await http.call('tools/call', { name: 'printed' });
    expect(answer.error).toEqual(NOT_SEALED);
    expect(JSON.stringify(answer)).not.toContain('plaintext');
    expect(events).toEqual([{ direction: 'outbound', method: 'tools/call', reason: 'unsealed requestState' }]);
  },
);

describe('a server that has handlers, protected with adopt', () => {
  test('seals the states of handlers registered before or after protection, and accepts these states back', async () => {
    const seen: RefundCall[] = [];
    await using http = await serveHttp(adopting(seen));
    const requestState = tokenOf(await http.call('tools/call', REFUND, { user: 'ada' }));
    expect(requestState).toMatch(/^v1\./);
    const second = await http.call('tools/call', { ...REFUND, requestState, inputResponses: YES }, { user: 'ada' });
    expect(textOf(second)).toBe('asked:A1');
    expect(seen[1]).toEqual({ order: 'A1', state: 'asked:A1', answers: YES });
    expect(tokenOf(await http.call('tools/call', { name: 'later' }))).toMatch(/^v1\./);
    expect(tokenOf(await http.call('resources/read', { uri: 'note:1' }))).toMatch(/^v1\./);
  });

  test.each([
    ['a plaintext state', { requestState: 'asked:A1' }, 'ada', 'malformed'],
    ['other arguments', { arguments: { order: 'A2' } }, 'ada', 'request binding'],
    ['another user', {}, 'mallory', 'principal'],
  ])('a request with %s is refused', async (_name, change, user, reason) => {
    const [seen, events]: [RefundCall[], RejectEvent[]] = [[], []];
    await using http = await serveHttp(adopting(seen, events));
    const requestState = tokenOf(await http.call('tools/call', REFUND, { user: 'ada' }));
    const answer = await http.call('tools/call', { ...REFUND, requestState, ...change }, { user });
    expect(answer.error).toEqual(REFUSED);
    expect(events).toEqual([{ direction: 'inbound', method: 'tools/call', reason }]);
    expect(seen).toHaveLength(1);
  });

  test('with re-elicit, the handler runs again after an expired token, without the state and the input responses', async () => {
    const seen: RefundCall[] = [];
    let now = 1_795_000_000_000;
    const clock = { wallMs: () => now, monotonicNs: () => 0n };
    await using http = await serveHttp(adopting(seen, [], { clock, onInvalid: 're-elicit' }));
    const requestState = tokenOf(await http.call('tools/call', REFUND, { user: 'ada' }));
    now += 601_000;
    const again = await http.call('tools/call', { ...REFUND, requestState, inputResponses: YES }, { user: 'ada' });
    expect(tokenOf(again)).toMatch(/^v1\./);
    expect(seen[1]).toEqual({ order: 'A1', state: undefined, answers: undefined });
  });

  test('lets the SDK serve a client of a 2025 revision in process', async () => {
    const seen: RefundCall[] = [];
    const [mine, transport] = InMemoryTransport.createLinkedPair();
    await adopting(seen)().connect(transport);
    const client = new Client(INFO, { capabilities: { elicitation: {} } });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(mine);
    expect((await client.callTool(REFUND)).content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    expect(seen.map(({ state }) => state)).toEqual([undefined, 'asked:A1']);
    await client.close();
  });

  test('refuses a state from a client of a 2025 revision', async () => {
    const connection = await serveConnection(adopting());
    await initialize(connection);
    await connection.send({ id: 1, method: 'tools/call', params: { ...REFUND, requestState: 'asked:A1' } });
    expect((await connection.next()).error).toEqual(REFUSED);
    await connection.close();
  });

  test('passes the state, not the token, to the server’s own requestState.verify', async () => {
    const codec = createRequestStateCodec<{ step: number }>({ key: KEY });
    const security = new RequestStateSecurity({ keys: [KEY] });
    await using http = await serveHttp(() => {
      const server = new McpServer(INFO, { requestState: { verify: (token, ctx) => codec.verify(token, ctx) } });
      server.registerTool('wizard', {}, async (ctx) => {
        const step = ctx.mcpReq.requestState<{ step: number }>()?.step ?? 0;
        if (step === 1) return { content: [{ type: 'text', text: 'done' }] };
        return { resultType: 'input_required', requestState: await codec.mint({ step: step + 1 }, ctx) };
      });
      return protectRequestState(server, security, ADOPT);
    });
    const requestState = tokenOf(await http.call('tools/call', { name: 'wizard' }));
    expect(requestState).toMatch(/^v1\./);
    expect(textOf(await http.call('tools/call', { name: 'wizard', requestState }))).toBe('done');
  });

  test('a state that is not a string is not sent', async () => {
    const security = new RequestStateSecurity({ keys: [KEY] });
    await using http = await serveHttp(() => {
      const server = new McpServer(INFO);
      const result = {
        resultType: 'input_required',
        inputRequests: { confirm: CONFIRM },
        requestState: { order: 'A1' },
      };
      server.registerTool('refund', {}, () => Object(result));
      return protectRequestState(server, security, ADOPT);
    });
    expect((await http.call('tools/call', { name: 'refund' })).error).toEqual(NOT_SEALED);
  });
});

describe('the option adopt', () => {
  const security = new RequestStateSecurity({ keys: [KEY] });
  const withTool = (): McpServer => {
    const server = new McpServer(INFO);
    registerRefund(server);
    return server;
  };

  test('accepts a server without a registered handler', () => {
    expect(() => protectRequestState(new McpServer(INFO), security, ADOPT)).not.toThrow();
  });

  test('rejects a value other than true or false', () => {
    expect(() => protectRequestState(withTool(), security, { ...ADOPT, adopt: Object('yes') })).toThrow(
      'adopt must be a boolean',
    );
  });

  test('rejects a server that is already protected, and one that is already connected', async () => {
    expect(() => protectRequestState(protectRequestState(withTool(), security, ADOPT), security, ADOPT)).toThrow(
      'already protected',
    );
    const connected = withTool();
    await connected.connect(InMemoryTransport.createLinkedPair()[0]);
    expect(() => protectRequestState(connected, security, ADOPT)).toThrow('already connected');
    await connected.close();
  });

  test.each([[[]], [[['tools/call', () => ({})] as const]]])(
    'rejects an SDK whose list of handlers is %o although more handlers are registered',
    (listed) => {
      const server = new Server(INFO, { capabilities: { tools: {} } });
      server.setRequestHandler('tools/call', () => ({ content: [] }));
      Object.assign(server, {
        _requestHandlers: new Map(listed),
        assertCanSetRequestHandler: () => {
          throw new Error('taken');
        },
      });
      expect(() => protectRequestState(server, security, ADOPT)).toThrow('does not support this version of the SDK');
    },
  );

  test('a server with handlers is rejected by default, with a message that names the option adopt', () => {
    expect(() => protectRequestState(withTool(), security, { defaultAudience: null })).toThrow('or set adopt: true');
  });
});
