import { xor } from '../bytes.ts';

/** Bytes in a row that agree by chance once in 2^128 times. */
const TELLING_BYTES = 16;
/** Hardly a byte of the difference of two random data keys is zero: so this is not a header that two wraps share. */
const LEAST_DIFFERENT = 8;

/**
 * Whether two wraps hide their data keys with the same key stream: c1 ⊕ c2 then contains k1 ⊕ k2, which anyone who has
 * both can read one data key with the other. No block mode, key wrap or public key has this, nor a stream whose nonce
 * follows from the data key.
 */
export function shareKeyStream(one: Uint8Array, oneKey: Uint8Array, other: Uint8Array, otherKey: Uint8Array): boolean {
  const length = Math.min(oneKey.length, otherKey.length);
  const difference = xor(oneKey, otherKey);
  const pieces = [difference.subarray(0, TELLING_BYTES), difference.subarray(length - TELLING_BYTES, length)];
  const telling = pieces.filter((piece) => piece.filter((byte) => byte !== 0).length >= LEAST_DIFFERENT);
  const others = readingsOf(other);
  return readingsOf(one).some((bytes, i) => {
    const beside = others[i];
    if (beside === undefined || beside.length !== bytes.length) return false;
    const together = xor(bytes, beside);
    return telling.some((piece) => together.includes(piece));
  });
}

/** A wrapped key as it is, and the bytes that its pieces stand for where it is text. */
function readingsOf(wrapped: Uint8Array): readonly Buffer[] {
  const bytes = Buffer.from(wrapped);
  const text = bytes.toString('latin1');
  if (!/^[\t\n\r\u0020-\u007e]+$/.test(text)) return [bytes];
  const pieces = text.split(/[^A-Za-z0-9+/_=-]+/);
  return [bytes, ...pieces.flatMap((piece) => [Buffer.from(piece, 'base64'), Buffer.from(piece, 'hex')])];
}
