import { brand, sectionOn } from './errors.ts';

/**
 * Why a token was refused. For logs and metrics only: the client gets the same answer for all of them.
 *
 * - `malformed`: not the canonical text of a token of an accepted format.
 * - `unknown key`: well formed, but this codec holds no key that may unseal it now.
 * - `authentication failed`: the key is known, but the token was changed, or was sealed for another codec.
 */
export type InvalidReason = (typeof INVALID_REASONS)[number];

/** Every {@link InvalidReason}. */
export const INVALID_REASONS = ['malformed', 'unknown key', 'authentication failed'] as const;

/**
 * Protects opaque bytes as a URL-safe token. Both methods are synchronous and do no I/O.
 *
 * The contract is the same as for `RequestStateCodec` in the MCP Python SDK (`mcp.server.request_state`, 2.3.0), so a
 * codec that fulfils it can serve the boundary of either SDK.
 */
export interface RequestStateCodec {
  /** Returns a token protecting `payload`. The payload is neither kept nor changed. */
  seal(payload: Uint8Array): string;
  /**
   * Returns the bytes given to {@link seal}.
   * @throws {InvalidRequestState} for every token that was not sealed with a key of this codec, or was changed since.
   */
  unseal(token: string): Uint8Array;
}

/** Computed once per reason, because an attacker decides how many tokens are refused. */
const HELP: Readonly<Record<InvalidReason, string>> = Object.freeze({
  malformed: sectionOn('InvalidRequestState: malformed'),
  'unknown key': sectionOn('InvalidRequestState: unknown key'),
  'authentication failed': sectionOn('InvalidRequestState: authentication failed'),
});

/** A token was refused. `message` equals `reason`; the error contains no part of the token, the payload or a key. */
export class InvalidRequestState extends Error {
  override readonly name = 'InvalidRequestState';
  readonly code = 'ERR_INVALID_REQUEST_STATE';
  /** For logs and metrics; never for the client. */
  readonly reason: InvalidReason;
  /** URL of the documentation for this reason. For logs only, like the reason. */
  readonly help: string;

  constructor(reason: InvalidReason) {
    super(reason);
    this.reason = reason;
    this.help = HELP[reason];
  }

  static {
    brand(this, 'ERR_INVALID_REQUEST_STATE');
  }
}
