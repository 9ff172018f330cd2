import type { Boundary, BoundaryRequest, Round } from '../boundary/boundary.ts';
import {
  asRefusal,
  errorName,
  internalError,
  invalidRequestStateError,
  Refusal,
  type RejectEvent,
  type RejectReason,
  type WireError,
} from '../boundary/refusal.ts';
import type { CarrierMethod, RequestIdentity } from '../boundary/request-identity.ts';
import { ownMember } from '../shared/own-member.ts';
import { boundaryRefused, boundarySealed, boundaryUnsealed } from './events.ts';
import type { OnInvalid, SecurityPolicy } from './policy.ts';

/** A token that was accepted. */
export interface Accepted {
  readonly state: string;
  readonly round: Round | undefined;
}

/**
 * Seals and verifies the states of one server according to its policy, and reports refusals. It does not depend on the
 * SDK.
 */
export class StateGuard {
  readonly #policy: SecurityPolicy;
  readonly #boundary: Boundary;
  readonly #onerror: (error: Error) => unknown;

  constructor(policy: SecurityPolicy, boundary: Boundary, onerror: (error: Error) => unknown) {
    this.#policy = policy;
    this.#boundary = boundary;
    this.#onerror = onerror;
  }

  /** The parts of this request that a token is bound to, or the refusal that is thrown when a state must be bound. */
  identify(method: CarrierMethod, params: unknown): RequestIdentity | Refusal {
    try {
      return this.#boundary.identify(method, params);
    } catch (error) {
      return error instanceof Refusal ? error : new Refusal('request binding');
    }
  }

  /**
   * Verifies a token.
   * @returns undefined if it is refused and the request is handled as a first round.
   * @throws {WireError} the answer to the client; the signal's reason when the client has disconnected.
   */
  async unseal(request: BoundaryRequest, wire: unknown): Promise<Accepted | undefined> {
    try {
      const accepted = await this.#boundary.unseal(request, wire);
      boundaryUnsealed.emit({ method: request.method });
      return accepted;
    } catch (error) {
      // The client has disconnected; the token was not refused.
      request.signal.throwIfAborted();
      const refusal = asRefusal(error);
      this.reject('inbound', request.method, refusal);
      if (!reElicits(this.#policy.onInvalid, refusal.reason)) throw invalidRequestStateError();
      return undefined;
    }
  }

  /**
   * Returns the token for a state, or undefined for a state that must not be sent.
   * @throws {WireError} the answer to the client.
   */
  async seal(request: BoundaryRequest, state: string, round: Round | undefined): Promise<string | undefined> {
    const token = await this.#seal(request, state, round);
    if (token !== undefined) boundarySealed.emit({ method: request.method });
    return token;
  }

  /** Checks a result other than `input_required`. @throws {WireError} the answer to the client, for a result with a state. */
  complete(method: CarrierMethod, result: unknown, carried: boolean): unknown {
    if (typeof result !== 'object' || result === null) return result;
    // This is not an input_required result, so no client would send the state back: it would only reveal the plaintext.
    if (ownMember(result, 'requestState') !== undefined || isPrinted(result)) {
      throw this.refuseOutbound(method, new Refusal('unsealed requestState'));
    }
    // Only `resources/read` has cacheable results. This result depends on the state, which is not part of the cache
    // key.
    return carried && method === 'resources/read' ? { ...result, ttlMs: 0, cacheScope: 'private' } : result;
  }

  /** Reports that a state was not sent, and returns the answer to the client. */
  refuseOutbound(method: RejectEvent['method'], error: unknown): WireError {
    this.reject('outbound', method, asRefusal(error));
    return internalError();
  }

  /** Reports a failure on the server's side. */
  report(message: string): void {
    quietly(() => this.#onerror(new Error(`requestState: ${message}`)));
  }

  /** Reports one refusal. */
  reject(direction: RejectEvent['direction'], method: RejectEvent['method'], refusal: Refusal): void {
    const { reason, codecReason, source, difference } = refusal;
    const detail = codecReason ?? source ?? difference;
    this.report(`refused ${direction} on ${method}: ${reason}${detail === undefined ? '' : ` (${detail})`}`);
    const event: RejectEvent = Object.freeze({ direction, method, reason, ...(codecReason && { codecReason }) });
    boundaryRefused.emit({ direction, method, reason });
    quietly(
      () => this.#policy.onReject?.(event),
      (error) => this.report(`onReject threw (${errorName(error)})`),
    );
  }

  /**
   * Seals a state; if no key may seal, prepares the codec and tries once more. This is necessary on platforms where no
   * timer fires between requests.
   */
  async #seal(request: BoundaryRequest, state: string, round: Round | undefined): Promise<string | undefined> {
    try {
      return this.#boundary.seal(request, state, round);
    } catch (error) {
      if (asRefusal(error).reason !== 'seal unavailable') throw this.refuseOutbound(request.method, error);
    }
    await this.#boundary.prepare(request);
    try {
      return this.#boundary.seal(request, state, round);
    } catch (error) {
      throw this.refuseOutbound(request.method, error);
    }
  }
}

/**
 * Whether a framework that does not know `input_required` results wrote such a result into the text of a tool, prompt
 * or resource: the client could not answer it, and would see the state in plaintext.
 */
function isPrinted(result: unknown): boolean {
  if (isInputRequired(ownMember(result, 'structuredContent'))) return true;
  const messages = listIn(result, 'messages').flatMap((message) => ownMember(message, 'content'));
  const blocks = [...listIn(result, 'content'), ...messages, ...listIn(result, 'contents')];
  return blocks.some((block) =>
    [block, ownMember(block, 'resource')].some((one) => isPrintedText(ownMember(one, 'text'))),
  );
}

function listIn(value: unknown, key: string): readonly unknown[] {
  const list = ownMember(value, key);
  return Array.isArray(list) ? list : [];
}

function isPrintedText(text: unknown): boolean {
  if (typeof text !== 'string' || !text.includes('"requestState"')) return false;
  try {
    return isInputRequired(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Checks the shape, as the SDK does, because this package imports only types from the SDK. */
export function isInputRequired(result: unknown): result is Record<string, unknown> {
  return Reflect.get(Object(result), 'resultType') === 'input_required';
}

export function withoutState(result: Record<string, unknown>): Record<string, unknown> {
  const { requestState: _, ...rest } = result;
  return rest;
}

function reElicits(onInvalid: OnInvalid, reason: RejectReason): boolean {
  if (onInvalid === 're-elicit-any') return true;
  return onInvalid === 're-elicit' && (reason === 'expired' || reason === 'unknown key');
}

/**
 * Calls a function that the user passed. Its failure, including a later rejection, must not change the answer to the
 * client.
 */
function quietly(callback: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    const result = callback();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
