import { createSecretKey, type KeyObject } from 'node:crypto';

/** Creates a key from these bytes, and overwrites them. */
export function secretKey(bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}
