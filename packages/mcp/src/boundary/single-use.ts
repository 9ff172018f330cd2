/**
 * Where the identifiers of redeemed tokens are kept, shared by the fleet.
 *
 * Identifiers are SHA-256 hashes of 16 random bytes, base64url, 43 characters; they say nothing about the state.
 *
 * Every store remembers an identifier for the same margin beyond `expiresAt`: the `clockSkewSeconds` of the ring's policy,
 * 300 by default. A server whose clock is behind honours a token for that much longer than the one that redeemed it.
 * `describeSingleUse` of `@sealring/conformance` tries that.
 */
export interface SingleUseStore {
  /**
   * The margin. `RequestStateSecurity` refuses a store whose margin is smaller than the `clockSkewSeconds` of its codec. A
   * store of yours that does not tell is taken at its word. Seconds.
   */
  readonly clockSkewSeconds?: number;
  /**
   * Resolves to true for exactly one caller per `id` and to false for every other, for ever or until `expiresAt` and the
   * margin have passed by the caller's clock; from then on to false for everybody.
   * A store that cannot tell, because it is down or full, must reject or resolve to false: the token is then refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
}
