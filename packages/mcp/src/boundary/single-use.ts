/**
 * A store of the identifiers of redeemed tokens, shared by the fleet.
 *
 * An identifier is the SHA-256 hash of 16 random bytes as base64url, 43 characters; it reveals nothing about the state.
 *
 * A store remembers an identifier for a margin after `expiresAt`: the `clockSkewSeconds` of the ring's policy, 300 by
 * default. A server whose clock is behind accepts a token for that much longer than the server that redeemed it.
 * `describeSingleUse` of `@sealring/conformance` tests a store for this.
 */
export interface SingleUseStore {
  /**
   * The margin. `RequestStateSecurity` rejects a store whose margin is smaller than the `clockSkewSeconds` of its codec.
   * Without this property the margin is not checked. Seconds.
   */
  readonly clockSkewSeconds?: number;
  /**
   * Resolves to true for exactly one caller per `id`, and to false for every other. After `expiresAt` and the margin, by
   * the caller's clock, it resolves to false for every caller.
   * A store that cannot decide, because it is down or full, must reject or resolve to false: the token is then refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
}
