/*
 * The cost of the boundary in a flow of two rounds, and in two calls without any state, as a ratio to the same without
 * it: the official client and a server of the SDK on node:http in one process, over a loopback socket, alternately.
 * Without it the state is plaintext. Turns are short, so that other work of the machine affects both sides of a ratio.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type CallToolResult,
  createMcpHandler,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  type McpServerFactory,
} from '@modelcontextprotocol/server';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { type Estimate, estimate } from './statistics.ts';
import type { Verdict } from './verdict.ts';

const INFO = { name: 'refund-desk', version: '1.0.0' };
const FLOWS_PER_TURN = 5;
const WARM_UP_TURNS = 100;
/** About 358 bytes with the claims around it. */
const STATE = JSON.stringify({ order: '1017', step: 2, note: 'x'.repeat(100) });

export interface BoundaryReport {
  /** Microseconds per flow of two rounds. */
  readonly bare: Estimate;
  readonly guarded: Estimate;
  /** Ratios of neighbouring turns: elapsed time, and CPU time of the process. */
  readonly ratio: Estimate;
  readonly busyRatio: Estimate;
  /** The ratio for two calls without a state. */
  readonly statelessRatio: Estimate;
}

export interface BoundaryOptions {
  /** Turns of five flows for each side, and of five times two calls without a state. Default 1 000. */
  readonly turns?: number;
}

/** Largest ratio of a flow with the boundary to one without, and of two calls without a state. */
const LIMIT = 1.15;
const STATELESS_LIMIT = 1.05;

export function judgeBoundary({ ratio, statelessRatio }: BoundaryReport): readonly Verdict[] {
  return [
    verdict('a flow of two rounds with the boundary, as a multiple of one without it', LIMIT, ratio),
    verdict(
      'two calls without a state, with the boundary, as a multiple of two without it',
      STATELESS_LIMIT,
      statelessRatio,
    ),
  ];
}

function verdict(law: string, limit: number, { median }: Estimate): Verdict {
  // The printed number decides.
  const measured = Number(median.toFixed(2));
  return { law, limit, measured, met: measured <= limit };
}

/** Microseconds per flow in one turn. */
interface Turn {
  readonly passed: number;
  readonly busy: number;
}

function registerRefund(server: McpServer): McpServer {
  const sure = inputRequired.elicit({
    message: 'Refund?',
    requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
  });
  server.registerTool('refund', {}, (ctx): CallToolResult | InputRequiredResult => {
    const state = ctx.mcpReq.requestState<string>();
    if (state === undefined) return inputRequired({ inputRequests: { sure }, requestState: STATE });
    if (state !== STATE) throw new Error('another state');
    return { content: [{ type: 'text', text: 'refunded' }] };
  });
  server.registerTool('look', {}, (): CallToolResult => ({ content: [{ type: 'text', text: 'refundable' }] }));
  return server;
}

interface Round extends AsyncDisposable {
  /** One flow: the client calls, answers the question, and calls again. */
  flow(): Promise<void>;
  /** Two calls without a state, in sequence. */
  twoCalls(): Promise<void>;
}

async function serve(factory: McpServerFactory): Promise<Round> {
  const handle = toNodeHandler(createMcpHandler(factory));
  const auth = { token: 'x', clientId: 'web', scopes: [], extra: { iss: 'https://idp.example', sub: 'ada' } };
  const http = createServer((request, response) => {
    const { method = 'GET', url = '/' } = request;
    void handle(Object.assign(request, { method, url, auth }), response);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const client = new Client(
    { name: 'bench', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
  const address = http.address() as AddressInfo;
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${address.port}/mcp`)));
  const call = async (name: string): Promise<void> => {
    const { isError } = await client.callTool({ name, arguments: { order: '1017' } });
    if (isError === true) throw new Error('the call did not end well');
  };
  return {
    flow: () => call('refund'),
    async twoCalls() {
      await call('look');
      await call('look');
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      http.closeAllConnections();
      http.close();
    },
  };
}

export async function measureBoundary(
  { turns = 1_000 }: BoundaryOptions = {},
  progress: (done: number) => void = () => undefined,
): Promise<BoundaryReport> {
  await using codec = await createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
  });
  const security = new RequestStateSecurity({ codec, requireSubject: true });
  await using bare = await serve(() => registerRefund(new McpServer(INFO)));
  await using guarded = await serve(() =>
    registerRefund(createProtectedMcpServer({ McpServer, serverInfo: INFO, security })),
  );
  const [bareTurns, guardedTurns, statelessRatios]: [Turn[], Turn[], number[]] = [[], [], []];
  for (let turn = -WARM_UP_TURNS; turn < turns; turn++) {
    // The order alternates, so that neither side always collects the other's garbage.
    const order = turn % 2 === 0 ? [bare, guarded] : [guarded, bare];
    for (const round of order) {
      const taken = await take(() => round.flow());
      if (turn >= 0) (round === bare ? bareTurns : guardedTurns).push(taken);
    }
    const stateless = new Map<Round, Turn>();
    for (const round of order) stateless.set(round, await take(() => round.twoCalls()));
    if (turn >= 0) statelessRatios.push(quotient(stateless.get(guarded)?.passed, stateless.get(bare)?.passed));
    progress((turn + WARM_UP_TURNS + 1) / (turns + WARM_UP_TURNS));
  }
  const ratioOf = (kind: keyof Turn): Estimate =>
    estimate(guardedTurns.map((one, turn) => quotient(one[kind], bareTurns[turn]?.[kind])));
  return {
    bare: estimate(bareTurns.map(({ passed }) => passed)),
    guarded: estimate(guardedTurns.map(({ passed }) => passed)),
    ratio: ratioOf('passed'),
    busyRatio: ratioOf('busy'),
    statelessRatio: estimate(statelessRatios),
  };
}

function quotient(guarded: number | undefined, bare: number | undefined): number {
  return (guarded ?? Number.NaN) / (bare ?? Number.NaN);
}

async function take(work: () => Promise<void>): Promise<Turn> {
  const started = performance.now();
  const before = process.cpuUsage();
  for (let i = 0; i < FLOWS_PER_TURN; i++) await work();
  const { user, system } = process.cpuUsage(before);
  const passed = (performance.now() - started) * 1_000;
  return { passed: passed / FLOWS_PER_TURN, busy: (user + system) / FLOWS_PER_TURN };
}
