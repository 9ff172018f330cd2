/**
 * Encrypts and authenticates a payload. Whatever you return has to come back to `unseal` unchanged.
 *
 * @param key - 32 bytes.
 */
export function seal(key: Uint8Array, payload: Uint8Array): Uint8Array {
  throw new Error(`implement seal: ${payload.length} bytes, a key of ${key.length}`);
}

/**
 * Undoes `seal`; undefined for bytes that `seal` did not make with this key.
 *
 * @param key - 32 bytes.
 */
export function unseal(key: Uint8Array, sealed: Uint8Array): Uint8Array | undefined {
  throw new Error(`implement unseal: ${sealed.length} bytes, a key of ${key.length}`);
}
