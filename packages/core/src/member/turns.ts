/** Runs one task at a time: requested tasks first, then background tasks, each kind in order. */
export class Turns {
  readonly #asked: (() => Promise<void>)[] = [];
  readonly #background: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;

  /** Runs `run` before all background tasks. */
  asked<T>(run: () => Promise<T>): Promise<T> {
    return this.#enqueue(this.#asked, run);
  }

  /** Runs `run` when no requested task is waiting. */
  background<T>(run: () => Promise<T>): Promise<T> {
    return this.#enqueue(this.#background, run);
  }

  /** Resolves when nothing is left to run. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  #enqueue<T>(queue: (() => Promise<void>)[], run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // A task that throws instead of rejecting must not prevent the others from running.
      queue.push(() => (async () => run())().then(resolve, reject));
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    for (;;) {
      // No task runs within the caller's own call, which returns first.
      await Promise.resolve();
      const next = this.#asked.shift() ?? this.#background.shift();
      if (next === undefined) break;
      await next();
    }
    this.#running = undefined;
  }
}
