import type { ServerContext } from '@modelcontextprotocol/server';
import type { Boundary, BoundaryRequest, Round } from '../boundary/boundary.ts';
import { Refusal, type RejectEvent } from '../boundary/refusal.ts';
import type { CarrierMethod, RequestIdentity } from '../boundary/request-identity.ts';
import type { SecurityPolicy } from './policy.ts';
import { principalBinder } from './principal-binder.ts';
import { isInputRequired, StateGuard, withoutState } from './state-guard.ts';
import { markSealed } from './tripwire.ts';

/** The first protocol revision with `input_required` results. Revisions are dates, so they can be compared as text. */
const FIRST_MODERN_REVISION = '2026-07-28';

/** The members of a server that a guard uses. */
export interface GuardedServer {
  onerror?: (error: Error) => void;
  getNegotiatedProtocolVersion(): string | undefined;
}

/** One request before it reaches its handler. */
export interface GuardedRequest {
  readonly method: CarrierMethod;
  /** The result of {@link ServerGuard.identify}, which was called before the parameters could change. */
  readonly identity: RequestIdentity | Refusal;
  readonly ctx: ServerContext;
  /**
   * Whether the SDK itself handles an `input_required` result for a client of a 2025 revision, which does not support it:
   * it calls the same handler again, with the handler's plaintext and the same AbortSignal. Always false for a fallback
   * handler.
   */
  readonly isShimmed: boolean;
}

/** Runs the handlers of one server: handlers get plaintext, and the SDK gets tokens. */
export class ServerGuard {
  readonly #server: GuardedServer;
  readonly #states: StateGuard;
  readonly #bindPrincipal: (ctx: ServerContext) => unknown;
  // Keyed by the AbortSignal of the request, never by its JSON-RPC id, which the client chooses and may repeat.
  #replays: WeakMap<AbortSignal, string> | undefined;

  constructor(server: GuardedServer, policy: SecurityPolicy, boundary: Boundary) {
    this.#server = server;
    this.#states = new StateGuard(policy, boundary, (error) => server.onerror?.(error));
    this.#bindPrincipal = principalBinder(policy);
  }

  /** The parts of this request that a token is bound to, or the refusal that is thrown when a state must be bound. */
  identify(method: CarrierMethod, params: unknown): RequestIdentity | Refusal {
    return this.#states.identify(method, params);
  }

  async run<Request>(
    guarded: GuardedRequest,
    handler: (request: Request, ctx: ServerContext) => unknown,
    first: Request,
  ): Promise<unknown> {
    const { method, identity, isShimmed, ctx: unguarded } = guarded;
    const { signal } = unguarded.mcpReq;
    const revision = this.#server.getNegotiatedProtocolVersion();
    const isModern = revision !== undefined && revision >= FIRST_MODERN_REVISION;
    const isReplayed = isShimmed && !isModern;
    const wire: unknown = unguarded.mcpReq.requestState();
    // An explicit null counts as absent, as in the MCP Python SDK: a client could just as well omit the member.
    const carried = (wire ?? null) !== null;
    const request: BoundaryRequest = {
      method,
      identity,
      signal,
      bindPrincipal: () => this.#bindPrincipal(unguarded),
      warn: (message) => this.#states.report(`${message} on ${method}`),
    };
    let round: Round | undefined;
    let ctx = unguarded;
    if (wire === null) ctx = withState(ctx, undefined);
    else if (carried && !(isReplayed && this.#isReplay(signal, wire))) {
      const accepted = await this.#states.unseal(request, wire);
      ctx = accepted === undefined ? asFirstRound(ctx) : withState(ctx, accepted.state);
      round = accepted?.round;
    }
    const result = await handler(first, ctx);
    if (!isInputRequired(result)) return this.#states.complete(method, result, carried && isModern);
    const state: unknown = result['requestState'];
    if (state === undefined) return result;
    signal.throwIfAborted();
    if (typeof state !== 'string') {
      throw this.#states.refuseOutbound(method, new Refusal('non-string requestState'));
    }
    if (isReplayed) {
      (this.#replays ??= new WeakMap()).set(signal, state);
      return { ...result, requestState: state };
    }
    const token = await this.#states.seal(request, state, round);
    return token === undefined ? withoutState(result) : { ...result, requestState: markSealed(token) };
  }

  /** Reports one refusal. */
  reject(direction: RejectEvent['direction'], method: RejectEvent['method'], refusal: Refusal): void {
    this.#states.reject(direction, method, refusal);
  }

  #isReplay(signal: AbortSignal, wire: unknown): boolean {
    const expected = this.#replays?.get(signal);
    this.#replays?.delete(signal);
    return expected === wire;
  }
}

function withState(ctx: ServerContext, state: string | undefined): ServerContext {
  const mcpReq = { ...ctx.mcpReq };
  // The caller chooses the return type of the SDK's accessor, `requestState<T>()`, which no function can satisfy.
  Reflect.set(mcpReq, 'requestState', () => state);
  return { ...ctx, mcpReq };
}

// The input responses are also removed, because a client could send an "accept" that belongs to no state.
function asFirstRound(ctx: ServerContext): ServerContext {
  const { mcpReq, ...rest } = withState(ctx, undefined);
  delete mcpReq.inputResponses;
  delete mcpReq.droppedInputResponseKeys;
  return { ...rest, mcpReq };
}
