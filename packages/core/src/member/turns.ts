/** Runs one thing at a time: what somebody asked for first, each in order. */
export class Turns {
  readonly #asked: (() => Promise<void>)[] = [];
  readonly #background: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;

  /** Runs `run` before all that runs by itself. */
  asked<T>(run: () => Promise<T>): Promise<T> {
    return this.#enqueue(this.#asked, run);
  }

  /** Runs `run` when nothing that was asked for is waiting. */
  background<T>(run: () => Promise<T>): Promise<T> {
    return this.#enqueue(this.#background, run);
  }

  /** Resolves when nothing is left to run. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  #enqueue<T>(queue: (() => Promise<void>)[], run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // One that throws instead of rejecting must not end the turns of the others.
      queue.push(() => (async () => run())().then(resolve, reject));
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    for (;;) {
      // Not in the caller's own call: whoever asks goes on first.
      await Promise.resolve();
      const next = this.#asked.shift() ?? this.#background.shift();
      if (next === undefined) break;
      await next();
    }
    this.#running = undefined;
  }
}
