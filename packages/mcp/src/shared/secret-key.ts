import { createSecretKey, type KeyObject } from 'node:crypto';

/** The key of these bytes, which are overwritten. */
export function secretKey(bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}
