/** The XOR of two byte arrays. The result is as long as the shorter array. */
export function xor(one: Uint8Array, other: Uint8Array): Buffer {
  const length = Math.min(one.length, other.length);
  return Buffer.from(one.subarray(0, length).map((byte, i) => byte ^ (other[i] ?? 0)));
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

export function flipped(bytes: Uint8Array, at: number, mask = 1): Uint8Array {
  return bytes.map((byte, i) => (i === at ? byte ^ mask : byte));
}

/** The two items as a pair, in both orders. */
export function bothWays<T>(one: T, other: T): readonly (readonly [T, T])[] {
  return [
    [one, other],
    [other, one],
  ];
}

export function text(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

/** The alphabet of base64url. */
export const URL_SAFE: string = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * The six base64url characters whose value differs from that of `char` in one bit; none if `char` is not a base64url
 * character.
 */
export function withBitFlipped(char: string): readonly string[] {
  const value = char === '' ? -1 : URL_SAFE.indexOf(char);
  return value < 0 ? [] : [1, 2, 4, 8, 16, 32].map((bit) => URL_SAFE.charAt(value ^ bit));
}

/** A seeded random generator: xorshift, 32 bits (Marsaglia 2003). Use it for test inputs, never for keys. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e37_79b9) >>> 0 || 1;
  }

  /** An integer from 0 to `below` − 1. */
  below(below: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state % below;
  }

  bytes(length: number): Uint8Array {
    // The checks draw millions of bytes, and `Uint8Array.from` would take ten times as long as this loop.
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }
}
