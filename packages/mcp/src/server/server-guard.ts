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
import { tellOpened, tellRefused, tellSealed } from './events.ts';
import type { OnInvalid, SecurityPolicy } from './policy.ts';
import { principalBinder } from './principal-binder.ts';
import { markSealed } from './tripwire.ts';

/** The first protocol revision with `input_required` results. Revisions are dates and compare as text. */
const FIRST_MODERN_REVISION = '2026-07-28';

/** What a guard asks its server, and tells it. */
export interface GuardedServer {
  onerror?: (error: Error) => void;
  getNegotiatedProtocolVersion(): string | undefined;
}

/** One request on its way to a handler. */
export interface GuardedRequest {
  readonly method: CarrierMethod;
  /** As {@link ServerGuard.identify} told it before anybody could change the parameters. */
  readonly identity: RequestIdentity | Refusal;
  readonly ctx: ServerContext;
  /**
   * Whether the SDK itself fulfils an `input_required` result for a 2025-era client, which knows none: it calls the very
   * handler again, with the handler's plaintext and the same AbortSignal. It does not for a fallback.
   */
  readonly isShimmed: boolean;
}

/** Runs the handlers of one server so that they see plaintext and the SDK sees tokens. State lives in the closure of one call. */
export class ServerGuard {
  readonly #server: GuardedServer;
  readonly #policy: SecurityPolicy;
  readonly #boundary: Boundary;
  readonly #bindPrincipal: (ctx: ServerContext) => unknown;
  // Keyed by the request's own AbortSignal, never by its JSON-RPC id, which a client chooses and may repeat.
  #replays: WeakMap<AbortSignal, string> | undefined;

  constructor(server: GuardedServer, policy: SecurityPolicy, boundary: Boundary) {
    this.#server = server;
    this.#policy = policy;
    this.#boundary = boundary;
    this.#bindPrincipal = principalBinder(policy);
  }

  /** What a request binds, or why it can bind nothing: told when a state is to be bound, and not before. */
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
    // An explicit null counts as absent, as in Python: a client can leave the member out as well.
    const carried = wire !== undefined && wire !== null;
    const request = new Call(this, guarded);
    let round: Round | undefined;
    let { ctx } = guarded;
    if (wire === null) ctx = withState(ctx, undefined);
    else if (carried && !(isReplayed && this.#isReplay(signal, wire)))
      ({ ctx, round } = await this.#open(request, wire));
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
    tellSealed(request.method);
    return { ...result, requestState: markSealed(token) };
  }

  /** Who makes a request, by the policy; whatever it returns. */
  principalOf(ctx: ServerContext): unknown {
    return this.#bindPrincipal(ctx);
  }

  /** Tells the server's `onerror`. */
  report(message: string): void {
    quietly(() => this.#server.onerror?.(new Error(`requestState: ${message}`)));
  }

  /** Tells of one refusal. */
  reject(direction: RejectEvent['direction'], method: string, refusal: Refusal): void {
    const { reason, codecReason, source } = refusal;
    const detail = codecReason ?? source;
    this.report(`refused ${direction} on ${method}: ${reason}${detail === undefined ? '' : ` (${detail})`}`);
    const event: RejectEvent = Object.freeze({
      direction,
      method,
      reason,
      ...(codecReason === undefined ? {} : { codecReason }),
    });
    tellRefused(event);
    quietly(
      () => this.#policy.onReject?.(event),
      (error) => this.report(`onReject threw (${errorName(error)})`),
    );
  }

  async #open(request: Call, wire: unknown): Promise<{ ctx: ServerContext; round: Round | undefined }> {
    try {
      const { state, round } = await this.#boundary.open(request, wire);
      tellOpened(request.method);
      return { ctx: withState(request.ctx, state), round };
    } catch (error) {
      // Nobody is waiting for an answer, and nothing was wrong with the token.
      request.signal.throwIfAborted();
      const refusal = asRefusal(error);
      this.reject('inbound', request.method, refusal);
      if (!asksAgain(this.#policy.onInvalid, refusal.reason)) throw invalidRequestStateError();
      return { ctx: asFirstRound(request.ctx), round: undefined };
    }
  }

  /** Where timers do not run between requests, this may be the first moment in which a stale codec can be prepared. */
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
    // No input_required result, so no client would echo it: a mistake that would show the plaintext.
    if (Object.hasOwn(result, 'requestState') && Reflect.get(result, 'requestState') !== undefined) {
      throw this.#refuseOutbound(request, new Refusal('unsealed requestState'));
    }
    // The only cacheable one of the three. Its result depended on the state, which is no part of a cache's key.
    return isCacheable && request.method === 'resources/read' ? { ...result, ttlMs: 0, cacheScope: 'private' } : result;
  }

  #refuseOutbound(request: Call, error: unknown): Error {
    this.reject('outbound', request.method, asRefusal(error));
    return internalError();
  }
}

/** What the boundary sees of a request. */
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

function asksAgain(onInvalid: OnInvalid, reason: RejectReason): boolean {
  if (onInvalid === 're-elicit-any') return true;
  return onInvalid === 're-elicit' && (reason === 'expired' || reason === 'unknown key');
}

function withState(ctx: ServerContext, state: string | undefined): ServerContext {
  const mcpReq = { ...ctx.mcpReq };
  // The SDK types the accessor by its caller, `requestState<T>()`, which no function honestly satisfies.
  Reflect.set(mcpReq, 'requestState', () => state);
  return { ...ctx, mcpReq };
}

// The answers go too: they are attacker-chosen, and an "accept" without its state must not run anything.
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

// By shape, as the SDK does: its guard is a value, and this package imports only its types.
function isInputRequired(result: unknown): result is Record<string, unknown> {
  return (
    typeof result === 'object' &&
    result !== null &&
    !Array.isArray(result) &&
    Reflect.get(result, 'resultType') === 'input_required'
  );
}

/** Runs a callback of the user's, whose failure, now or later, must not change what the client is told. */
function quietly(callback: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    const result = callback();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
