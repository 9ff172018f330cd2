import { Random } from './bytes.ts';
import { expectThat, Finding, NotApplicable } from './requirement.ts';
import { describeThrown, isObject, isThenable, kindOf } from './thrown.ts';

/** Longest time for the `close` of all instances of one requirement, milliseconds. */
export const CLOSE_MS = 5_000;

/** How a call ended. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** What every check works with: instances that are closed after it, and calls that are named where they hang. */
export class Trial {
  readonly random: Random;
  /** Instances that a check has closed itself: closing them once more may fail. */
  protected readonly closed: Set<object> = new Set();
  readonly #pending = new Map<symbol, string>();
  readonly #open: { readonly made: object; readonly close: () => unknown }[] = [];
  #mend: (() => Promise<void> | void) | undefined;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** The calls that have begun and not ended, the earliest first. */
  get pending(): readonly string[] {
    return [...new Set(this.#pending.values())];
  }

  /** Waits for what `start` returns, under a name. */
  async wait<T>(what: string, start: () => T | Promise<T>): Promise<T> {
    const call = Symbol(what);
    this.#pending.set(call, what);
    try {
      return await start();
    } finally {
      this.#pending.delete(call);
    }
  }

  /** How a call ends, whether it throws or rejects. */
  async settle(start: () => unknown, what: string): Promise<Outcome> {
    try {
      return { value: await this.wait(what, start) };
    } catch (error) {
      return { error };
    }
  }

  /** How a call ends that returns a promise. @throws {Finding} when it throws at once, or returns anything else. */
  async promised(call: () => unknown, what: string): Promise<Outcome> {
    let promise: unknown;
    try {
      promise = call();
    } catch (error) {
      throw new Finding(`${what} threw ${describeThrown(error)} at once instead of rejecting`);
    }
    expectThat(isThenable(promise), `${what} returned ${kindOf(promise)}, not a promise`);
    return this.settle(() => promise, what);
  }

  /** What a call that must succeed gave. @throws {Finding} when it fails. */
  async answer(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await this.settle(start, what);
    if ('value' in outcome) return outcome.value;
    if (outcome.error instanceof Finding) throw outcome.error;
    throw new Finding(`${what} failed: ${describeThrown(outcome.error)}`);
  }

  /** What refuses a call that must fail. @throws {Finding} when it succeeds. */
  async refusal(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await this.settle(start, what);
    if ('error' in outcome) return outcome.error;
    throw new Finding(`${what} was not refused: the call gave ${kindOf(outcome.value)}`);
  }

  /** Waits for all, however they end, and throws what the first of them threw. */
  async all<T>(running: readonly Promise<T>[]): Promise<readonly T[]> {
    const ended = await Promise.allSettled(running);
    return ended.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  /** Makes an instance, to be closed after the check. @returns its member of that name, which has these methods. */
  protected async start<T extends object>(
    what: string,
    create: () => unknown,
    name: string,
    methods: readonly (keyof T)[],
  ): Promise<T> {
    const instance = await this.answer(create, what);
    expectThat(isObject(instance) && isObject(instance[name]), `${what} returned no { ${name} }`);
    const made = instance[name] as unknown as T;
    const closable: { close?(): unknown } = instance;
    const close = (): unknown => (closable.close === undefined ? this.closeByItself(made) : closable.close());
    this.#open.push({ made, close });
    const isWhole = methods.every((method) => typeof made[method] === 'function');
    expectThat(isWhole, `${what}: no ${methods.join(' and ')}`);
    return made;
  }

  /** Closes what the target gave no close for. */
  protected closeByItself(_made: object): unknown {
    return undefined;
  }

  /** Closes one instance before the check ends. That a close does not end is for another requirement to say. */
  async closeEarly(made: object): Promise<void> {
    await within(CLOSE_MS, this.#closeOne(made), undefined);
  }

  async #closeOne(made: object): Promise<void> {
    const at = this.#open.findIndex((one) => one.made === made);
    if (at < 0) return;
    const [instance] = this.#open.splice(at, 1);
    try {
      await this.answer(() => instance?.close(), 'close of an instance');
    } catch (error) {
      if (!this.closed.has(made)) throw error;
    }
  }

  /** Closes every instance at once. */
  async close(): Promise<void> {
    await this.all([...this.#open].map(({ made }) => this.#closeOne(made)));
  }

  /** Whether that ends in time. @throws {Finding} when a close fails. */
  async closesWithin(ms: number): Promise<boolean> {
    const late = Symbol('late');
    const closing = this.close();
    if ((await within(ms, closing, late)) !== late) return true;
    closing.catch(() => undefined);
    return false;
  }

  /** @throws {Finding} unless every instance closes in time. */
  async expectCloses(): Promise<void> {
    expectThat(await this.closesWithin(CLOSE_MS), `close of an instance did not end within ${CLOSE_MS} ms`);
  }

  /** Until {@link mend}, or the end of the check. @throws {NotApplicable} where the target cannot. */
  async breakBy(target: { breakConnection?(): Promise<() => Promise<void> | void> }): Promise<void> {
    if (target.breakConnection === undefined) throw new NotApplicable('the target has no breakConnection');
    const mend: unknown = await this.wait('breakConnection', () => target.breakConnection?.());
    expectThat(typeof mend === 'function', 'breakConnection resolved to no function that restores the connection');
    this.#mend = mend as () => Promise<void>;
  }

  /** Undoes what the check did to the service. */
  async mend(): Promise<void> {
    const mend = this.#mend;
    this.#mend = undefined;
    await this.wait('what breakConnection returned', () => mend?.());
  }

  /** Removes what the check has stored. */
  async cleanUp(): Promise<void> {}
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
