import { types } from 'node:util';

/**
 * Bytes that arrive in parts. They are copied into one array, because a part can be a single byte, which takes hundreds
 * of bytes as a separate object.
 */
export class GatheredBytes {
  #room: Uint8Array = new Uint8Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @throws {TypeError} for a part that is not bytes: a stream can deliver any value. */
  add(part: Uint8Array): void {
    if (!types.isUint8Array(part)) throw new TypeError('a part of a body is not bytes');
    const size = this.#size + part.byteLength;
    if (size > this.#room.byteLength) {
      const room = new Uint8Array(Math.max(size, 2 * this.#size));
      room.set(this.#room);
      this.#room = room;
    }
    this.#room.set(part, this.#size);
    this.#size = size;
  }

  /** The bytes so far. Later additions do not change them. */
  get bytes(): Uint8Array {
    return this.#room.subarray(0, this.#size);
  }
}
