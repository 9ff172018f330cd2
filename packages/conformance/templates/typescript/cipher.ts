/**
 * Encrypts and authenticates a payload. The result is later passed to `unseal`.
 *
 * @param key - 32 bytes.
 */
export function seal(key: Uint8Array, payload: Uint8Array): Uint8Array {
  throw new Error(`implement seal: ${payload.length} bytes, a key of ${key.length}`);
}

/**
 * Reverses `seal`; returns undefined for bytes that `seal` did not produce with this key.
 *
 * @param key - 32 bytes.
 */
export function unseal(key: Uint8Array, sealed: Uint8Array): Uint8Array | undefined {
  throw new Error(`implement unseal: ${sealed.length} bytes, a key of ${key.length}`);
}
