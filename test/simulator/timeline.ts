import TinyQueue from 'tinyqueue';

/** The wall time at which a world begins, milliseconds: any date. */
export const EPOCH_MS: number = Date.parse('2026-11-21T03:00:00Z');

interface Happening {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** The one timeline of a simulated world: events in order, milliseconds since its beginning. */
export class Timeline {
  readonly #queue = new TinyQueue<Happening>([], (a, b) => a.at - b.at || a.order - b.order);
  #nowMs = 0;
  #order = 0;
  happenings = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `run` after `delayMs`; returns the function that cancels it. */
  after(delayMs: number, run: () => void): () => void {
    const happening: Happening = { at: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#queue.push(happening);
    return () => {
      happening.run = undefined;
    };
  }

  /** Runs `run` every `everyMs` without an end. */
  every(everyMs: number, run: () => void): void {
    this.after(everyMs, () => {
      run();
      this.every(everyMs, run);
    });
  }

  /** Resolves after `delayMs` of this world. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(delayMs, resolve);
    });
  }

  /**
   * Advances time to `untilMs`. All events of one `quantumMs` run before what they started continues: with ten thousand
   * members, answers may be this late.
   */
  async advance(untilMs: number, quantumMs: number): Promise<void> {
    while (this.#nowMs < untilMs) {
      const next = this.#queue.peek();
      if (next === undefined || next.at > untilMs) break;
      const end = Math.min(untilMs, next.at + quantumMs);
      for (let due = this.#queue.peek(); due !== undefined && due.at <= end; due = this.#queue.peek()) {
        this.#queue.pop();
        if (due.run === undefined) continue;
        this.#nowMs = Math.max(this.#nowMs, due.at);
        this.happenings += 1;
        due.run();
      }
      // There is no real I/O in this world: one turn of the event loop runs all ready callbacks.
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    this.#nowMs = untilMs;
  }
}
