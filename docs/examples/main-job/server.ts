import { createServer, type RequestListener } from 'node:http';
import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { createKmsCodec, fileRing, type KmsCodec } from '@sealring/core';
import { RequestStateSecurity } from '@sealring/mcp';
import { counted, keyWrapperFor } from './kms.ts';
import type { FromServer, Report, ToServer } from './messages.ts';
import { policy } from './policy.ts';
import { refundDesk } from './refund-desk.ts';
import { signIn } from './sign-in.ts';

/** One server of the fleet, in its own process. The story starts it and talks to it over the channel. */
interface Running {
  report(): Report;
  rotate(): Promise<void>;
}

async function start({ name, ringPath, ringName, kms }: Extract<ToServer, { type: 'start' }>): Promise<Running> {
  const { keyWrapper, calls } = counted(await keyWrapperFor(kms));
  const codec = await createKmsCodec({ keyWrapper, ring: fileRing(ringPath), ringName, policy, create: 'now' });
  const { codec: countingCodec, tokens } = countingTokens(codec);
  const shared = {
    codec: countingCodec,
    requireSubject: true,
    onReject: ({ reason }: { readonly reason: string }) => tell({ type: 'refused', reason }),
  };
  // Once per process, outside the factories below: those run for every request.
  const security = new RequestStateSecurity({ ...shared, ttlSeconds: 300 });
  // The same desk with tokens that live for one second, so that no one has to wait to see one expire.
  const brief = new RequestStateSecurity({ ...shared, ttlSeconds: 1 });
  const paths = new Map([
    ['/mcp', toNodeHandler(createMcpHandler(() => refundDesk(name, security)))],
    ['/brief', toNodeHandler(createMcpHandler(() => refundDesk(name, brief)))],
  ]);
  const port = await listen((request, response) => {
    const { method = 'GET', url = '/' } = request;
    const handle = paths.get(url);
    const auth = signIn(request.headers.authorization);
    if (handle === undefined) response.writeHead(404).end();
    else if (auth === undefined) response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    else void handle(Object.assign(request, { method, url, auth }), response);
  });
  tell({ type: 'listening', port });
  return {
    report() {
      const { keys, sealingKey, ready } = codec.health();
      return { keys: keys.map(({ id, state }) => ({ id, state })), sealingKey, ready, ...tokens, kmsCalls: calls };
    },
    rotate: () => codec.rotate(),
  };
}

/**
 * Listens on loopback, on a free port, and accepts only requests that name this machine: no web page may reach it by
 * another name.
 */
async function listen(listener: RequestListener): Promise<number> {
  const isLocal = localhostHostValidation();
  const http = createServer((request, response) => {
    if (isLocal(request, response)) listener(request, response);
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  const address = http.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening on a port');
  return address.port;
}

/** A codec is any object with `seal` and `unseal`: this one forwards every call and counts it. */
function countingTokens(codec: KmsCodec) {
  const tokens = { sealed: 0, unsealed: 0 };
  const { tokenLifetimeSeconds } = codec;
  const countingCodec: Pick<KmsCodec, 'seal' | 'unseal' | 'prepare' | 'tokenLifetimeSeconds'> = {
    tokenLifetimeSeconds,
    prepare: (token, options) => codec.prepare(token, options),
    seal(payload) {
      const token = codec.seal(payload);
      tokens.sealed += 1;
      return token;
    },
    unseal(token) {
      const payload = codec.unseal(token);
      tokens.unsealed += 1;
      return payload;
    },
  };
  return { codec: countingCodec, tokens };
}

function tell(message: FromServer): void {
  process.send?.(message);
}

let running: Promise<Running> | undefined;

async function answer(message: ToServer): Promise<void> {
  if (message.type === 'start') {
    running = start(message);
    await running;
    return;
  }
  const server = await running;
  if (server === undefined) throw new Error(`${message.type} before start`);
  if (message.type === 'rotate') {
    await server.rotate();
    tell({ type: 'rotated' });
  } else {
    tell({ type: 'report', report: server.report() });
  }
}

process.on('message', (message: ToServer) => {
  answer(message).catch((error: unknown) => {
    tell({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  });
});
// Ctrl-C and a closed terminal reach every process: the story ends its servers itself. They end with the story.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit(0));
