import { brand, sectionOn } from './errors.ts';
import type { RingStoreErrorKind } from './ring-store.ts';

/**
 * Stores the ids of redeemed tokens for a fleet of servers.
 *
 * Ids are SHA-256 hashes of 16 random bytes, 43 characters of base64url; they reveal nothing about the state.
 *
 * Every store remembers an id for the same margin beyond `expiresAt`: the `clockSkewSeconds` of the ring's policy, 300 by
 * default. A server whose clock is behind may accept a token for that much longer than the server that redeemed it.
 * `describeSingleUse` of `@sealring/conformance` checks this.
 */
export interface SingleUseStore {
  /**
   * The margin in seconds. `RequestStateSecurity` rejects a store whose margin is smaller than the `clockSkewSeconds` of
   * its codec. A store without this property is trusted to keep a sufficient margin.
   */
  readonly clockSkewSeconds?: number;
  /**
   * Resolves to true for exactly one caller per `id` and to false for every other caller, at least until `expiresAt` and
   * the margin have passed by the caller's clock; after that, to false for every caller.
   *
   * A store that cannot determine whether `id` was claimed, because it is down or full, must reject or resolve to false:
   * the token is then refused.
   *
   * @throws {TypeError | RangeError} for an `id` that is not a string of 1 to 256 characters, or an invalid date.
   * @throws {SingleUseStoreError} when the store cannot determine whether `id` was claimed.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
  /** Ends pending calls and closes the resources that the store itself has created; the caller's client stays open. */
  close?(): Promise<void>;
}

/** The kinds of `RingStoreError` that a single-use store can report. */
export type SingleUseStoreErrorKind = Exclude<RingStoreErrorKind, 'absent'>;

/** The store cannot determine whether a token was redeemed. The message is fixed text, never the vendor's. */
export class SingleUseStoreError extends Error {
  override readonly name = 'SingleUseStoreError';
  readonly code = 'ERR_SINGLE_USE_STORE';
  /** The kind of failure, in terms that a caller can act on. */
  readonly kind: SingleUseStoreErrorKind;
  /** The message without its prefix. */
  readonly detail: string;
  /** The vendor's code, if the store lists it. */
  readonly serviceCode: string | undefined;
  /** URL of the documentation for this kind of error. */
  readonly help: string;

  constructor(
    kind: SingleUseStoreErrorKind,
    detail: string,
    { serviceCode }: { readonly serviceCode?: string | undefined } = {},
  ) {
    super(`single-use store ${kind}: ${detail}`);
    this.kind = kind;
    this.detail = detail;
    this.serviceCode = serviceCode;
    this.help = sectionOn(`SingleUseStoreError: ${kind}`);
  }

  static {
    brand(this, 'ERR_SINGLE_USE_STORE');
  }
}
