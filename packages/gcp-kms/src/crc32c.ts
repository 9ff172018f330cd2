import { types } from 'node:util';
import { vendorError } from '@sealring/core/adapter';

// Implemented here because the SDK has none and zlib.crc32 uses another polynomial.

/** The Castagnoli polynomial, bits reversed (RFC 3720 section 12.1). */
const POLYNOMIAL = 0x82f63b78;
const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  return remainder;
});

/** The CRC32C of some bytes, 0 to 4 294 967 295. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * Whether the bytes of an answer exist and match their checksum: a `google.protobuf.Int64Value`, whose
 * value the SDK decodes to decimal text. A missing checksum does not match.
 */
export function checksumHolds(bytes: unknown, checksum: unknown): boolean {
  const value = vendorError.property(checksum, 'value');
  return types.isUint8Array(bytes) && (value === crc32c(bytes) || value === String(crc32c(bytes)));
}
