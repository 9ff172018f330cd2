import { randomFillSync } from 'node:crypto';

/** A random source whose uniform numbers, drawn from four bytes each, are set by the test; keys stay random. */
export class Draws {
  /** The next numbers, in [0, 1). */
  next: number;

  constructor(next = 0.5) {
    this.next = next;
  }

  readonly random = (fill: Uint8Array): void => {
    if (fill.length !== 4) {
      randomFillSync(fill);
      return;
    }
    new DataView(fill.buffer, fill.byteOffset).setUint32(0, Math.floor(this.next * 2 ** 32), true);
  };
}
