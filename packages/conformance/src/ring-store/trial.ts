import { setTimeout as pause } from 'node:timers/promises';
import { inspect, types } from 'node:util';
import type { RingStore, RingStoreCallOptions, RingStoreErrorKind, StoredRing } from '@sealring/core';
import { Pending } from '../pending.ts';
import { Random } from '../random.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, isObject, isThenable, kindOf } from '../thrown.ts';
import type { RingStoreSettings } from './options.ts';
import type { RingStoreInstance, RingStoreSubject } from './target.ts';

/** What became of a call. */
export type Outcome =
  | { readonly status: 'resolved'; readonly value: unknown }
  | { readonly status: 'rejected'; readonly error: unknown };

/** Longest wait for what has to come: push, recovery. Less where a requirement has less than two minutes. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 20;
/** Longest time for removing what a requirement wrote. */
const CLEAN_UP_MS = 10_000;

let names = 0;

/** What a check of a ring store works with: fresh names, stores on them, and the words for what it saw. */
export class RingStoreTrial {
  readonly subject: RingStoreSubject;
  readonly random: Random;
  readonly pending: Pending = new Pending();
  readonly rounds: number;
  readonly writers: number;
  readonly patienceMs: number;
  readonly #contestsMs: number;
  readonly #open = new Map<RingStore, RingStoreInstance>();
  readonly #names = new Set<string>();
  #mend: (() => Promise<void> | void) | undefined;

  constructor(subject: RingStoreSubject, { seed, rounds, writers, timeoutMs, contestsMs }: RingStoreSettings) {
    this.subject = subject;
    this.random = new Random(seed);
    this.rounds = rounds;
    this.writers = writers;
    this.patienceMs = Math.min(PATIENCE_MS, timeoutMs / 4);
    this.#contestsMs = contestsMs;
  }

  /** Numbers of contests, from 1: as many as the time allows, within bounds. */
  contests(least: number, most: number): Generator<number> {
    const numbers = Array.from({ length: Math.min(most, this.rounds) }, (_, i) => i + 1);
    return this.inTime(numbers, least, this.#contestsMs);
  }

  /** The first ones, and as many more as the time allows. */
  *inTime<T>(items: readonly T[], least: number, budgetMs: number): Generator<T> {
    const deadline = performance.now() + budgetMs;
    for (const [i, item] of items.entries()) {
      if (i >= least && performance.now() > deadline) return;
      yield item;
    }
  }

  /** A name that no other requirement, process or run has used. */
  freshName(): string {
    return `kit-${process.pid}-${Date.now().toString(36)}-${(++names).toString(36)}`;
  }

  async open(name: string = this.freshName()): Promise<RingStore> {
    this.#names.add(name);
    const instance: unknown = await this.pending.wait('create', () => this.subject.create(name));
    expectThat(isObject(instance) && isObject(instance['store']), 'create returned no { store }');
    const { store } = instance as unknown as RingStoreInstance;
    this.#open.set(store, instance as unknown as RingStoreInstance);
    expectThat(typeof store.read === 'function' && typeof store.write === 'function', 'a store without read and write');
    return store;
  }

  openMany(count: number, name: string = this.freshName()): Promise<readonly RingStore[]> {
    return Promise.all(Array.from({ length: count }, () => this.open(name)));
  }

  async openPair(name: string = this.freshName()): Promise<readonly [RingStore, RingStore]> {
    return [await this.open(name), await this.open(name)];
  }

  /** Ends one store before the requirement ends. */
  async closeOne(store: RingStore): Promise<void> {
    const instance = this.#open.get(store);
    this.#open.delete(store);
    await this.pending.wait('close', () => (instance?.close === undefined ? store.close?.() : instance.close()));
  }

  /** @throws {NotApplicable} where the target cannot. */
  async remove(name: string): Promise<void> {
    if (this.subject.remove === undefined) throw new NotApplicable('the target has no remove');
    await this.pending.wait('remove', () => this.subject.remove?.(name));
  }

  /** @throws {NotApplicable} where the target cannot. */
  async plant(name: string, document: string): Promise<void> {
    if (this.subject.plant === undefined) throw new NotApplicable('the target has no plant');
    this.#names.add(name);
    await this.pending.wait('plant', () => this.subject.plant?.(name, document));
  }

  /** Until {@link mend}, or the end of the requirement. @throws {NotApplicable} where the target cannot. */
  async breakConnection(): Promise<void> {
    const mend: unknown = await this.pending.wait('breakConnection', () => this.subject.breakConnection?.());
    expectThat(typeof mend === 'function', 'breakConnection resolved to no function that restores the connection');
    this.#mend = mend as () => Promise<void>;
  }

  /** @throws {NotApplicable} where the target cannot break its connection. */
  expectBreakable(): void {
    if (this.subject.breakConnection === undefined) throw new NotApplicable('the target has no breakConnection');
  }

  async mend(): Promise<void> {
    const mend = this.#mend;
    this.#mend = undefined;
    await this.pending.wait('what breakConnection returned', () => mend?.());
  }

  /** A call, held against what every call does: it returns a promise, whatever becomes of it. */
  async outcome(call: () => unknown, what: string): Promise<Outcome> {
    let promise: unknown;
    try {
      promise = call();
    } catch (error) {
      throw new Finding(`${what} threw ${describeThrown(error)} at once instead of rejecting`);
    }
    expectThat(isThenable(promise), `${what} returned ${kindOf(promise)}, not a promise`);
    try {
      return { status: 'resolved', value: await this.pending.wait(what, () => promise) };
    } catch (error) {
      return { status: 'rejected', error };
    }
  }

  /** Reads what must be readable. */
  async read(store: RingStore, what = 'a read', options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    const outcome = await this.outcome(() => (options === undefined ? store.read() : store.read(options)), what);
    if (outcome.status === 'rejected') throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return storedRing(outcome.value, what);
  }

  /** Writes what must win; returns the revision. */
  async write(
    store: RingStore,
    document: string,
    expected: string | undefined,
    what = 'a write with the right expectation',
    options: RingStoreCallOptions = {},
  ): Promise<string> {
    const outcome = await this.outcome(() => store.write(document, { ...options, expected }), what);
    if (outcome.status === 'rejected') throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return revisionOf(outcome.value, what);
  }

  /** Writes what must lose: by the error that says so. */
  async expectConflict(store: RingStore, expected: string | undefined, what: string): Promise<void> {
    const outcome = await this.outcome(() => store.write('never', { expected }), what);
    if (outcome.status === 'resolved') throw new Finding(`${what} won: it resolved to ${kindOf(outcome.value)}`);
    expectThat(isConflict(outcome.error), `${what} lost with ${describeThrown(outcome.error)}, not RingConflictError`);
  }

  /** A call that must fail as the contract says. */
  async expectFailure(call: () => unknown, kind: RingStoreErrorKind, what: string): Promise<void> {
    const outcome = await this.outcome(call, what);
    if (outcome.status === 'resolved') throw new Finding(`${what} resolved to ${kindOf(outcome.value)}, not ${kind}`);
    expectThat(
      isFailure(outcome.error, kind),
      `${what} rejected with ${describeThrown(outcome.error)}, not RingStoreError ${kind}`,
    );
  }

  async expectAbsent(store: RingStore, what: string): Promise<void> {
    const found = await this.read(store, what);
    expectThat(found === undefined, `${what} found ${documentText(found?.document ?? '')}, where nothing should be`);
  }

  /** Reads what must be this document, whatever its revision. */
  async expectDocument(store: RingStore, document: string, what: string): Promise<void> {
    const found = await this.read(store, what);
    expectThat(found !== undefined, `${what} says that the ring is absent, not ${documentText(document)}`);
    expectThat(found.document === document, `${what} ${differenceText(found.document, document)}`);
  }

  /** Reads what must be exactly this. */
  async expectStored(
    store: RingStore,
    document: string,
    revision: string | undefined,
    what: string = `a read of ${documentText(document)}`,
  ): Promise<void> {
    const found = await this.read(store, what);
    expectThat(found !== undefined, `${what} says that the ring is absent, not ${documentText(document)}`);
    expectThat(found.document === document, `${what} ${differenceText(found.document, document)}`);
    expectThat(
      found.revision === revision,
      `${what} has the revision ${textOf(found.revision)}, its write had ${textOf(revision ?? '')}`,
    );
  }

  /** Waits for all, however they end, and throws what the first of them threw. */
  async all<T>(running: readonly Promise<T>[]): Promise<readonly T[]> {
    const ended = await Promise.allSettled(running);
    return ended.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  /** Waits for what has to come. */
  async until(holds: () => boolean | Promise<boolean>, finding: string): Promise<void> {
    const deadline = performance.now() + this.patienceMs;
    while (!(await holds())) {
      expectThat(performance.now() < deadline, `${finding} within ${this.patienceMs / 1_000} s`);
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Closes all stores at once. */
  async close(): Promise<void> {
    await this.all([...this.#open.keys()].map((store) => this.closeOne(store)));
  }

  /** Removes what was written, where the target can. */
  async cleanUp(): Promise<void> {
    const { remove } = this.subject;
    if (remove === undefined) return;
    // Much of it was never written; that it cannot be removed then is no finding.
    const removed = Promise.allSettled([...this.#names].map(async (name) => remove(name)));
    this.#names.clear();
    await Promise.race([removed, pause(CLEAN_UP_MS, undefined, { ref: false })]);
  }
}

/** @throws {Finding} unless `value` is what a read resolves to. */
function storedRing(value: unknown, what: string): StoredRing | undefined {
  if (value === undefined) return undefined;
  expectThat(isObject(value), `${what} resolved to ${kindOf(value)}, neither undefined nor { document, revision }`);
  const { document, revision } = value;
  expectThat(typeof document === 'string', `${what} resolved to a document that is ${kindOf(document)}, not a string`);
  expectThat(typeof revision === 'string', `${what} resolved to a revision that is ${kindOf(revision)}, not a string`);
  return { document, revision };
}

/** @throws {Finding} unless `value` is what a write resolves to. */
export function revisionOf(value: unknown, what: string): string {
  expectThat(isObject(value), `${what} resolved to ${kindOf(value)}, not { revision }`);
  const { revision } = value;
  expectThat(typeof revision === 'string', `${what} resolved to a revision that is ${kindOf(revision)}, not a string`);
  return revision;
}

/** By name: a store may carry its own copy of the class. */
export function isConflict(error: unknown): boolean {
  return types.isNativeError(error) && error.name === 'RingConflictError';
}

export function isFailure(error: unknown, kind: RingStoreErrorKind): boolean {
  return types.isNativeError(error) && error.name === 'RingStoreError' && 'kind' in error && error.kind === kind;
}

/** A document in a finding: whole where it is short. */
export function documentText(document: string): string {
  if (document.length <= 60) return textOf(document);
  return `${textOf(document.slice(0, 40))}… of ${document.length} characters`;
}

/** What was found instead of what: the first place in which they differ, where one is long. */
function differenceText(found: string, wanted: string): string {
  if (found.length <= 60 && wanted.length <= 60) return `found ${textOf(found)}, not ${textOf(wanted)}`;
  let at = 0;
  while (found[at] === wanted[at] && at < wanted.length) at++;
  const lengths = `${found.length} characters, of which number ${at + 1} is the first to differ from the ${wanted.length}`;
  const pieces = [found, wanted].map((text) => textOf(text.slice(Math.max(0, at - 5), at + 10)));
  return `found ${lengths} that were written: ${pieces.join(', not ')}`;
}

export function textOf(text: string): string {
  return inspect(text.length > 80 ? `${text.slice(0, 60)}…` : text);
}
