import { createHash } from 'node:crypto';
import { hmac } from '../base/hmac.ts';

/** Bytes of a key id; 12 characters of base64url. */
export const KEY_ID_BYTES = 9;

/** Uses of a data key: only its key id and the sub-keys under these labels are derived from it. */
export type DerivationLabel = 'token' | 'ring-mac' | 'python' | 'typescript' | 'mcp.d';

/** The id of a data key: the first 9 bytes of SHA-256("sealring/v1/key-id" ‖ data key). Derived, never chosen. */
export function keyIdOf(dataKey: Uint8Array): Buffer {
  return createHash('sha256').update('sealring/v1/key-id').update(dataKey).digest().subarray(0, KEY_ID_BYTES);
}

/**
 * A sub-key of a data key, 64 bytes: HMAC-SHA-512(data key, label ‖ 0x00 ‖ u16be(bytes of ring) ‖ ring ‖ tail), here
 * without a tail. The length before the ring name makes every (label, ring, tail) unambiguous, whatever the tail
 * contains.
 */
export function subKey(dataKey: Uint8Array, label: DerivationLabel, ring: string): Buffer {
  return hmac('sha512', dataKey).update(subKeyInput(label, ring)).digest();
}

/** The input of a sub-key's HMAC, before its tail. */
export function subKeyInput(label: DerivationLabel, ring: string): Buffer {
  const name = Buffer.from(ring);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(name.length);
  return Buffer.concat([Buffer.from(`sealring/v1/${label}\0`), length, name]);
}
