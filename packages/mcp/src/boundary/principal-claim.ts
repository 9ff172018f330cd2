import { hash, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '@sealring/core/format-secrets';

const LABEL = Buffer.from('mcp/request-state/principal:');
/** Bytes of the salt in a principal claim. */
export const PRINCIPAL_SALT_BYTES = 8;
const TAG_BYTES = 16;

/**
 * The principal claim: b64url(salt[8] ‖ SHA-256("mcp/request-state/principal:" ‖ salt ‖ principal)[0..16)), as
 * `_principal_claim` in the MCP Python SDK computes it. The salt hides whether two tokens belong to the same user.
 */
export function principalClaim(principal: string, salt: Uint8Array): string {
  return claimBytes(principal, salt).toString('base64url');
}

/** Whether `claim` was made for `principal`. Takes constant time for a claim of the right shape. */
export function principalMatches(claim: string, principal: string): boolean {
  const raw = decodeBase64url(claim);
  if (raw?.length !== PRINCIPAL_SALT_BYTES + TAG_BYTES) return false;
  return timingSafeEqual(raw, claimBytes(principal, raw.subarray(0, PRINCIPAL_SALT_BYTES)));
}

function claimBytes(principal: string, salt: Uint8Array): Buffer {
  const tag = hash('sha256', Buffer.concat([LABEL, salt, surrogatePass(principal)]), 'binary');
  const claim = Buffer.allocUnsafe(PRINCIPAL_SALT_BYTES + TAG_BYTES);
  claim.set(salt);
  // Getting the hash as a string is several times faster than as a Buffer, which is allocated separately.
  claim.write(tag, PRINCIPAL_SALT_BYTES, TAG_BYTES, 'latin1');
  return claim;
}

/** Encodes as Python's `encode('utf-8', 'surrogatepass')` does: a lone surrogate becomes the three bytes of its code unit. */
export function surrogatePass(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text);
  const parts = Array.from(text, (character) => {
    const unit = character.charCodeAt(0);
    const bytes = [0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)];
    return Buffer.from(character.isWellFormed() ? character : bytes);
  });
  return Buffer.concat(parts);
}
