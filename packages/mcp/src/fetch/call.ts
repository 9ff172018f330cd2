import type { BoundaryRequest, Round } from '../boundary/boundary.ts';
import { Refusal } from '../boundary/refusal.ts';
import { type CarrierMethod, isCarrierMethod, type RequestIdentity } from '../boundary/request-identity.ts';
import { isInputRequired, type StateGuard, withoutState } from '../server/state-guard.ts';
import { ownMember } from '../shared/own-member.ts';

/** Determines the principal of one HTTP request. Called at most once, and only if a state needs the principal. */
export type Principal = () => unknown;

/** One JSON-RPC request whose result may carry a state. */
export class Call implements BoundaryRequest {
  readonly method: CarrierMethod;
  readonly identity: RequestIdentity | Refusal;
  readonly signal: AbortSignal;
  readonly #guard: StateGuard;
  readonly #message: object;
  readonly #principal: Principal;
  #bound: { readonly principal: unknown } | { readonly error: unknown } | undefined;
  #round: Round | undefined;
  #carried = false;

  constructor(
    guard: StateGuard,
    message: object,
    context: { readonly method: CarrierMethod; readonly signal: AbortSignal; readonly principal: Principal },
  ) {
    this.method = context.method;
    this.signal = context.signal;
    this.identity = guard.identify(context.method, ownMember(message, 'params'));
    this.#guard = guard;
    this.#message = message;
    this.#principal = context.principal;
  }

  get id(): unknown {
    return ownMember(this.#message, 'id');
  }

  /** Replaces the token in the message with its plaintext. @throws {WireError} the answer if the token is refused. */
  async unseal(): Promise<void> {
    const params: object = Object(ownMember(this.#message, 'params'));
    const wire = ownMember(params, 'requestState');
    Reflect.deleteProperty(params, 'requestState');
    if (wire === undefined || wire === null) return;
    this.#carried = true;
    await this.#bind();
    const accepted = await this.#guard.unseal(this, wire);
    this.#round = accepted?.round;
    if (accepted !== undefined) Reflect.set(params, 'requestState', accepted.state);
    // Input responses are also removed, because a client could send an "accept" that belongs to no state.
    else Reflect.deleteProperty(params, 'inputResponses');
  }

  /** The result, with its state sealed. @throws {WireError} the answer if the state must not be sent. */
  async sealed(result: unknown): Promise<unknown> {
    if (!isInputRequired(result)) {
      return this.#guard.complete(this.method, result, this.#carried);
    }
    const state = result['requestState'];
    if (state === undefined) return result;
    // Some JSON libraries write absent members as null, which the schema of a client refuses.
    if (state === null) return withoutState(result);
    if (typeof state !== 'string') {
      throw this.#guard.refuseOutbound(this.method, new Refusal('non-string requestState'));
    }
    await this.#bind();
    // If there is no token, the value is undefined, and `JSON.stringify` leaves the member out.
    return { ...result, requestState: await this.#guard.seal(this, state, this.#round) };
  }

  bindPrincipal(): unknown {
    if (this.#bound === undefined) throw new TypeError('the principal has not been determined yet');
    if ('error' in this.#bound) throw this.#bound.error;
    return this.#bound.principal;
  }

  warn(message: string): void {
    this.#guard.report(`${message} on ${this.method}`);
  }

  async #bind(): Promise<void> {
    if (this.#bound !== undefined) return;
    try {
      this.#bound = { principal: await this.#principal() };
    } catch (error) {
      this.#bound = { error };
    }
    this.signal.throwIfAborted();
  }
}

/** The method of a request whose result may carry a state; undefined for any other message. */
export function carrierMethodOf(message: unknown): CarrierMethod | undefined {
  const method = ownMember(message, 'method');
  return isCarrierMethod(method) ? method : undefined;
}

/** The messages of a body: a single message, or the messages of a batch. */
export function messagesIn(body: unknown): readonly unknown[] {
  return Array.isArray(body) ? body : [body];
}

/** Whether a message can be answered. */
export function hasId(message: unknown): boolean {
  const id = ownMember(message, 'id');
  return typeof id === 'string' || typeof id === 'number' || typeof id === 'bigint';
}

/** Whether a message has a state. */
export function carriesState(message: unknown): boolean {
  const state = ownMember(ownMember(message, 'params'), 'requestState');
  return state !== undefined && state !== null;
}
