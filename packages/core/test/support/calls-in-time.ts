import type { Clock } from '../../src/base/clock.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import type { RingStore } from '../../src/contracts/ring-store.ts';

/** When each call was made, seconds of a clock that never steps. */
export class CallTimes {
  readonly reads: number[] = [];
  readonly unwraps: number[] = [];
  readonly generates: number[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same store; records every read. */
  store<T extends RingStore>(inner: T): T {
    return {
      ...inner,
      read: (options) => {
        this.reads.push(this.#now());
        return inner.read(options);
      },
    };
  }

  /** The same key wrapper; records every call. */
  keyWrapper(inner: KeyWrapper): KeyWrapper {
    return {
      ...inner,
      unwrap: (wrapped, options) => {
        this.unwraps.push(this.#now());
        return inner.unwrap(wrapped, options);
      },
      generate: async (options) => {
        this.generates.push(this.#now());
        const made = await inner.generate?.(options);
        if (made === undefined) throw new Error('this key wrapper generates nothing');
        return made;
      },
    };
  }

  clear(): void {
    for (const times of [this.reads, this.unwraps, this.generates]) times.length = 0;
  }

  #now(): number {
    return Number(this.#clock.monotonicNs()) / 1e9;
  }
}

/** Most of `times` that lie within any one second. */
export function busiestSecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = 0;
  let from = 0;
  for (const [to, time] of sorted.entries()) {
    while (time - (sorted[from] as number) >= 1) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}
