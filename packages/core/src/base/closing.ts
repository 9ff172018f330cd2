/**
 * Ends a codec's waits and calls when it is closed. An AbortSignal is not used because some platforms (workerd) bind it
 * to the request that created it, so that later requests could not listen to it.
 */
export class Closing {
  readonly #listeners = new Set<() => void>();
  #aborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** Calls all listeners, once. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    for (const listener of this.#listeners) listener();
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }
}
