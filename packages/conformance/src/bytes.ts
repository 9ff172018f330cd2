/** Bit by bit, the exclusive or of two byte arrays, as long as the shorter one. */
export function xor(one: Uint8Array, other: Uint8Array): Buffer {
  const length = Math.min(one.length, other.length);
  return Buffer.from(one.subarray(0, length).map((byte, i) => byte ^ (other[i] ?? 0)));
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** A copy with some bits of one byte flipped. */
export function flipped(bytes: Uint8Array, at: number, mask = 1): Uint8Array {
  return bytes.map((byte, i) => (i === at ? byte ^ mask : byte));
}

export function text(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}
