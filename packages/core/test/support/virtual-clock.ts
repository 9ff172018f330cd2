import type { Clock } from '../../src/base/clock.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time that stands still until it is advanced: timers run in order, and each can finish what it started. */
export class VirtualClock implements Clock {
  #wallMs: number;
  #monotonicMs = 1_000;
  #uptimeMs = 60_000;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(start: string) {
    this.#wallMs = Date.parse(start);
  }

  wallMs(): number {
    return this.#wallMs;
  }

  monotonicNs(): bigint {
    return BigInt(Math.round(this.#monotonicMs * 1e6));
  }

  /** Since the machine was started: a suspension counts, a step of the wall clock does not. */
  uptimeMs(): number {
    return this.#uptimeMs;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#monotonicMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Advances `seconds`, and runs every timer at its time. */
  async advance(seconds: number): Promise<void> {
    const end = this.#monotonicMs + seconds * 1_000;
    await settle();
    for (let next = this.#nextBefore(end); next !== undefined; next = this.#nextBefore(end)) {
      this.#timers.delete(next);
      this.#pass(next.at - this.#monotonicMs);
      next.callback();
      await settle();
    }
    this.#pass(end - this.#monotonicMs);
    await settle();
  }

  /** The wall clock jumps; the monotonic one does not, nor does the time since the machine was started. */
  step(seconds: number): void {
    this.#wallMs += seconds * 1_000;
  }

  /** A machine that was suspended: wall time passed, monotonic time and timers stood still. */
  suspend(seconds: number): void {
    this.#wallMs += seconds * 1_000;
    this.#uptimeMs += seconds * 1_000;
  }

  #pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
    this.#uptimeMs += ms;
  }

  #nextBefore(end: number): Timer | undefined {
    let found: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > end) continue;
      if (found === undefined || timer.at < found.at || (timer.at === found.at && timer.order < found.order))
        found = timer;
    }
    return found;
  }
}

/** Resolves when all ready callbacks have run; there is no real I/O to wait for. */
async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
}
