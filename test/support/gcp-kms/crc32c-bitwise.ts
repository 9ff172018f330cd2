/**
 * CRC32C (RFC 3720 section 12.1), one bit at a time. Separate from the adapter's on purpose: a mistake in one of them
 * makes them differ.
 */
export function crc32cBitwise(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
