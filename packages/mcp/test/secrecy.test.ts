import { inspect } from 'node:util';
import { McpServer } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createProtectedMcpServer, RequestStateSecurity } from '../src/index.ts';
import { secretKey } from '../src/shared/secret-key.ts';
import { clockAt } from './support/exchange.ts';
import { type Answer, type HttpServer, registerRefund, serveHttp, tokenOf } from './support/served.ts';

const KEY = 'canary-key-canary-key-canary-key-canary-key';
const USER = 'canary-user';
const CANARY = /canary/i;
const encodings = (text: string) => [text, Buffer.from(text).toString('base64url'), Buffer.from(text).toString('hex')];
const NOW = 1_795_000_000_000;
const codec = new AesGcmRequestStateCodec([KEY]);

/** All output anywhere, except what a user's own callback must receive. */
const sinks: string[] = [];
let http: HttpServer;
let wallMs = NOW;
let broken: (() => never) | undefined;

function log(...values: unknown[]): void {
  for (const value of values) sinks.push(inspect(value, { depth: 9, showHidden: true }));
}

beforeAll(async () => {
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const)
    vi.spyOn(console, method).mockImplementation(log);
  vi.spyOn(process, 'emitWarning').mockImplementation(log);
  const security = new RequestStateSecurity({
    codec: {
      seal: (payload) => (broken === undefined ? codec.seal(payload) : broken()),
      unseal: (token) => (broken === undefined ? codec.unseal(token) : broken()),
    },
    clock: { ...clockAt(0), wallMs: () => wallMs },
    onReject: log,
  });
  log(security);
  http = await serveHttp(() => {
    const server = createProtectedMcpServer({
      McpServer,
      serverInfo: { name: 'refund-desk', version: '1.0.0' },
      security,
    });
    Object.assign(server.server, { onerror: log });
    registerRefund(server);
    return server;
  });
});

afterAll(async () => {
  await http[Symbol.asyncDispose]();
  vi.restoreAllMocks();
});

async function call(params: Record<string, unknown>, user = USER): Promise<Answer> {
  const answer = await http.call('tools/call', { name: 'refund', ...params }, { user });
  log(answer);
  return answer;
}

const ORDER = { arguments: { order: 'canary-order' } };

describe('the outputs of a protected server (F20, F21)', () => {
  test('no output contains the state, the principal, the access token or the key, and all refusals look alike', async () => {
    const first = await http.call('tools/call', { name: 'refund', ...ORDER }, { user: USER });
    const requestState = tokenOf(first);
    log({ ...first.result, inputRequests: undefined });
    const stranger = new AesGcmRequestStateCodec(['another key, another key, another key']);
    const crafted = (claims: unknown) => codec.seal(Buffer.from(JSON.stringify(claims)));
    const foreign: Record<string, unknown> = JSON.parse(Buffer.from(codec.unseal(requestState)).toString());
    const refusals = [
      await call({ ...ORDER, requestState: 'canary-forged' }),
      await call({ ...ORDER, requestState: `${requestState.slice(0, -4)}AAAA` }),
      await call({ ...ORDER, requestState: stranger.seal(codec.unseal(requestState)) }),
      await call({ arguments: { order: 'other' }, requestState }),
      await call({ ...ORDER, requestState }, 'mallory'),
      await call({ ...ORDER, requestState: crafted('canary') }),
      await call({ ...ORDER, requestState: crafted({ ...foreign, aud: 'canary-audience' }) }),
      await call({ ...ORDER, requestState: crafted({ ...foreign, p: undefined }) }),
      await call({ ...ORDER, requestState: 'x'.repeat(300_000) }),
    ];
    wallMs = NOW - 61_000;
    refusals.push(await call({ ...ORDER, requestState }));
    wallMs = NOW + 600_000;
    refusals.push(await call({ ...ORDER, requestState }));
    wallMs = NOW;
    broken = () => {
      throw Object.assign(new Error(`canary ${KEY}`), { name: 'canary error', cause: { dataKey: KEY } });
    };
    refusals.push(await call({ ...ORDER, requestState }));
    const unsealed = await call(ORDER);
    broken = undefined;
    expect(unsealed.error).toEqual({ code: -32603, message: 'Internal error' });
    // One text, one shape: only the JSON-RPC id differs.
    expect(new Set(refusals.map((answer) => JSON.stringify({ ...answer, id: 0 }))).size).toBe(1);
    const reasons = sinks.flatMap(
      (text) => /reason: '([^']+)'/.exec(text.replaceAll('invalid_request_state', ''))?.[1] ?? [],
    );
    expect(new Set(reasons)).toEqual(
      new Set([
        'malformed',
        'authentication failed',
        'unknown key',
        'request binding',
        'principal',
        'audience',
        'principal drift',
        'minted in the future',
        'expired',
        'codec error',
      ]),
    );
    expect(sinks.filter((text) => CANARY.test(text))).toEqual([]);
    const all = sinks.join('\n');
    for (const secret of [KEY, USER, `access-token-of-${USER}`, 'asked:canary-order'].flatMap(encodings)) {
      expect(all).not.toContain(secret);
    }
  });

  test('the bytes of a key are overwritten after the key is imported', () => {
    const bytes = Uint8Array.of(1, 2, 3);
    expect(secretKey(bytes).export()).toEqual(Buffer.of(1, 2, 3));
    expect(bytes).toEqual(new Uint8Array(3));
  });

  test('the search finds planted secrets', async () => {
    log(new Error('outer', { cause: { deep: 'canary' } }));
    expect(sinks.some((text) => CANARY.test(text))).toBe(true);
  });
});
