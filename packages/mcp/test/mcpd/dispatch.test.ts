import { randomBytes } from 'node:crypto';
import { McpServer, Server } from '@modelcontextprotocol/server';
import type { KmsCodec } from '@sealring/core';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  authenticatedPrincipal,
  createProtectedMcpServer,
  protectRequestState,
  type RejectEvent,
} from '../../src/index.ts';
import {
  createMcpdRequestStateCodec,
  createMcpdRequestStateSecurity,
  type McpdRequestStateSecurityOptions,
} from '../../src/mcpd/index.ts';
import { NonceBudget } from '../../src/mcpd/nonce-budget.ts';
import { answerOf } from '../support/exchange.ts';
import { Fleet, HandClock } from '../support/rings.ts';
import {
  CONFIRM,
  type HttpServer,
  NOT_SEALED,
  type RefundCall,
  registerRefund,
  serveHttp,
  textOf,
  tokenOf,
  YES,
} from '../support/served.ts';

const KEY = randomBytes(32);
const clock = new HandClock(1_795_000_000_000);
const options = { key: KEY, mode: 'encrypted', binding: 'authSubjectAndTool', clock } as const;
/** The result of an mcp.d server with the same settings. */
const peer = createMcpdRequestStateCodec(options);
const alice = { subject: 'alice', target: 'tools/call\0refund' };
const ORDER = { name: 'refund', arguments: { order: 'A1' } };

const events: RejectEvent[] = [];
const errors: string[] = [];
const seen: RefundCall[] = [];
let http: HttpServer;

beforeAll(async () => {
  const security = createMcpdRequestStateSecurity({ ...options, onReject: (event) => events.push(event) });
  http = await serveHttp(() => {
    const server = createProtectedMcpServer({
      McpServer,
      serverInfo: { name: 'refund-desk', version: '1.0.0' },
      security,
    });
    Object.assign(server.server, { onerror: (error: Error) => errors.push(error.message) });
    registerRefund(server, seen);
    server.registerTool('empty', {}, () => ({
      resultType: 'input_required',
      inputRequests: { confirm: CONFIRM },
      requestState: '',
    }));
    server.registerTool('large', {}, () => ({
      resultType: 'input_required',
      inputRequests: { confirm: CONFIRM },
      requestState: 'x'.repeat(60_000),
    }));
    return server;
  });
});
afterAll(() => http[Symbol.asyncDispose]());
beforeEach(() => {
  for (const list of [events, errors, seen]) list.length = 0;
});

const call = (params: Record<string, unknown>, user = 'alice') =>
  http.call('tools/call', { ...ORDER, ...params }, { user });

/** A server without HTTP whose only handler asks with `first`, or reports the state that it got back. */
function fallback(more: Partial<McpdRequestStateSecurityOptions>, first = 'first'): Server {
  const security = createMcpdRequestStateSecurity({ ...options, ...more, onReject: (event) => events.push(event) });
  const server = protectRequestState(new Server({ name: 'refund-desk', version: '1.0.0' }), security);
  server.fallbackRequestHandler = async (_request, ctx) => {
    const state = ctx.mcpReq.requestState<string>();
    return state === undefined ? { resultType: 'input_required', requestState: first } : { state };
  };
  return server;
}

describe('createMcpdRequestStateSecurity', () => {
  test('exchanges tokens with an mcp.d server in both directions, bound to subject, method and name', async () => {
    const token = tokenOf(await call({}));
    expect(token).toMatch(/^v1e\./);
    expect(peer.decode(token, alice)).toBe('asked:A1');
    expect(textOf(await call({ requestState: peer.encode('from mcp.d', alice), inputResponses: YES }))).toBe(
      'from mcp.d',
    );
    expect(seen.at(-1)).toMatchObject({ state: 'from mcp.d', answers: YES });
    expect(events).toEqual([]);
  });

  test.each<[string, (token: string) => string, string]>([
    ['forged', () => 'v1e.forged', 'alice'],
    ['plaintext', () => 'asked:A1', 'alice'],
    ['another user’s', (token) => token, 'mallory'],
    ['another tool’s', () => peer.encode('x', { ...alice, target: 'tools/call\0other' }), 'alice'],
    ['a prompt’s', () => peer.encode('x', { ...alice, target: 'prompts/get\0refund' }), 'alice'],
    [
      'of another key',
      () => createMcpdRequestStateCodec({ ...options, key: randomBytes(32) }).encode('x', alice),
      'alice',
    ],
    ['huge', () => 'x'.repeat(300_000), 'alice'],
  ])('with a token that is %s, the handler runs again without the input responses', async (_name, tokenFor, user) => {
    const token = tokenOf(await call({}));
    const answer = await call({ requestState: tokenFor(token), inputResponses: YES }, user);
    expect(peer.decode(tokenOf(answer), { ...alice, subject: user })).toBe('asked:A1');
    expect(seen.at(-1)).toEqual({ order: 'A1', state: undefined, answers: undefined });
    expect(events).toEqual([
      { direction: 'inbound', method: 'tools/call', reason: expect.stringMatching(/authentication failed|malformed/) },
    ]);
    expect(errors).toEqual([expect.stringContaining('refused inbound on tools/call')]);
  });

  test('runs the handler again for a token that expired after 300 seconds', async () => {
    const requestState = tokenOf(await call({}));
    clock.advance(301);
    await call({ requestState, inputResponses: YES });
    expect(seen.at(-1)).toMatchObject({ state: undefined, answers: undefined });
    expect(events).toHaveLength(1);
  });

  test('sends no empty state, whereas mcp.d sends it in plaintext', async () => {
    const { result } = await call({ name: 'empty', arguments: {} });
    expect(result).toMatchObject({ resultType: 'input_required' });
    expect(result).not.toHaveProperty('requestState');
    expect(events).toEqual([]);
  });

  test('a token that would be too long is not sent', async () => {
    expect((await call({ name: 'large', arguments: {} })).error).toEqual(NOT_SEALED);
    expect(events).toEqual([{ direction: 'outbound', method: 'tools/call', reason: 'state too large' }]);
  });

  test('neither accepts nor seals a token for a subject that cannot be determined or bound', async () => {
    const failing = createMcpdRequestStateSecurity({
      ...options,
      subject: (ctx) => {
        if (ctx.http?.authInfo?.extra?.['sub'] === 'alice') throw new Error('out of order');
        return 'a\0b';
      },
      onReject: (event) => events.push(event),
    });
    await using server = await serveHttp(() => {
      const inner = protectRequestState(new McpServer({ name: 'refund-desk', version: '1.0.0' }), failing);
      registerRefund(inner, seen);
      return inner;
    });
    for (const user of ['alice', 'bob']) {
      const requestState = peer.encode('x', alice);
      const answer = await server.call('tools/call', { ...ORDER, requestState }, { user });
      expect(answer.error).toEqual(NOT_SEALED);
      expect(seen.at(-1)).toMatchObject({ state: undefined });
    }
    expect(events.map(({ direction, reason }) => `${direction} ${reason}`)).toEqual([
      'inbound principal binding error',
      'outbound principal binding error',
      'inbound authentication failed',
      'outbound codec error',
    ]);
  });

  test('binds a request without a subject to the empty subject, over HTTP and other transports', async () => {
    const token = tokenOf(await http.call('tools/call', ORDER));
    expect(peer.decode(token, { ...alice, subject: '' })).toBe('asked:A1');
    expect(textOf(await http.call('tools/call', { ...ORDER, requestState: token }))).toBe('asked:A1');
    const { result } = await answerOf(fallback({}), { method: 'tools/call', params: { name: 'refund' } });
    expect(peer.decode(Object(result).requestState, { ...alice, subject: '' })).toBe('first');
    expect(events).toEqual([]);
  });

  test('seals nothing for a request whose name is not a string', async () => {
    const { error } = await answerOf(fallback({}), { method: 'tools/call', params: { name: 5 } });
    expect(error).toEqual(NOT_SEALED);
    expect(events).toEqual([{ direction: 'outbound', method: 'tools/call', reason: 'request binding' }]);
  });

  test('binds the OAuth client with authenticatedPrincipal if the access token has no subject', async () => {
    const server = fallback({ subject: authenticatedPrincipal });
    const authInfo = { token: 't', clientId: 'web', scopes: [] };
    const { result } = await answerOf(server, { method: 'tools/call', params: { name: 'refund' } }, authInfo);
    expect(peer.decode(Object(result).requestState, { ...alice, subject: '["web",null,null]' })).toBe('first');
    expect(events).toEqual([]);
  });

  test('refuses a requestState that is not a string, and runs the handler again', async () => {
    const params = { name: 'refund', requestState: 5 };
    const { result } = await answerOf(fallback({}), { method: 'tools/call', params });
    expect(peer.decode(Object(result).requestState, { ...alice, subject: '' })).toBe('first');
    expect(events).toEqual([{ direction: 'inbound', method: 'tools/call', reason: 'non-string requestState' }]);
  });

  test('seals tokens up to maxTokenLength, and uses no nonce for a state that is too long (F1)', async () => {
    const spent = vi.spyOn(NonceBudget.prototype, 'spend');
    const ask = (server: Server) => answerOf(server, { method: 'tools/call', params: { name: 'refund' } });
    const fitting = 'x'.repeat(300);
    const { length } = peer.encode(fitting, { ...alice, subject: '' });
    spent.mockClear();
    const exact = Object((await ask(fallback({ maxTokenLength: length }, fitting))).result).requestState;
    expect(exact).toHaveLength(length);
    expect(spent).toHaveBeenCalledTimes(1);
    expect((await ask(fallback({ maxTokenLength: length - 1 }, fitting))).error).toEqual(NOT_SEALED);
    spent.mockClear();
    expect((await ask(fallback({ maxTokenLength: 299 }, fitting))).error).toEqual(NOT_SEALED);
    expect(spent).not.toHaveBeenCalled();
    spent.mockRestore();
    expect(events.map((event) => event.reason)).toEqual(['state too large', 'state too large']);
  });

  test('signs with revision 2026-06 as the servers of June 2026 did', async () => {
    const signed = { mode: 'signed', revision: '2026-06' } as const;
    const { result } = await answerOf(fallback(signed), { method: 'tools/call', params: { name: 'refund' } });
    const token: string = Object(result).requestState;
    const nobody = { ...alice, subject: '' };
    expect(createMcpdRequestStateCodec({ ...options, ...signed }).decode(token, nobody)).toBe('first');
    // Made under another key than the current one: such a server does not unseal it.
    expect(createMcpdRequestStateCodec({ ...options, mode: 'signed' }).decode(token, nobody)).toBe(null);
  });

  test.each<[string, (codec: KmsCodec) => object]>([
    ['codec', (codec) => ({ key: undefined, codec })],
    ['alsoAccept', (codec) => ({ alsoAccept: codec })],
  ])('accepts a token from a ring in %s whose key this server has not read yet', async (_name, over) => {
    await using fleet = new Fleet(1_795_000_000_000);
    const [ahead, late] = [await fleet.member(), await fleet.member()];
    const common = { ...options, key: undefined, clock: fleet.clock, ttlSeconds: ahead.tokenLifetimeSeconds };
    await ahead.revoke(ahead.health().keys[0]?.id ?? '');
    const sealed = createMcpdRequestStateCodec(Object({ ...common, codec: ahead }));
    const requestState = sealed.encode('from the ring', { ...alice, subject: '' });
    fleet.clock.advance(400);
    const server = fallback({ ...common, key: KEY, ...over(late) });
    const { result } = await answerOf(server, { method: 'tools/call', params: { name: 'refund', requestState } });
    expect(result).toMatchObject({ state: 'from the ring' });
    expect(events).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ['an unknown option', { key: KEY, audience: 'desk' }, 'TypeError'],
    ['an unknown mode', { key: KEY, mode: 'plain' }, 'RangeError'],
    ['a subject of another type', { key: KEY, subject: 'alice' }, 'TypeError'],
    ['a listener of another type', { key: KEY, onReject: 'log' }, 'TypeError'],
    ['a length of another type', { key: KEY, maxTokenLength: 255 }, 'RangeError'],
  ])('%s is rejected', (_name, wrong, error) => {
    expect(() => Reflect.apply(createMcpdRequestStateSecurity, undefined, [wrong])).toThrow(
      expect.objectContaining({ name: error }),
    );
  });
});
