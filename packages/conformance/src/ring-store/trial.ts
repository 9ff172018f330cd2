import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import type { RingStore, RingStoreCallOptions, RingStoreErrorKind, StoredRing } from '@sealring/core';
import { noteBuiltIns } from '../observe.ts';
import type { Settings } from '../options.ts';
import { type Checks, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeThrown, difference, kindOf } from '../thrown.ts';
import { CLOSE_MS, type Outcome, REPEATS_MS, Trial, within } from '../trial.ts';
import type { Stores } from './moments.ts';
import { documentText, isConflict, isFailure, revisionOf, storedRing, textOf } from './stored-ring.ts';
import { MAX_DOCUMENT_BYTES, type RingStoreOptions, type RingStoreSupport, type RingStoreTarget } from './target.ts';

export type RingStoreChecks = Checks<RingStoreTrial>;

/**
 * Maximum wait for push and recovery, in milliseconds; less if the time limit of a requirement is below two minutes.
 */
const PATIENCE_MS = 30_000;
const CALL_MS = 60_000;
const LOOK_AGAIN_MS = 20;
const CLEAN_UP_MS = 10_000;
let names = 0;

/** The tools of a ring store check: new names, stores and findings. */
export class RingStoreTrial extends Trial {
  override readonly callMs: number = CALL_MS;
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
    noteBuiltIns(target);
    const { uniqueRevisions = false, maxDocumentBytes = MAX_DOCUMENT_BYTES } = target.supports ?? {};
    this.supports = { ...target.supports, uniqueRevisions, maxDocumentBytes };
    this.settings = settings;
    this.rounds = rounds ?? 200;
    this.writers = writers;
    this.patienceMs = Math.min(PATIENCE_MS, settings.timeoutMs / 4);
    this.#isCounted = rounds !== undefined;
  }

  /** The numbers of the contests, counted from 1: as many as time and limits allow. */
  contests(least: number, most: number, budgetMs: number = REPEATS_MS): Generator<number> {
    const numbers = Array.from({ length: Math.min(most, this.rounds) }, (_, i) => i + 1);
    return this.inTime(numbers, least, this.#isCounted ? Number.POSITIVE_INFINITY : budgetMs);
  }

  /** A name that no other requirement, process or run uses. */
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

  /** Whether the store’s own `close` completes; true if it has none. Can be called more than once. */
  async closesAgain(store: RingStore): Promise<boolean> {
    this.closed.add(store);
    if (store.close === undefined) return true;
    const closed = await within(
      CLOSE_MS,
      this.promised(() => store.close?.(), 'close'),
      undefined,
    );
    if (closed !== undefined && 'error' in closed) throw new Finding(`close failed: ${describeThrown(closed.error)}`);
    return closed !== undefined;
  }

  /** Creates two or more stores. */
  async openMany(count = 3, name: string = this.freshName()): Promise<Stores> {
    const stores = await Promise.all(Array.from({ length: count }, () => this.open(name)));
    return stores as unknown as Stores;
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

  /** Plants a document, even over a stored one. If the target can only insert, removes the stored one first. */
  async plantOver(name: string, document: string): Promise<void> {
    this.expectAble('plant');
    this.#names.add(name);
    const planted = await this.settle(() => this.target.plant?.(name, document), 'plant');
    if ('value' in planted) return;
    await this.remove(name);
    await this.plant(name, document);
  }

  /** Whether each planted document gets its own revision, as each written one does. */
  async plantsRevisions(): Promise<boolean> {
    const name = this.freshName();
    const store = await this.open(name);
    const revisions = new Set<string | undefined>();
    for (const document of ['one', 'another']) {
      await this.plantOver(name, document);
      revisions.add((await this.read(store))?.revision);
    }
    return revisions.size === 2;
  }

  /** Breaks the connection until it is restored or the check ends. @throws {NotApplicable} if the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.target);
  }

  /** @throws {NotApplicable} if the target does not have this function. */
  expectAble(name: 'plant' | 'remove'): void {
    if (this.target[name] === undefined) throw new NotApplicable(`the target has no ${name}`);
  }

  /** Writes with or without a signal and a callback for the date. */
  writeSomehow(store: RingStore, document: string, expected: string | undefined): unknown {
    return store.write(document, { ...this.someOptions(), expected });
  }

  async read(store: RingStore, what = 'a read', options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    const given = options ?? this.someOptions();
    const outcome = await this.promised(() => (given === undefined ? store.read() : store.read(given)), what);
    if ('error' in outcome) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return storedRing(outcome.value, what);
  }

  async write(
    store: RingStore,
    document: string,
    expected: string | undefined,
    what = 'a write with the right expectation',
    options: RingStoreCallOptions | undefined = this.someOptions(),
  ): Promise<string> {
    const given = { ...options, expected };
    if (options !== undefined && Object.isFrozen(options)) Object.freeze(given);
    const outcome = await this.promised(() => store.write(document, given), what);
    if ('error' in outcome) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return revisionOf(outcome.value, what);
  }

  /** Makes a concurrent write. @returns the revision; `undefined` if it lost. @throws {Finding} for another error. */
  async attempt(
    store: RingStore,
    document: string,
    expected: string | undefined,
    what: string,
  ): Promise<string | undefined> {
    const outcome = await this.promised(() => this.writeSomehow(store, document, expected), what);
    if ('value' in outcome) return revisionOf(outcome.value, what);
    if (!isConflict(outcome.error)) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
    return undefined;
  }

  /** Writes documents in sequence, and expects every reader to read each of them whole. */
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

  /** Expects a write to lose with RingConflictError. */
  async expectConflict(store: RingStore, expected: string | undefined, what: string): Promise<void> {
    const outcome = await this.promised(() => this.writeSomehow(store, 'never', expected), what);
    if ('value' in outcome) throw new Finding(`${what} succeeded: it resolved to ${kindOf(outcome.value)}`);
    expectThat(
      isConflict(outcome.error),
      `${what} rejected with ${describeThrown(outcome.error)}, not RingConflictError`,
    );
  }

  /** Expects a write to lose with any error. */
  async expectLost(store: RingStore, expected: string | undefined, what: string, document = 'never'): Promise<void> {
    const outcome = await this.promised(() => this.writeSomehow(store, document, expected), what);
    if ('value' in outcome) throw new Finding(`${what} succeeded: it resolved to ${kindOf(outcome.value)}`);
  }

  async expectFailure(call: () => unknown, kind: RingStoreErrorKind, what: string): Promise<void> {
    this.expectFailed(await this.promised(call, what), kind, what);
  }

  async expectAbsent(store: RingStore, what: string): Promise<void> {
    const found = await this.read(store, what);
    expectThat(found === undefined, `${what} found ${documentText(found?.document ?? '')} in an absent ring`);
  }

  async expectDocument(store: RingStore, document: string, what: string): Promise<StoredRing> {
    const found = await this.read(store, what);
    expectThat(found !== undefined, `${what} reports the ring as absent, not ${documentText(document)}`);
    const isSame = found.document === document;
    expectThat(isSame, `${what} returned a different document: ${isSame ? '' : difference(found.document, document)}`);
    return found;
  }

  async expectStored(
    store: RingStore,
    document: string,
    revision: string | undefined,
    what: string = `a read of ${documentText(document)}`,
  ): Promise<void> {
    const found = await this.expectDocument(store, document, what);
    const revisions = `the revision ${textOf(found.revision)}, but the write returned ${textOf(revision ?? '')}`;
    expectThat(found.revision === revision, `${what} returned ${revisions}`);
  }

  /** Expects a read to find this ring, or no ring if `ring` is undefined. */
  async expectFound(store: RingStore, ring: StoredRing | undefined, what: string): Promise<void> {
    if (ring === undefined) await this.expectAbsent(store, what);
    else await this.expectStored(store, ring.document, ring.revision, what);
  }

  expectFailed(outcome: Outcome, kind: RingStoreErrorKind, what: string): void {
    if ('value' in outcome) throw new Finding(`${what} resolved to ${kindOf(outcome.value)}, not ${kind}`);
    const isRight = isFailure(outcome.error, kind);
    expectThat(isRight, `${what} rejected with ${describeThrown(outcome.error)}, not RingStoreError ${kind}`);
  }

  /** @throws {Finding} for an error other than `unavailable`, after an abort or an outage. */
  expectUnavailable(error: unknown, what: string): void {
    expectThat(isFailure(error, 'unavailable'), `${what} rejected with ${describeThrown(error)}`);
  }

  async until(holds: () => boolean | Promise<boolean>, finding: string): Promise<void> {
    const deadline = performance.now() + this.patienceMs;
    while (!(await holds())) {
      expectThat(performance.now() < deadline, `${finding} within ${this.patienceMs / 1_000} s`);
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Repeats several tasks concurrently until one of them resolves to true or fails. */
  async repeat(works: readonly ((isOver: () => boolean) => Promise<unknown>)[]): Promise<void> {
    const over = new AbortController();
    const isOver = (): boolean => over.signal.aborted;
    const go = async (work: (isOver: () => boolean) => Promise<unknown>): Promise<void> => {
      try {
        while (!isOver() && (await work(isOver)) !== true) await otherWork();
      } finally {
        over.abort();
      }
    };
    await this.all(works.map(go));
  }

  /** Limits retries: call the returned function after every attempt; it throws if none has succeeded for too long. */
  patience(finding: string): (hasSucceeded: boolean) => void {
    let since = performance.now();
    return (hasSucceeded) => {
      if (hasSucceeded) since = performance.now();
      expectThat(performance.now() - since < this.patienceMs, `${finding} within ${this.patienceMs / 1_000} s`);
    };
  }

  override async cleanUp(): Promise<void> {
    if (this.target.remove === undefined) return;
    // Nothing was ever stored under many of these names, so a failed removal is not a finding.
    const removed = Promise.allSettled([...this.#names].map(async (name) => this.target.remove?.(name)));
    this.#names.clear();
    await Promise.race([removed, pause(CLEAN_UP_MS, undefined, { ref: false })]);
  }
}
