import { SealUnavailableError, type SealUnavailableReason } from '@sealring/core';
import { sealUnavailableReason } from '../shared/codec-option.ts';
import type { PrincipalDifference } from './principal-difference.ts';
import type { CarrierMethod } from './request-identity.ts';

/**
 * Why the boundary refused a `requestState`. For logs and metrics only: a client gets the same answer for every reason.
 * The inbound reasons and the order of the checks are the same as in the MCP Python SDK.
 *
 * - `non-string requestState`: the client sent, or the handler returned, a value that is not a string.
 * - `malformed` · `unknown key` · `authentication failed`: reported by the codec. `malformed` also means that the payload
 *   does not hold valid claims. The formats of mcp.d give no reasons: with them, `authentication failed` also covers
 *   the other two, expired tokens, and tokens with another binding.
 * - `seal unavailable` (outbound): no key may seal now; `codecReason` is the reason.
 * - `codec error`: the codec threw another error, or returned a value of the wrong type.
 * - `minted in the future` · `expired`: according to the times in the claims.
 * - `request binding`: the token is for another method, target or arguments, or the request cannot be bound.
 * - `arguments too large`: the canonical JSON of the arguments has more than 16 777 216 characters, so no state can be
 *   bound to them.
 * - `audience`: the token is for another service.
 * - `principal binding error`: `bindPrincipal` threw, or returned neither a string nor null; or the request has no subject
 *   and `requireSubject` is set.
 * - `principal drift`: the token is bound to a principal but the request has none, or the reverse.
 * - `principal`: the token is bound to another principal.
 * - `already used`: the token was redeemed before, or the single-use store could not determine whether it was.
 * - `state too large` (outbound): the token would be longer than `maxTokenLength`.
 * - `unsealed requestState` (outbound): a handler's state bypassed this boundary.
 * - `unverified requestState` (inbound): the state is for a handler that this boundary does not guard.
 */
export type RejectReason = (typeof REJECT_REASONS)[number];

/** Every {@link RejectReason}. */
export const REJECT_REASONS = [
  'non-string requestState',
  'malformed',
  'unknown key',
  'authentication failed',
  'seal unavailable',
  'codec error',
  'minted in the future',
  'expired',
  'request binding',
  'arguments too large',
  'audience',
  'principal binding error',
  'principal drift',
  'principal',
  'already used',
  'state too large',
  'unsealed requestState',
  'unverified requestState',
] as const;

/** One refusal, as passed to `onReject`. Holds no part of the token, the state, the principal or a key. */
export interface RejectEvent {
  /** `inbound`: a client sent the token. `outbound`: a handler returned the state. */
  readonly direction: 'inbound' | 'outbound';
  /** The method of the request; `unknown` when the transport refused a result. */
  readonly method: CarrierMethod | 'unknown';
  readonly reason: RejectReason;
  /** With `seal unavailable`: the reason of the codec's `SealUnavailableError`, if it is one of the known reasons. */
  readonly codecReason?: SealUnavailableReason;
}

/** Thrown inside this package only: it never reaches a handler or a client. */
export class Refusal extends Error {
  readonly reason: RejectReason;
  /** The class of the error that caused the refusal, never its message, which may quote a secret. */
  readonly source: string | undefined;
  readonly codecReason: SealUnavailableReason | undefined;
  /** With `principal` and `principal drift`: how the principals differ, if that is known. For the log only. */
  readonly difference: PrincipalDifference | undefined;

  constructor(reason: RejectReason, source?: unknown, difference?: PrincipalDifference) {
    super(reason);
    this.reason = reason;
    this.difference = difference;
    this.source = source === undefined ? undefined : errorName(source);
    this.codecReason = source instanceof SealUnavailableError ? sealUnavailableReason(source) : undefined;
  }
}

/** Returns `error` as a refusal. An unexpected error also becomes a refusal, so that the boundary fails closed. */
export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  return new Refusal(error instanceof SealUnavailableError ? 'seal unavailable' : 'codec error', error);
}

/** The name of an error's class. */
export function errorName(error: unknown): string {
  const name: unknown = error instanceof Error ? error.name : undefined;
  return typeof name === 'string' && /^[A-Za-z][A-Za-z0-9]{0,47}$/.test(name) ? name : 'not an Error';
}

/** A JSON-RPC error: the SDK answers with the `code` and `data` of any error that is thrown. */
export interface WireError extends Error {
  readonly code: number;
  readonly data?: { readonly reason: string };
}

/** The answer to every refused token, whatever the reason (JSON-RPC invalid params). */
export function invalidRequestStateError(): WireError {
  return Object.assign(new Error('Invalid or expired requestState'), {
    code: -32602,
    data: { reason: 'invalid_request_state' },
  });
}

/** The answer when a state could not be sealed (JSON-RPC internal error). */
export function internalError(): WireError {
  return Object.assign(new Error('Internal error'), { code: -32603 });
}

/** The JSON-RPC answer to a request that failed. */
export function errorAnswer(id: unknown, { code, message, data }: WireError): object {
  return { jsonrpc: '2.0', id: id ?? null, error: { code, message, ...(data && { data }) } };
}
