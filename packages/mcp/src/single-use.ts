/**
 * Where the identifiers of redeemed tokens are kept, shared by the fleet.
 *
 * Identifiers are SHA-256 hashes of 16 random bytes, base64url, 43 characters; they say nothing about the state.
 */
export interface SingleUseStore {
  /**
   * Resolves to true for exactly one caller per `id`, for ever or until `expiresAt`, and to false for every other.
   * A store that cannot tell, because it is down or full, must reject or resolve to false: the token is then refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
}
