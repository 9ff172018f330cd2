/**
 * Encrypts and authenticates a payload. Whatever you return has to come back to `open` unchanged.
 *
 * @param {Uint8Array} key 32 bytes.
 * @param {Uint8Array} payload
 * @returns {Uint8Array}
 */
export function seal(key, payload) {
  throw new Error(`seal is yours to write: ${payload.length} bytes, a key of ${key.length}`);
}

/**
 * Undoes `seal`; undefined for bytes that `seal` did not make with this key.
 *
 * @param {Uint8Array} key 32 bytes.
 * @param {Uint8Array} sealed
 * @returns {Uint8Array | undefined}
 */
export function open(key, sealed) {
  throw new Error(`open is yours to write: ${sealed.length} bytes, a key of ${key.length}`);
}
