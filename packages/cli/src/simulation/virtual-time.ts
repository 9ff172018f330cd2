interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time that stands still until told. Timers run in their order, and each may finish what it started. */
export class VirtualTime {
  nowMs = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Runs every timer up to `endMs`, which is the time then. */
  async runUntil(endMs: number): Promise<void> {
    for (let next = this.#nextBefore(endMs); next !== undefined; next = this.#nextBefore(endMs)) {
      this.#timers.delete(next);
      this.nowMs = next.atMs;
      next.callback();
      await settled();
    }
    this.nowMs = endMs;
  }

  #nextBefore(endMs: number): Timer | undefined {
    let found: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs > endMs) continue;
      if (found === undefined || timer.atMs < found.atMs || (timer.atMs === found.atMs && timer.order < found.order)) {
        found = timer;
      }
    }
    return found;
  }
}

/** Turns of the event loop after which what was ready has run: nothing simulated waits for real input or output. */
const TURNS = 4;

export async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}
