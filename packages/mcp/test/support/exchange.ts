import { type AuthInfo, InMemoryTransport, Server } from '@modelcontextprotocol/server';
import type { Clock } from '@sealring/core';
import {
  protectRequestState,
  type RejectEvent,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from '../../src/index.ts';

export interface Outcome {
  /** Whether the handler ran. */
  readonly handled: boolean;
  /** The result of its `requestState()`. */
  readonly state: unknown;
  readonly result: unknown;
  readonly error: unknown;
  readonly events: readonly RejectEvent[];
  /** The errors that `server.onerror` received. */
  readonly errors: readonly Error[];
}

/** A fixed clock. */
export function clockAt(wallMs: number): Clock {
  return { wallMs: () => wallMs, monotonicNs: () => 0n };
}

/**
 * One request, as raw JSON-RPC, to a protected server of the real SDK whose only handler is the fallback: it receives
 * the parameters as they were on the wire, for any method.
 */
export async function exchange(
  request: { readonly method: string; readonly params: Record<string, unknown> },
  options: RequestStateSecurityOptions,
  authInfo?: AuthInfo,
  handle: (state: unknown) => unknown = () => ({}),
): Promise<Outcome> {
  const events: RejectEvent[] = [];
  const errors: Error[] = [];
  let handled = false;
  let state: unknown;
  const server = new Server({ name: 'exchange', version: '1.0.0' });
  protectRequestState(server, new RequestStateSecurity({ ...options, onReject: (event) => events.push(event) }), {
    defaultAudience: null,
  });
  Object.assign(server, { onerror: (error: Error) => errors.push(error) });
  server.fallbackRequestHandler = async (_request, ctx) => {
    handled = true;
    state = ctx.mcpReq.requestState();
    return Object(handle(state));
  };
  const { result, error } = await answerOf(server, request, authInfo);
  return { handled, state, result, error, events, errors };
}

/** A server's answer to one request, as raw JSON-RPC. */
export async function answerOf(
  server: Server,
  request: { readonly method: string; readonly params?: Record<string, unknown> },
  authInfo?: AuthInfo,
): Promise<{ readonly result?: unknown; readonly error?: unknown }> {
  const [client, transport] = InMemoryTransport.createLinkedPair();
  await server.connect(transport);
  const answer = new Promise<unknown>((resolve) => Object.assign(client, { onmessage: resolve }));
  await client.start();
  await client.send({ jsonrpc: '2.0', id: 1, ...request }, authInfo === undefined ? {} : { authInfo });
  const message = Object(await answer);
  await client.close();
  return message;
}
