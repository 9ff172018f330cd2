/** Ids of keys, newest last; the oldest is removed when there are more than `limit`. */
export class NewestIds extends Set<string> {
  readonly #limit: number;

  /** @param limit - Maximum number of ids that are remembered. */
  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override add(id: string): this {
    super.add(id);
    const [oldest] = this;
    if (this.size > this.#limit && oldest !== undefined) this.delete(oldest);
    return this;
  }
}
