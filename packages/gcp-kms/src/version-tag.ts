import { createHmac, timingSafeEqual } from 'node:crypto';

/** Length of the tag behind what Cloud KMS made of a data key, in bytes. */
export const VERSION_TAG_BYTES = 32;

/**
 * What binds the name of the key version to a wrapped data key: HMAC-SHA-256 under the data key itself, over a label and
 * the name. Decrypt takes no version and does not say which it used, so the service does not hold that name to the
 * ciphertext. Who knows the data key could make this tag; who only moves wrapped keys about cannot.
 */
export function versionTag(dataKey: Uint8Array, version: string): Buffer {
  return createHmac('sha256', dataKey).update(`sealring/gcp-kms/version/1\n${version}`, 'utf8').digest();
}

/** Whether a tag is the one of this data key and version. */
export function versionTagHolds(tag: Uint8Array, dataKey: Uint8Array, version: string): boolean {
  return tag.length === VERSION_TAG_BYTES && timingSafeEqual(tag, versionTag(dataKey, version));
}
