import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import { inspect, types } from 'node:util';
import type { RingStore, RingStoreCallOptions, RingStoreErrorKind, StoredRing } from '@sealring/core';
import type { Settings } from '../options.ts';
import { type Checks, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, isObject, kindOf } from '../thrown.ts';
import { CLOSE_MS, Trial, within } from '../trial.ts';
import { MAX_DOCUMENT_BYTES, type RingStoreOptions, type RingStoreSupport, type RingStoreTarget } from './target.ts';

export type RingStoreChecks = Checks<RingStoreTrial>;

/** Calls that are timed before the first one is aborted. */
const TIMED = 5;
/** Parts of the time that a call takes, after which it is aborted; more than 1 is after its end. */
const PARTS: readonly number[] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.5];
/** The same in turns of the event loop, for a store that needs few. */
const TURNS: readonly number[] = [0, 1, 2, 3, 4, 6, 8];

export type Moment = (began: number) => Promise<void>;

/** When calls are aborted, by how long one takes. `once` makes one, or prepares it and returns what makes it. */
export async function moments(once: () => Promise<void | (() => Promise<unknown>)>): Promise<readonly Moment[]> {
  const times: number[] = [];
  for (let i = 0; i < TIMED; i++) {
    let began = performance.now();
    const prepared = await once();
    if (prepared !== undefined) {
      began = performance.now();
      await prepared();
    }
    times.push(performance.now() - began);
  }
  const tookMs = times.toSorted((one, other) => one - other)[Math.floor(TIMED / 2)] ?? 0;
  return [
    ...TURNS.map((turns) => async () => {
      for (let i = 0; i < turns; i++) await otherWork();
    }),
    // A timer is too coarse for a call of two milliseconds.
    ...PARTS.map((part) => async (began: number) => {
      while (performance.now() - began < part * tookMs) await otherWork();
    }),
  ];
}

/** Longest time for what one requirement repeats, once it has been repeated as often as it must be, milliseconds. */
const REPEATS_MS = 500;
/** Longest wait for what has to come: push, recovery. Less where a requirement has less than two minutes. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 20;
const CLEAN_UP_MS = 10_000;

let names = 0;

/** What a check of a ring store works with: fresh names, stores on them, and the words for what it saw. */
export class RingStoreTrial extends Trial {
  readonly target: RingStoreTarget;
  readonly supports: RingStoreSupport & { readonly uniqueRevisions: boolean; readonly maxDocumentBytes: number };
  readonly settings: Settings;
  readonly rounds: number;
  readonly writers: number;
  readonly patienceMs: number;
  readonly #isCounted: boolean;
  readonly #names = new Set<string>();

  constructor(target: RingStoreTarget, settings: Settings, { rounds, writers = 20 }: RingStoreOptions) {
    super(settings.seed);
    this.target = target;
    const { uniqueRevisions = false, maxDocumentBytes = MAX_DOCUMENT_BYTES } = target.supports ?? {};
    this.supports = { ...target.supports, uniqueRevisions, maxDocumentBytes };
    this.settings = settings;
    this.rounds = rounds ?? 200;
    this.writers = writers;
    this.patienceMs = Math.min(PATIENCE_MS, settings.timeoutMs / 4);
    this.#isCounted = rounds !== undefined;
  }

  /** Numbers of contests, from 1: as many as the time allows, within bounds. */
  contests(least: number, most: number, budgetMs: number = REPEATS_MS): Generator<number> {
    return this.inTime(
      numbersTo(Math.min(most, this.rounds)),
      least,
      this.#isCounted ? Number.POSITIVE_INFINITY : budgetMs,
    );
  }

  /** The same for what is not a contest, which `rounds` does not change. */
  repeats(least: number, most: number): Generator<number> {
    return this.inTime(numbersTo(most), least);
  }

  /** The first ones, and as many more as the time allows. */
  *inTime<T>(items: readonly T[], least: number, budgetMs: number = REPEATS_MS): Generator<T> {
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
    return this.start<RingStore>('create', () => this.target.create(name), 'store', ['read', 'write']);
  }

  protected override closeByItself(made: object): unknown {
    return (made as RingStore).close?.();
  }

  /** Whether the store’s own close ends, if it has one. It may be called more than once. */
  closesAgain(store: RingStore): Promise<boolean> {
    this.closed.add(store);
    return within(
      CLOSE_MS,
      this.answer(() => store.close?.(), 'close').then(() => true),
      false,
    );
  }

  openMany(count: number, name: string = this.freshName()): Promise<readonly RingStore[]> {
    return Promise.all(Array.from({ length: count }, () => this.open(name)));
  }

  async openPair(name: string = this.freshName()): Promise<readonly [RingStore, RingStore]> {
    return [await this.open(name), await this.open(name)];
  }

  async remove(name: string): Promise<void> {
    this.expectAble('remove');
    await this.wait('remove', () => this.target.remove?.(name));
  }

  async plant(name: string, document: string): Promise<void> {
    this.expectAble('plant');
    this.#names.add(name);
    await this.wait('plant', () => this.target.plant?.(name, document));
  }

  /** Until it is restored, or the end of the requirement. @throws {NotApplicable} where the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.target);
  }

  /** @throws {NotApplicable} where the target cannot. */
  expectAble(name: 'breakConnection' | 'plant' | 'remove'): void {
    if (this.target[name] === undefined) throw new NotApplicable(`the target has no ${name}`);
  }

  async read(store: RingStore, what = 'a read', options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    const outcome = await this.promised(() => (options === undefined ? store.read() : store.read(options)), what);
    if ('error' in outcome) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return storedRing(outcome.value, what);
  }

  async write(
    store: RingStore,
    document: string,
    expected: string | undefined,
    what = 'a write with the right expectation',
    options: RingStoreCallOptions = {},
  ): Promise<string> {
    const outcome = await this.promised(() => store.write(document, { ...options, expected }), what);
    if ('error' in outcome) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return revisionOf(outcome.value, what);
  }

  /** Writes among others. @returns the revision, or `undefined` where it lost. @throws {Finding} for another error. */
  async attempt(
    store: RingStore,
    document: string,
    expected: string | undefined,
    what: string,
  ): Promise<string | undefined> {
    const outcome = await this.promised(() => store.write(document, { expected }), what);
    if ('value' in outcome) return revisionOf(outcome.value, what);
    if (!isConflict(outcome.error)) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return undefined;
  }

  /** Writes one document after the other: each is read whole on every reader. */
  async expectWhole(
    documents: Iterable<readonly [document: string, what: string]>,
    writer: RingStore,
    ...readers: readonly RingStore[]
  ): Promise<void> {
    let revision: string | undefined;
    for (const [document, what] of documents) {
      revision = await this.write(writer, document, revision, `a write of ${what}`);
      for (const reader of readers) await this.expectStored(reader, document, revision, `a read of ${what}`);
    }
  }

  /** Writes what must lose: by the error that says so. */
  async expectConflict(store: RingStore, expected: string | undefined, what: string): Promise<void> {
    const outcome = await this.promised(() => store.write('never', { expected }), what);
    if ('value' in outcome) throw new Finding(`${what} won: it resolved to ${kindOf(outcome.value)}`);
    expectThat(isConflict(outcome.error), `${what} lost with ${describeThrown(outcome.error)}, not RingConflictError`);
  }

  async expectFailure(call: () => unknown, kind: RingStoreErrorKind, what: string): Promise<void> {
    const outcome = await this.promised(call, what);
    if ('value' in outcome) throw new Finding(`${what} resolved to ${kindOf(outcome.value)}, not ${kind}`);
    expectThat(
      isFailure(outcome.error, kind),
      `${what} rejected with ${describeThrown(outcome.error)}, not RingStoreError ${kind}`,
    );
  }

  async expectAbsent(store: RingStore, what: string): Promise<void> {
    const found = await this.read(store, what);
    expectThat(found === undefined, `${what} found ${documentText(found?.document ?? '')}, where nothing should be`);
  }

  async expectDocument(store: RingStore, document: string, what: string): Promise<StoredRing> {
    const found = await this.read(store, what);
    expectThat(found !== undefined, `${what} says that the ring is absent, not ${documentText(document)}`);
    expectThat(found.document === document, `${what} ${differenceText(found.document, document)}`);
    return found;
  }

  async expectStored(
    store: RingStore,
    document: string,
    revision: string | undefined,
    what: string = `a read of ${documentText(document)}`,
  ): Promise<void> {
    const found = await this.expectDocument(store, document, what);
    const revisions = `the revision ${textOf(found.revision)}, its write had ${textOf(revision ?? '')}`;
    expectThat(found.revision === revision, `${what} has ${revisions}`);
  }

  async until(holds: () => boolean | Promise<boolean>, finding: string): Promise<void> {
    const deadline = performance.now() + this.patienceMs;
    while (!(await holds())) {
      expectThat(performance.now() < deadline, `${finding} within ${this.patienceMs / 1_000} s`);
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** For what is tried until it succeeds: called after every attempt, it throws when no success comes. */
  patience(finding: string): (hasSucceeded: boolean) => void {
    let since = performance.now();
    return (hasSucceeded) => {
      if (hasSucceeded) since = performance.now();
      expectThat(performance.now() - since < this.patienceMs, `${finding} within ${this.patienceMs / 1_000} s`);
    };
  }

  override async cleanUp(): Promise<void> {
    if (this.target.remove === undefined) return;
    // Much of it was never written; that it cannot be removed then is no finding.
    const removed = Promise.allSettled([...this.#names].map(async (name) => this.target.remove?.(name)));
    this.#names.clear();
    await Promise.race([removed, pause(CLEAN_UP_MS, undefined, { ref: false })]);
  }
}

function numbersTo(most: number): readonly number[] {
  return Array.from({ length: most }, (_, i) => i + 1);
}

function storedRing(value: unknown, what: string): StoredRing | undefined {
  if (value === undefined) return undefined;
  expectThat(isObject(value), `${what} resolved to ${kindOf(value)}, neither undefined nor { document, revision }`);
  const { document, revision } = value;
  expectThat(typeof document === 'string', `${what} resolved to a document that is ${kindOf(document)}, not a string`);
  expectThat(typeof revision === 'string', `${what} resolved to a revision that is ${kindOf(revision)}, not a string`);
  return { document, revision };
}

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

/** @throws {Finding} for an error that is not `unavailable`: how a call ends whose caller or backend has gone. */
export function expectUnavailable(error: unknown, what: string): void {
  expectThat(isFailure(error, 'unavailable'), `${what} rejected with ${describeThrown(error)}`);
}

export function isFailure(error: unknown, kind: RingStoreErrorKind): boolean {
  return types.isNativeError(error) && error.name === 'RingStoreError' && 'kind' in error && error.kind === kind;
}

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
