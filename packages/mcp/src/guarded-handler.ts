import type { ServerContext } from '@modelcontextprotocol/server';
import type { Boundary, BoundaryRequest, Round } from './boundary.ts';
import { tellOpened, tellSealed } from './events.ts';
import type { OnInvalid } from './policy.ts';
import {
  errorName,
  internalError,
  invalidRequestStateError,
  Refusal,
  type RejectEvent,
  type RejectReason,
} from './refusal.ts';
import type { CarrierMethod } from './request-identity.ts';

/** One request on its way to a handler. */
export interface GuardedCall {
  readonly method: CarrierMethod;
  readonly params: unknown;
  readonly ctx: ServerContext;
  /**
   * Whether the SDK fulfils an `input_required` result by itself, calling this very handler again with the handler's
   * plaintext and the same AbortSignal: so it serves a 2025-era client, which knows no `input_required`.
   */
  readonly replayed: boolean;
  /** Whether results may carry cache hints: the 2026-07-28 era. */
  readonly modern: boolean;
  bindPrincipal(): unknown;
  /** The handler, with the context it is to see. */
  handle(ctx: ServerContext): unknown;
}

/** What a guard tells the server it guards. */
export interface GuardSinks {
  /** Called for every refusal. */
  rejected(event: RejectEvent, source: string | undefined): void;
  /** Called for what is wrong without being a refusal. */
  warn(message: string): void;
  /** Called for every sealed token, before the result is returned. */
  sealed(token: string): void;
}

/** Runs handlers so that they see plaintext and the SDK sees tokens. State lives in the closure of one call. */
export class HandlerGuard {
  readonly #boundary: Boundary;
  readonly #onInvalid: OnInvalid;
  readonly #sinks: GuardSinks;
  // Keyed by the request's own AbortSignal, never by its JSON-RPC id, which a client chooses and may repeat.
  #replays: WeakMap<AbortSignal, string> | undefined;

  constructor(boundary: Boundary, onInvalid: OnInvalid, sinks: GuardSinks) {
    this.#boundary = boundary;
    this.#onInvalid = onInvalid;
    this.#sinks = sinks;
  }

  async run(call: GuardedCall): Promise<unknown> {
    const { signal } = call.ctx.mcpReq;
    const wire: unknown = call.ctx.mcpReq.requestState();
    // An explicit null counts as absent, as in Python: a client can leave the member out as well.
    const carried = wire !== undefined && wire !== null;
    const request = this.#requestOf(call);
    let round: Round | undefined;
    let ctx = call.ctx;
    if (carried && !this.#isReplay(call, wire)) ({ ctx, round } = await this.#open(call, request, wire));
    else if (!carried) ctx = withState(ctx, undefined);
    const result = await call.handle(ctx);
    if (!isInputRequired(result)) return this.#complete(call, result, carried);
    const state: unknown = result['requestState'];
    if (state === undefined) return result;
    signal.throwIfAborted();
    if (typeof state !== 'string') throw this.#refuseOutbound(call, new Refusal('non-string requestState'));
    if (call.replayed) {
      (this.#replays ??= new WeakMap()).set(signal, state);
      return { ...result, requestState: state };
    }
    let token: string | undefined;
    try {
      token = this.#boundary.seal(request, state, round);
    } catch (error) {
      throw this.#refuseOutbound(call, error);
    }
    if (token === undefined) return withoutState(result);
    this.#sinks.sealed(token);
    tellSealed(call.method);
    return { ...result, requestState: token };
  }

  async #open(
    call: GuardedCall,
    request: BoundaryRequest,
    wire: unknown,
  ): Promise<{ ctx: ServerContext; round: Round | undefined }> {
    try {
      const { state, round } = await this.#boundary.open(request, wire);
      tellOpened(call.method);
      return { ctx: withState(call.ctx, state), round };
    } catch (error) {
      // Nobody is waiting for an answer, and nothing was wrong with the token.
      call.ctx.mcpReq.signal.throwIfAborted();
      const { reason, source } = asRefusal(error);
      this.#sinks.rejected({ direction: 'inbound', method: call.method, reason }, source);
      if (!asksAgain(this.#onInvalid, reason)) throw invalidRequestStateError();
      return { ctx: asFirstRound(call.ctx), round: undefined };
    }
  }

  #isReplay(call: GuardedCall, wire: unknown): boolean {
    if (!call.replayed) return false;
    const { signal } = call.ctx.mcpReq;
    const expected = this.#replays?.get(signal);
    this.#replays?.delete(signal);
    return expected !== undefined && expected === wire;
  }

  #complete(call: GuardedCall, result: unknown, carried: boolean): unknown {
    if (typeof result !== 'object' || result === null) return result;
    // No input_required result, so no client would echo it: a mistake that would show the plaintext.
    if (Object.hasOwn(result, 'requestState') && Reflect.get(result, 'requestState') !== undefined) {
      throw this.#refuseOutbound(call, new Refusal('unsealed requestState'));
    }
    // The only cacheable one of the three. Its result depended on the state, which is no part of a cache's key.
    if (carried && call.modern && call.method === 'resources/read') {
      return { ...result, ttlMs: 0, cacheScope: 'private' };
    }
    return result;
  }

  #refuseOutbound(call: GuardedCall, error: unknown): Error {
    const { reason, source } = asRefusal(error);
    this.#sinks.rejected({ direction: 'outbound', method: call.method, reason }, source);
    return internalError();
  }

  #requestOf(call: GuardedCall): BoundaryRequest {
    return {
      method: call.method,
      params: call.params,
      signal: call.ctx.mcpReq.signal,
      bindPrincipal: () => call.bindPrincipal(),
      warn: (message) => this.#sinks.warn(`${message} on ${call.method}`),
    };
  }
}

/** Deny on error: what nobody expected is refused like everything else. */
function asRefusal(error: unknown): { readonly reason: RejectReason; readonly source: string | undefined } {
  if (error instanceof Refusal) return { reason: error.reason, source: error.source };
  return { reason: 'codec error', source: errorName(error) };
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
