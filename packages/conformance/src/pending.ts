/** The calls of a target that have begun and not ended: a call that hangs is reported by its name. */
export class Pending {
  readonly #names = new Map<symbol, string>();

  /** Waits for what `start` returns, under a name. */
  async wait<T>(what: string, start: () => T | Promise<T>): Promise<T> {
    const call = Symbol(what);
    this.#names.set(call, what);
    try {
      return await start();
    } finally {
      this.#names.delete(call);
    }
  }

  /** What has not ended, the earliest first. */
  get names(): readonly string[] {
    return [...new Set(this.#names.values())];
  }
}

/** Resolves to what `work` does, or to `late` after some milliseconds. */
export async function within<T, L>(ms: number, work: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
