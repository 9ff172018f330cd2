import type { SealUnavailableReason } from '@sealring/core';
import { isSealUnavailable, sealUnavailableReason } from '../shared/codec-option.ts';

/**
 * Why the boundary refused a `requestState`. For logs and metrics only: a client is told one and the same thing for all
 * of them. The inbound words, and the order in which they are tried, are those of the MCP Python SDK.
 *
 * - `non-string requestState`: the wire, or the handler, gave something that is no text.
 * - `malformed` · `unknown key` · `seal`: the codec's own words; `malformed` also for an envelope that is none. On
 *   mcp.d's wires, which give no reasons, `seal` stands for all of them.
 * - `seal unavailable` (outbound): no key of the codec's may seal now; `codecReason` says why.
 * - `codec error`: the codec threw anything else, or returned what no codec may return.
 * - `minted in the future` · `expired`: the times of the envelope.
 * - `request binding`: another method, target or arguments.
 * - `arguments too large`: their canonical JSON has more than 16 777 216 characters: no state is bound to them.
 * - `audience`: minted by, or for, another service.
 * - `principal binding error`: `bindPrincipal` threw, or returned neither a string nor null; or `requireSubject`, and the
 *   request names nobody.
 * - `principal drift`: bound to somebody and nobody is signed in, or the reverse.
 * - `principal`: bound to somebody else.
 * - `already used`: single use, and it was, or the store could not tell.
 * - `state too large` (outbound): the token would be longer than `maxTokenLength`.
 * - `unsealed requestState` (outbound): a state was about to leave that this boundary did not seal.
 * - `unopened requestState` (inbound): a state was about to reach a handler that this boundary does not guard.
 */
export type RejectReason =
  | 'non-string requestState'
  | 'malformed'
  | 'unknown key'
  | 'seal'
  | 'seal unavailable'
  | 'codec error'
  | 'minted in the future'
  | 'expired'
  | 'request binding'
  | 'arguments too large'
  | 'audience'
  | 'principal binding error'
  | 'principal drift'
  | 'principal'
  | 'already used'
  | 'state too large'
  | 'unsealed requestState'
  | 'unopened requestState';

/** One refusal, as handed to `onReject`. Holds no part of the token, the state, the principal or a key. */
export interface RejectEvent {
  /** `inbound`: a client echoed it. `outbound`: a handler returned it. */
  readonly direction: 'inbound' | 'outbound';
  /** `tools/call`, `prompts/get` or `resources/read`; `unknown` where only the transport saw the result. */
  readonly method: string;
  readonly reason: RejectReason;
  /** With `seal unavailable`: the word of the codec's `SealUnavailableError`, where it is a known one. */
  readonly codecReason?: SealUnavailableReason;
}

/** Thrown inside the package only; never reaches a handler or the wire. */
export class Refusal extends Error {
  readonly reason: RejectReason;
  /** The class of the error behind it: a name chosen by a programmer, never its message, which may quote a secret. */
  readonly source: string | undefined;
  readonly codecReason: SealUnavailableReason | undefined;

  constructor(reason: RejectReason, source?: unknown) {
    super(reason);
    this.reason = reason;
    this.source = source === undefined ? undefined : errorName(source);
    this.codecReason = isSealUnavailable(source) ? sealUnavailableReason(source) : undefined;
  }
}

/** Deny on error: what nobody expected is refused like everything else. */
export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  return new Refusal(isSealUnavailable(error) ? 'seal unavailable' : 'codec error', error);
}

/** The name of an error's class, where it is one. */
export function errorName(error: unknown): string {
  const name: unknown = error instanceof Error ? error.name : undefined;
  return typeof name === 'string' && /^[A-Za-z][A-Za-z0-9]{0,47}$/.test(name) ? name : 'not an Error';
}

/** What a JSON-RPC error answer is made from: the SDK reads `code` and `data` of any thrown Error. */
export interface WireError extends Error {
  readonly code: number;
  readonly data?: { readonly reason: string };
}

/** The answer to every echo that is refused, whatever the cause (JSON-RPC invalid params). */
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
