/**
 * The MCP server under test, in its own process: the official SDK on node:http, tokens by a codec on AWS KMS and Redis.
 * It times every seal and unseal around the codec, below the boundary.
 */
import { createServer } from 'node:http';
import { monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, type InputRequiredResult, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { createKmsCodec, type KmsCodec, type RingPolicy, RingStoreError } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { redisRing } from '@sealring/redis';
import { keyWrapperAt } from '../fleet/member-kms.ts';
import { carryOut } from './steadiness-program.ts';

/** How often a rotation is tried again. */
const ATTEMPTS = 50;

export interface ServerSettings {
  readonly kms: { readonly endpoint: string; readonly keyId: string };
  readonly redis: string;
  readonly policy: Partial<RingPolicy>;
}

/** The server's own record since the last order to start one. */
export interface Recording {
  /** Nanoseconds of each seal, in order. */
  readonly seals: readonly number[];
  /** Unseals of accepted tokens. */
  readonly unseals: readonly number[];
  /** Unseals of refused tokens. */
  readonly refusals: readonly number[];
  /** Different keys that sealed. */
  readonly sealingKeys: number;
  /** Milliseconds between two turns of a timer of 1 ms: 99.9 % are shorter. */
  readonly eventLoopP999: number;
  /** Garbage collections, milliseconds: all of them, and the longest. */
  readonly collecting: number;
  readonly longestCollection: number;
  readonly seconds: number;
}

export interface ServerHealth {
  readonly status: 'ok' | 'degraded' | 'failing';
  readonly keys: number;
  /** Whether a published key does not seal yet. */
  readonly isPropagating: boolean;
  /** `kms unavailable`, `store unavailable`, … */
  readonly lastError: string | undefined;
}

/** About 358 bytes with the claims around it, as in the token path. */
const STATE = JSON.stringify({ order: '1017', step: 2, note: 'x'.repeat(100) });
const USER = { token: 'x', clientId: 'web', scopes: [], extra: { iss: 'https://idp.example', sub: 'ada' } };
/** The end of the key id in a native token, which begins with the prefix and the key id. */
const KEY_ID_END = 'sr1.'.length + 12;

let seals: number[] = [];
let unseals: number[] = [];
let refusals: number[] = [];
let sealingKeys = new Set<string>();
let recordedFrom = performance.now();
let collecting = 0;
let longestCollection = 0;
const eventLoop = monitorEventLoopDelay({ resolution: 1 });
eventLoop.enable();
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) {
    collecting += duration;
    longestCollection = Math.max(longestCollection, duration);
  }
}).observe({ entryTypes: ['gc'] });

let codec: KmsCodec | undefined;

function running(): KmsCodec {
  if (codec === undefined) throw new Error('the server was not started');
  return codec;
}

/** The codec as the boundary uses it, with a clock around it. */
function timed(inner: KmsCodec) {
  return {
    tokenLifetimeSeconds: inner.tokenLifetimeSeconds,
    prepare: (token: string, options: { readonly signal?: AbortSignal }) => inner.prepare(token, options),
    seal(payload: Uint8Array): string {
      const started = process.hrtime.bigint();
      const token = inner.seal(payload);
      seals.push(Number(process.hrtime.bigint() - started));
      sealingKeys.add(token.slice(0, KEY_ID_END));
      return token;
    },
    unseal(token: string): Uint8Array {
      const started = process.hrtime.bigint();
      try {
        const payload = inner.unseal(token);
        unseals.push(Number(process.hrtime.bigint() - started));
        return payload;
      } catch (error) {
        refusals.push(Number(process.hrtime.bigint() - started));
        throw error;
      }
    },
  };
}

const orders = {
  /** Returns its address. */
  async start({ kms, redis, policy }: ServerSettings): Promise<string> {
    const keyWrapper = await keyWrapperAt(kms);
    const ring = redisRing({ url: redis, key: 'sealring:steadiness' });
    codec = await createKmsCodec({ keyWrapper, ring, policy, create: 'now' });
    const security = new RequestStateSecurity({ codec: timed(codec), requireSubject: true });
    const handle = toNodeHandler(
      createMcpHandler(() => {
        const server = createProtectedMcpServer({
          McpServer,
          serverInfo: { name: 'refund-desk', version: '1.0.0' },
          security,
        });
        // An endless flow: every returned token is unsealed, and another one is sealed.
        server.registerTool('refund', {}, (ctx): InputRequiredResult => {
          const state = ctx.mcpReq.requestState<string>();
          if (state !== undefined && state !== STATE) throw new Error('another state');
          return inputRequired({ requestState: STATE });
        });
        return server;
      }),
    );
    const http = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
      const { method = 'GET', url = '/' } = request;
      void handle(Object.assign(request, { method, url, auth: USER }), response);
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const address = http.address();
    if (address === null || typeof address === 'string') throw new Error('not listening on a port');
    return `http://127.0.0.1:${address.port}/mcp`;
  },

  /** Starts a new record. */
  record(): void {
    [seals, unseals, refusals, sealingKeys] = [[], [], [], new Set()];
    [collecting, longestCollection] = [0, 0];
    eventLoop.reset();
    recordedFrom = performance.now();
  },

  take(): Recording {
    const seconds = (performance.now() - recordedFrom) / 1_000;
    const eventLoopP999 = eventLoop.percentile(99.9) / 1e6;
    const keys = sealingKeys.size;
    return { seals, unseals, refusals, sealingKeys: keys, eventLoopP999, collecting, longestCollection, seconds };
  },

  health(): ServerHealth {
    const { status, keys, lastError } = running().health();
    const isPropagating = keys.some(({ state }) => state === 'propagating');
    const failure = lastError && `${lastError.source} ${lastError.kind}`;
    return { status, keys: keys.length, isPropagating, lastError: failure };
  },

  /** Reads the ring repeatedly. Returns how often. */
  async refreshFor({ seconds, everySeconds }: { seconds: number; everySeconds: number }): Promise<number> {
    const until = performance.now() + seconds * 1_000;
    let refreshes = 0;
    while (performance.now() < until) {
      await running().refresh();
      refreshes += 1;
      await pause(everySeconds * 1_000);
    }
    return refreshes;
  },

  /**
   * Publishes a key that seals after refreshEvery, backoffCap and clockSkew. On a busy machine, a key can take longer
   * than the backoff cap, and is then not published.
   */
  async rotate(): Promise<void> {
    for (let left = ATTEMPTS; ; left--) {
      try {
        await running().rotate({ emergency: true });
        return;
      } catch (error) {
        if (!(error instanceof RingStoreError) || left === 0) throw error;
      }
    }
  },
};

export type ServerOrders = typeof orders;

carryOut(orders);
