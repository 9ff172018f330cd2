import { request as httpRequest } from 'node:http';
import { McpServer } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProtectedMcpServer, type RejectEvent, RequestStateSecurity } from '../src/index.ts';
import { clockAt } from './support/exchange.ts';
import { type HttpServer, MODERN, modern, registerRefund, serveHttp, tokenOf } from './support/served.ts';

const NOW = 1_795_000_000_000;
const codec = new AesGcmRequestStateCodec(['a key of thirty-two bytes or more, for tests']);
const ARGUMENTS = { order: 'A1' };

/** A client's view of an answer. */
interface Wire {
  readonly status: number | undefined;
  readonly headers: string;
  readonly body: string;
}

const reasons: string[] = [];
const spent = new Set<string>();
let wallMs = NOW;
let isCodecBroken = false;
let isPrincipalBroken = false;
let http: HttpServer;

beforeAll(async () => {
  const security = new RequestStateSecurity({
    codec: {
      seal: (payload) => codec.seal(payload),
      unseal: (token) => {
        if (isCodecBroken) throw new Error('out of order');
        return codec.unseal(token);
      },
    },
    bindPrincipal: (ctx) => {
      if (isPrincipalBroken) throw new Error('out of order');
      const subject: unknown = ctx.http?.authInfo?.extra?.['sub'];
      return typeof subject === 'string' ? subject : null;
    },
    singleUse: { claim: async (id) => spent.size < spent.add(id).size },
    clock: { ...clockAt(0), wallMs: () => wallMs },
    onReject: ({ reason }: RejectEvent) => void reasons.push(reason),
  });
  http = await serveHttp(() => {
    const server = createProtectedMcpServer({
      McpServer,
      serverInfo: { name: 'refund-desk', version: '1.0.0' },
      security,
    });
    registerRefund(server);
    return server;
  });
});
afterAll(() => http[Symbol.asyncDispose]());

/** One request with the same id as every other, and every byte of its answer. */
function send(params: Record<string, unknown>, user: string | undefined = 'alice'): Promise<Wire> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: modern({ name: 'refund', arguments: ARGUMENTS, ...params }),
  });
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN,
    'mcp-method': 'tools/call',
    'mcp-name': 'refund',
    ...(user === '' ? {} : { authorization: `Bearer ${user}` }),
  };
  return new Promise((resolve, reject) => {
    const request = httpRequest(http.url, { method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const shown = response.rawHeaders.filter((_, i, all) => (i % 2 === 0 ? all[i] : all[i - 1]) !== 'Date');
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode, headers: shown.join('\n'), body: text });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

function changedAt(token: string, at: number): string {
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}

test('the answer to the client is the same, byte for byte, whatever the reason for the refusal (F20)', async () => {
  const fresh = async (): Promise<string> =>
    tokenOf(await http.call('tools/call', { name: 'refund', arguments: ARGUMENTS }, { user: 'alice' }));
  const token = await fresh();
  const claims: Record<string, unknown> = JSON.parse(Buffer.from(codec.unseal(token)).toString());
  const crafted = (changes: Record<string, unknown>): string =>
    codec.seal(Buffer.from(JSON.stringify({ ...claims, ...changes })));
  const stranger = new AesGcmRequestStateCodec(['another key of thirty-two bytes or more, too']);
  const wires: Wire[] = [];
  // The SDK's own schema refuses a value that is not a string, before the boundary sees it.
  const causes: [string, () => Promise<Wire>][] = [
    ['malformed', () => send({ requestState: 'forged' })],
    ['malformed', () => send({ requestState: 'x'.repeat(300_000) })],
    ['malformed', () => send({ requestState: crafted({ v: 2 }) })],
    ['unknown key', () => send({ requestState: stranger.seal(codec.unseal(token)) })],
    ['authentication failed', () => send({ requestState: changedAt(token, token.length - 4) })],
    ['minted in the future', () => send({ requestState: crafted({ iat: NOW / 1_000 + 61 }) })],
    ['expired', () => send({ requestState: crafted({ exp: NOW / 1_000 }) })],
    ['request binding', () => send({ arguments: { order: 'A2' }, requestState: token })],
    ['audience', () => send({ requestState: crafted({ aud: 'another-desk' }) })],
    ['principal', () => send({ requestState: token }, 'mallory')],
    ['principal drift', () => send({ requestState: token }, '')],
  ];
  for (const [reason, cause] of causes) {
    reasons.length = 0;
    wires.push(await cause());
    expect(reasons).toEqual([reason]);
  }
  isCodecBroken = true;
  wires.push(await send({ requestState: token }));
  isCodecBroken = false;
  isPrincipalBroken = true;
  wires.push(await send({ requestState: token }));
  isPrincipalBroken = false;
  const first = await send({ requestState: token });
  expect(JSON.parse(first.body)).not.toHaveProperty('error');
  wires.push(await send({ requestState: token }));
  expect(reasons.slice(-3)).toEqual(['codec error', 'principal binding error', 'already used']);

  expect(new Set(wires.map((wire) => JSON.stringify(wire))).size).toBe(1);
  expect(JSON.parse(wires[0]?.body ?? '')).toEqual({
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32602, message: 'Invalid or expired requestState', data: { reason: 'invalid_request_state' } },
  });
});
