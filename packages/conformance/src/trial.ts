import { Random } from './bytes.ts';
import { expectThat, Finding, NotApplicable } from './requirement.ts';
import { describeThrown, isObject, isThenable, kindOf } from './thrown.ts';

/** Time limit for closing all instances of one requirement, in milliseconds. */
export const CLOSE_MS = 5_000;

/** Time limit for the optional repetitions of one requirement, in milliseconds. */
export const REPEATS_MS = 500;

/** A target counts as slow if a step takes longer than this, in milliseconds. */
const SLOW_MS = 50;
/** Number of concurrent steps with a slow target. */
const STEPS_AT_ONCE = 8;

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** The base class of the trials of all suites. Closes the instances after a check, and names the calls that hang. */
export class Trial {
  readonly random: Random;
  /** Time limit for one call, if shorter than the limit for the requirement, in milliseconds. */
  readonly callMs: number = Number.POSITIVE_INFINITY;
  /** Instances that a check has already closed. Closing them again is allowed to fail. */
  protected readonly closed: Set<object> = new Set();
  readonly #pending = new Map<symbol, { readonly what: string; readonly since: number }>();
  readonly #open: { readonly made: object; readonly close: () => unknown }[] = [];
  #mend: (() => Promise<void> | void) | undefined;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /**
   * A signal and a callback for the date of the service, for half of the calls, at random: a ring codec passes both with
   * every call, and nothing else may depend on them.
   */
  protected someOptions(): { readonly signal: AbortSignal; readonly onServiceDate: () => void } | undefined {
    if (this.random.below(2) === 0) return undefined;
    return { signal: new AbortController().signal, onServiceDate: () => undefined };
  }

  /** The pending calls, earliest first. */
  get pending(): readonly string[] {
    return [...new Set([...this.#pending.values()].map(({ what }) => what))];
  }

  /** Milliseconds for which the earliest pending call has been pending, or 0. */
  get pendingMs(): number {
    const [first] = this.#pending.values();
    return first === undefined ? 0 : performance.now() - first.since;
  }

  /** Waits for the result of `start`. Meanwhile, the call is listed as pending under the name `what`. */
  async wait<T>(what: string, start: () => T | Promise<T>): Promise<T> {
    const call = Symbol(what);
    this.#pending.set(call, { what, since: performance.now() });
    try {
      return await start();
    } finally {
      this.#pending.delete(call);
    }
  }

  /** The outcome of a call that may throw, reject or resolve. */
  async settle(start: () => unknown, what: string): Promise<Outcome> {
    try {
      return { value: await this.wait(what, start) };
    } catch (error) {
      return { error };
    }
  }

  /** The outcome of a call that must return a promise. @throws {Finding} if it throws or returns another value. */
  async promised(call: () => unknown, what: string): Promise<Outcome> {
    let promise: unknown;
    try {
      promise = call();
    } catch (error) {
      throw new Finding(`${what} threw ${describeThrown(error)} synchronously instead of rejecting`);
    }
    expectThat(isThenable(promise), `${what} returned ${kindOf(promise)}, not a promise`);
    return this.settle(() => promise, what);
  }

  /** The result of a call that must succeed. @throws {Finding} if it fails. */
  async answer(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await this.settle(start, what);
    if ('value' in outcome) return outcome.value;
    if (outcome.error instanceof Finding) throw outcome.error;
    throw new Finding(`${what} failed: ${describeThrown(outcome.error)}`);
  }

  /** The error of a call that must fail. @throws {Finding} if it succeeds. */
  async refusal(start: () => unknown, what: string): Promise<unknown> {
    const outcome = await this.settle(start, what);
    if ('error' in outcome) return outcome.error;
    throw new Finding(`${what} was not refused: the call returned ${kindOf(outcome.value)}`);
  }

  /** The first `least` items, and as many more as the time allows. */
  *inTime<T>(items: readonly T[], least: number, budgetMs: number = REPEATS_MS): Generator<T> {
    const deadline = performance.now() + budgetMs;
    for (const [i, item] of items.entries()) {
      if (i >= least && performance.now() > deadline) return;
      yield item;
    }
  }

  /** Waits for all promises to settle, and then throws the first error. */
  async all<T>(running: readonly Promise<T>[]): Promise<readonly T[]> {
    const ended = await Promise.allSettled(running);
    return ended.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  /**
   * Does the work for each item, one item at a time, so that a finding names the right item. If that is slow, works on
   * several items at a time.
   */
  async each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
    let isSlow = false;
    let running: Promise<void>[] = [];
    let began = performance.now();
    for (const item of items) {
      running.push(work(item));
      if (isSlow && running.length < STEPS_AT_ONCE) continue;
      await this.all(running);
      isSlow ||= performance.now() - began > SLOW_MS;
      running = [];
      began = performance.now();
    }
    await this.all(running);
  }

  /**
   * Creates an instance, which is closed after the check.
   * @returns the member of the instance with the name `name`, which has all of `methods`.
   */
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
    expectThat(isWhole, `${what} returned an object without ${methods.join(' and ')}`);
    return made;
  }

  protected closeByItself(_made: object): unknown {
    return undefined;
  }

  /** Closes one instance before the check ends. Another requirement reports a close that does not end. */
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

  async close(): Promise<void> {
    await this.all([...this.#open].map(({ made }) => this.#closeOne(made)));
  }

  /** Whether closing all instances ends in time. @throws {Finding} if a close fails. */
  async closesWithin(ms: number): Promise<boolean> {
    const late = Symbol('late');
    const closing = this.close();
    if ((await within(ms, closing, late)) !== late) return true;
    closing.catch(() => undefined);
    return false;
  }

  async expectCloses(): Promise<void> {
    expectThat(await this.closesWithin(CLOSE_MS), `closing an instance took longer than ${CLOSE_MS} ms`);
  }

  /**
   * Breaks the connection until {@link mend} is called or the check ends.
   * @throws {NotApplicable} if the target cannot do this.
   */
  async breakBy(target: { breakConnection?(): Promise<() => Promise<void> | void> }): Promise<void> {
    if (target.breakConnection === undefined) throw new NotApplicable('the target has no breakConnection');
    const mend: unknown = await this.wait('breakConnection', () => target.breakConnection?.());
    expectThat(
      typeof mend === 'function',
      'breakConnection did not resolve to a function that restores the connection',
    );
    this.#mend = mend as () => Promise<void>;
  }

  async mend(): Promise<void> {
    const mend = this.#mend;
    this.#mend = undefined;
    await this.wait('the function that breakConnection returned', () => mend?.());
  }

  async cleanUp(): Promise<void> {}
}

/** Resolves to the result of `work`, or to `late` if that takes longer than `ms` milliseconds. */
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
