/**
 * Encrypts and authenticates a payload. The result is later passed to `unseal`.
 *
 * @param {Uint8Array} key 32 bytes.
 * @param {Uint8Array} payload
 * @returns {Uint8Array}
 */
export function seal(key, payload) {
  throw new Error(`implement seal: ${payload.length} bytes, a key of ${key.length}`);
}

/**
 * Reverses `seal`; returns undefined for bytes that `seal` did not produce with this key.
 *
 * @param {Uint8Array} key 32 bytes.
 * @param {Uint8Array} sealed
 * @returns {Uint8Array | undefined}
 */
export function unseal(key, sealed) {
  throw new Error(`implement unseal: ${sealed.length} bytes, a key of ${key.length}`);
}
