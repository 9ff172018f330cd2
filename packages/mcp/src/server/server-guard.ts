import type { ServerContext } from '@modelcontextprotocol/server';
import type { Boundary, BoundaryRequest, Round } from '../boundary/boundary.ts';
import {
  asRefusal,
  errorName,
  internalError,
  invalidRequestStateError,
  Refusal,
  type RejectEvent,
  type RejectReason,
} from '../boundary/refusal.ts';
import type { CarrierMethod, RequestIdentity } from '../boundary/request-identity.ts';
import { boundaryRefused, boundarySealed, boundaryUnsealed } from './events.ts';
import type { OnInvalid, SecurityPolicy } from './policy.ts';
import { principalBinder } from './principal-binder.ts';
import { markSealed } from './tripwire.ts';

/** The first protocol revision with `input_required` results. Revisions are dates and compare as text. */
const FIRST_MODERN_REVISION = '2026-07-28';

/** The members of a server that a guard uses. */
export interface GuardedServer {
  onerror?: (error: Error) => void;
  getNegotiatedProtocolVersion(): string | undefined;
}

/** One request before it reaches its handler. */
export interface GuardedRequest {
  readonly method: CarrierMethod;
  /** The result of {@link ServerGuard.identify} before the parameters could change. */
  readonly identity: RequestIdentity | Refusal;
  readonly ctx: ServerContext;
  /**
   * Whether the SDK itself handles an `input_required` result for a client of a 2025 revision, which does not support it:
   * it calls the same handler again, with the handler's plaintext and the same AbortSignal. Not for a fallback handler.
   */
  readonly isShimmed: boolean;
}

/** Runs the handlers of one server: handlers get plaintext, and the SDK gets tokens. */
export class ServerGuard {
  readonly #server: GuardedServer;
  readonly #policy: SecurityPolicy;
  readonly #boundary: Boundary;
  readonly #bindPrincipal: (ctx: ServerContext) => unknown;
  // By the AbortSignal of the request, never by its JSON-RPC id, which the client chooses and may repeat.
  #replays: WeakMap<AbortSignal, string> | undefined;

  constructor(server: GuardedServer, policy: SecurityPolicy, boundary: Boundary) {
    this.#server = server;
    this.#policy = policy;
    this.#boundary = boundary;
    this.#bindPrincipal = principalBinder(policy);
  }

  /** What a token of this request is bound to, or the refusal that is thrown when a state is to be bound. */
  identify(method: CarrierMethod, params: unknown): RequestIdentity | Refusal {
    try {
      return this.#boundary.identify(method, params);
    } catch (error) {
      return error instanceof Refusal ? error : new Refusal('request binding');
    }
  }

  async run<Request>(
    guarded: GuardedRequest,
    handler: (request: Request, ctx: ServerContext) => unknown,
    first: Request,
  ): Promise<unknown> {
    const { signal } = guarded.ctx.mcpReq;
    const revision = this.#server.getNegotiatedProtocolVersion();
    const isModern = revision !== undefined && revision >= FIRST_MODERN_REVISION;
    const isReplayed = guarded.isShimmed && !isModern;
    const wire: unknown = guarded.ctx.mcpReq.requestState();
    // An explicit null counts as absent, as in the MCP Python SDK: a client can omit the member as well.
    const carried = wire !== undefined && wire !== null;
    const request = new Call(this, guarded);
    let round: Round | undefined;
    let { ctx } = guarded;
    if (wire === null) ctx = withState(ctx, undefined);
    else if (carried && !(isReplayed && this.#isReplay(signal, wire)))
      ({ ctx, round } = await this.#unseal(request, wire));
    const result = await handler(first, ctx);
    if (!isInputRequired(result)) return this.#complete(request, result, carried && isModern);
    const state: unknown = result['requestState'];
    if (state === undefined) return result;
    signal.throwIfAborted();
    if (typeof state !== 'string') throw this.#refuseOutbound(request, new Refusal('non-string requestState'));
    if (isReplayed) {
      (this.#replays ??= new WeakMap()).set(signal, state);
      return { ...result, requestState: state };
    }
    const token = await this.#seal(request, state, round);
    if (token === undefined) return withoutState(result);
    boundarySealed.emit({ method: request.method });
    return { ...result, requestState: markSealed(token) };
  }

  /** The principal of a request by the policy, unchecked. */
  principalOf(ctx: ServerContext): unknown {
    return this.#bindPrincipal(ctx);
  }

  /** Reports to the server's `onerror`. */
  report(message: string): void {
    quietly(() => this.#server.onerror?.(new Error(`requestState: ${message}`)));
  }

  /** Reports one refusal. */
  reject(direction: RejectEvent['direction'], method: RejectEvent['method'], refusal: Refusal): void {
    const { reason, codecReason, source } = refusal;
    const detail = codecReason ?? source;
    this.report(`refused ${direction} on ${method}: ${reason}${detail === undefined ? '' : ` (${detail})`}`);
    const event: RejectEvent = Object.freeze({
      direction,
      method,
      reason,
      ...(codecReason === undefined ? {} : { codecReason }),
    });
    boundaryRefused.emit({ direction, method, reason });
    quietly(
      () => this.#policy.onReject?.(event),
      (error) => this.report(`onReject threw (${errorName(error)})`),
    );
  }

  async #unseal(request: Call, wire: unknown): Promise<{ ctx: ServerContext; round: Round | undefined }> {
    try {
      const { state, round } = await this.#boundary.unseal(request, wire);
      boundaryUnsealed.emit({ method: request.method });
      return { ctx: withState(request.ctx, state), round };
    } catch (error) {
      // The client has disconnected; the token was not refused.
      request.signal.throwIfAborted();
      const refusal = asRefusal(error);
      this.reject('inbound', request.method, refusal);
      if (!reElicits(this.#policy.onInvalid, refusal.reason)) throw invalidRequestStateError();
      return { ctx: asFirstRound(request.ctx), round: undefined };
    }
  }

  /** On a runtime without timers between requests, a stale codec may have to be prepared here. */
  async #seal(request: Call, state: string, round: Round | undefined): Promise<string | undefined> {
    try {
      return this.#boundary.seal(request, state, round);
    } catch (error) {
      if (asRefusal(error).reason !== 'seal unavailable') throw this.#refuseOutbound(request, error);
    }
    await this.#boundary.prepare(request);
    try {
      return this.#boundary.seal(request, state, round);
    } catch (error) {
      throw this.#refuseOutbound(request, error);
    }
  }

  #isReplay(signal: AbortSignal, wire: unknown): boolean {
    const expected = this.#replays?.get(signal);
    this.#replays?.delete(signal);
    return expected !== undefined && expected === wire;
  }

  #complete(request: Call, result: unknown, isCacheable: boolean): unknown {
    if (typeof result !== 'object' || result === null) return result;
    // Not an input_required result, so no client would send it back: it would only reveal the plaintext.
    if (Object.hasOwn(result, 'requestState') && Reflect.get(result, 'requestState') !== undefined) {
      throw this.#refuseOutbound(request, new Refusal('unsealed requestState'));
    }
    // The only method with cacheable results. This one depends on the state, which is not part of a cache's key.
    return isCacheable && request.method === 'resources/read' ? { ...result, ttlMs: 0, cacheScope: 'private' } : result;
  }

  #refuseOutbound(request: Call, error: unknown): Error {
    this.reject('outbound', request.method, asRefusal(error));
    return internalError();
  }
}

/** The view of a request that the boundary gets. */
class Call implements BoundaryRequest {
  readonly #guard: ServerGuard;
  readonly method: CarrierMethod;
  readonly identity: RequestIdentity | Refusal;
  readonly ctx: ServerContext;

  constructor(guard: ServerGuard, { method, identity, ctx }: GuardedRequest) {
    this.#guard = guard;
    this.method = method;
    this.identity = identity;
    this.ctx = ctx;
  }

  get signal(): AbortSignal {
    return this.ctx.mcpReq.signal;
  }

  bindPrincipal(): unknown {
    return this.#guard.principalOf(this.ctx);
  }

  warn(message: string): void {
    this.#guard.report(`${message} on ${this.method}`);
  }
}

function reElicits(onInvalid: OnInvalid, reason: RejectReason): boolean {
  if (onInvalid === 're-elicit-any') return true;
  return onInvalid === 're-elicit' && (reason === 'expired' || reason === 'unknown key');
}

function withState(ctx: ServerContext, state: string | undefined): ServerContext {
  const mcpReq = { ...ctx.mcpReq };
  // The SDK types the accessor by its caller, `requestState<T>()`, which no function honestly satisfies.
  Reflect.set(mcpReq, 'requestState', () => state);
  return { ...ctx, mcpReq };
}

// The input responses are removed too: a client could send an "accept" that belongs to no state.
function asFirstRound(ctx: ServerContext): ServerContext {
  const { mcpReq, ...rest } = withState(ctx, undefined);
  delete mcpReq.inputResponses;
  delete mcpReq.droppedInputResponseKeys;
  return { ...rest, mcpReq };
}

function withoutState(result: Record<string, unknown>): Record<string, unknown> {
  const { requestState: _, ...rest } = result;
  return rest;
}

// By shape, as the SDK does: this package imports only the types of the SDK.
function isInputRequired(result: unknown): result is Record<string, unknown> {
  return (
    typeof result === 'object' &&
    result !== null &&
    !Array.isArray(result) &&
    Reflect.get(result, 'resultType') === 'input_required'
  );
}

/** Calls a function of the user's. Its failure, also a later rejection, must not change the answer to the client. */
function quietly(callback: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    const result = callback();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
