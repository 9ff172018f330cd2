/** Bit by bit, the exclusive or of two byte arrays, as long as the shorter one. */
export function xor(one: Uint8Array, other: Uint8Array): Buffer {
  const length = Math.min(one.length, other.length);
  return Buffer.from(one.subarray(0, length).map((byte, i) => byte ^ (other[i] ?? 0)));
}
