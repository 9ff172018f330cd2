import { createHmac, timingSafeEqual } from 'node:crypto';

/** Length of the tag after Cloud KMS's ciphertext, in bytes. */
export const VERSION_TAG_BYTES = 32;

/**
 * Binds the name of the key version to a wrapped data key: HMAC-SHA-256 under the data key itself, over a label and the
 * name. Decrypt takes no version and does not report which version it used, so the service does not bind that name to
 * the ciphertext. Someone who knows the data key could compute this tag; someone who only moves wrapped keys cannot.
 */
export function versionTag(dataKey: Uint8Array, version: string): Buffer {
  return createHmac('sha256', dataKey).update(`sealring/gcp-kms/version/1\n${version}`, 'utf8').digest();
}

/** Whether a tag belongs to this data key and version. */
export function versionTagHolds(tag: Uint8Array, dataKey: Uint8Array, version: string): boolean {
  return tag.length === VERSION_TAG_BYTES && timingSafeEqual(tag, versionTag(dataKey, version));
}
