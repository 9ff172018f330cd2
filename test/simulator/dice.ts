import type { RandomSource } from '@sealring/core';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Repeatable random numbers: everything random in a run comes from one seed. */
export class Dice {
  readonly #generator;

  constructor(seed: number) {
    this.#generator = xoroshiro128plus(seed);
  }

  /** A whole number of 32 bits. */
  word(): number {
    return this.#generator.next() >>> 0;
  }

  /** Uniform in [0, 1). */
  uniform(): number {
    return this.word() / 2 ** 32;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.uniform();
  }

  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.uniform() * items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  /** Exponentially distributed around `mean`: a latency with a tail. */
  latencyMs(mean: number): number {
    return -Math.log(1 - this.uniform()) * mean;
  }

  /** The source of random numbers of a codec. */
  readonly source: RandomSource = (fill) => {
    for (let i = 0; i < fill.length; i += 4) {
      const word = this.word();
      fill[i] = word;
      if (i + 1 < fill.length) fill[i + 1] = word >>> 8;
      if (i + 2 < fill.length) fill[i + 2] = word >>> 16;
      if (i + 3 < fill.length) fill[i + 3] = word >>> 24;
    }
  };
}
