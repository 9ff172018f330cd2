import { setTimeout as pause } from 'node:timers/promises';
import { RingConflictError, type RingStore, type RingStoreErrorKind } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';

/** Most bytes of a document: law 4 of the contract of `RingStore`. */
const MAX_DOCUMENT_BYTES = 262_144;

/** One store under test, on connections of its own. */
export interface OpenedStore {
  readonly store: RingStore;
  close?(): Promise<void>;
}

/** How the suite gets at a backend. What is left out is not tried, and says so by a skipped test. */
export interface RingStoreTarget {
  /** Stores of one name share a document, each on connections of its own; those of different names share nothing. */
  create(name: string): Promise<OpenedStore>;
  /** Removes the document behind the stores' backs. */
  remove?(name: string): Promise<void>;
  /** Puts a document there without a store. */
  plant?(name: string, document: string): Promise<void>;
  /** Makes the backend unreachable; resolves to what mends it. */
  breakConnection?(): Promise<() => Promise<void>>;
  /** A document that comes back has another revision than before. Not so where the revision is a hash of it. */
  readonly uniqueRevisions?: boolean;
  /** Whether a store hears of what another one wrote. */
  readonly hasPush: boolean;
  /** Whether the backend puts its date on what it answers to a read. */
  readonly isDated: boolean;
}

const WRITERS = 20;
const CONNECTIONS = 4;
const ROUNDS = Number(process.env['SEALRING_ROUNDS'] ?? 200);

const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

/** The laws of `RingStore`, one test each. */
export function describeRingStore(title: string, target: RingStoreTarget): void {
  describe(`${title} ring store`, () => {
    const opened: OpenedStore[] = [];
    let names = 0;
    afterEach(async () => {
      for (const store of opened.splice(0)) await store.close?.();
    });

    const freshName = (): string => `laws-${process.pid}-${Date.now().toString(36)}-${++names}`;

    async function openStore(name = freshName()): Promise<RingStore> {
      const store = await target.create(name);
      opened.push(store);
      return store.store;
    }

    function openStores(count: number, name = freshName()): Promise<RingStore[]> {
      return Promise.all(Array.from({ length: count }, () => openStore(name)));
    }

    test('a ring that nobody founded is absent', async () => {
      expect(await (await openStore()).read()).toBeUndefined();
    });

    test('what was written is read, byte for byte, with its revision, on every connection', async () => {
      const stores = await openStores(2);
      let expected: string | undefined;
      for (const document of [
        '{"epoch":1}\n{}\n',
        '\ufeff{}\r\n\t\u0001é€😀',
        'x',
        "'; DROP TABLE ring; --",
        '$1 %s \\',
      ]) {
        const { revision } = await first(stores).write(document, { expected });
        for (const store of stores) expect(await store.read()).toEqual({ document, revision });
        expect(revision).not.toBe(expected);
        expected = revision;
      }
    });

    test('F8: of 20 who found the ring at once, one does', async () => {
      const stores = await openStores(CONNECTIONS);
      const winner = await race(stores, undefined, 'foundation');
      for (const store of stores) expect(await store.read()).toEqual(winner);
      await expect(first(stores).write('late', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    });

    test(`F32: of 20 who write at once, one does, and every connection reads it, ${ROUNDS} times`, {
      timeout: 600_000,
    }, async () => {
      const stores = await openStores(CONNECTIONS);
      let current = await first(stores).write('start', { expected: undefined });
      const revisions = new Set([current.revision]);
      for (let round = 0; round < ROUNDS; round++) {
        const winner = await race(stores, current.revision, `round ${round}`);
        // Another connection than the winner's, by turns.
        expect(await stores[round % CONNECTIONS]?.read()).toEqual(winner);
        revisions.add(winner.revision);
        current = winner;
      }
      expect(revisions.size).toBe(ROUNDS + 1);
    });

    test('a conflict changes nothing', async () => {
      const [store, other] = await pair();
      await expect(store.write('never', { expected: 'AAAA' })).rejects.toBeInstanceOf(RingConflictError);
      expect(await store.read()).toBeUndefined();
      const one = await store.write('one', { expected: undefined });
      const two = await other.write('two', { expected: one.revision });
      for (const expected of [undefined, one.revision, '', 'absent', 'AAAA', `${two.revision} `, `=${two.revision}`]) {
        await expect(store.write('never', { expected })).rejects.toBeInstanceOf(RingConflictError);
        expect(await store.read()).toEqual({ document: 'two', revision: two.revision });
      }
    });

    test('F23: a document of 262 144 bytes is taken, one more byte is too large and changes nothing', async () => {
      const store = await openStore();
      const largest = 'é'.repeat(MAX_DOCUMENT_BYTES / 2);
      await expect(store.write(`${largest}x`, { expected: undefined })).rejects.toMatchObject(failed('too-large'));
      expect(await store.read()).toBeUndefined();
      const { revision } = await store.write(largest, { expected: undefined });
      expect((await store.read())?.document).toBe(largest);
      await expect(store.write(`${largest}x`, { expected: revision })).rejects.toMatchObject(failed('too-large'));
      expect((await store.read())?.document).toBe(largest);
    });

    test.skipIf(target.plant === undefined)(
      'F9, F23: a longer one that is there is too large, not absent',
      async () => {
        const name = freshName();
        await target.plant?.(name, `${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}x`);
        const store = await openStore(name);
        await expect(store.read()).rejects.toMatchObject(failed('too-large'));
        await expect(store.write('x', { expected: undefined })).rejects.toBeInstanceOf(Error);
        await expect(store.read()).rejects.toMatchObject(failed('too-large'));
      },
    );

    test.skipIf(target.plant === undefined)('F9: an empty document is corrupt, not absent', async () => {
      const name = freshName();
      await target.plant?.(name, '');
      await expect((await openStore(name)).read()).rejects.toMatchObject(failed('corrupt'));
    });

    test('F25: rings of different names share nothing', async () => {
      const [one, other] = [await openStore('laws.a'), await openStore('laws.b')];
      const held = (await one.read())?.revision;
      const heldByOther = await other.read();
      await one.write('of one', { expected: held });
      expect(await other.read()).toEqual(heldByOther);
    });

    test.skipIf(target.remove === undefined)(
      'a revision never comes back, not even with its document: no update is lost across a deletion',
      async () => {
        const name = freshName();
        const [store, other] = await pair(name);
        const seen = await store.write('same', { expected: undefined });
        await target.remove?.(name);
        expect(await store.read()).toBeUndefined();
        await expect(store.write('never', { expected: seen.revision })).rejects.toBeInstanceOf(RingConflictError);
        const again = await other.write('same', { expected: undefined });
        expect(again.revision).not.toBe(seen.revision);
        await expect(store.write('never', { expected: seen.revision })).rejects.toBeInstanceOf(RingConflictError);
        expect(await store.read()).toEqual({ document: 'same', revision: again.revision });
      },
    );

    test.skipIf(target.uniqueRevisions !== true)('a document that comes back has another revision', async () => {
      const [store, other] = await pair();
      const revisions: string[] = [];
      for (const document of ['a', 'b', 'a', 'b', 'a']) {
        revisions.push((await store.write(document, { expected: revisions.at(-1) })).revision);
      }
      expect(new Set(revisions).size).toBe(5);
      for (const expected of revisions.slice(0, -1)) {
        await expect(other.write('c', { expected })).rejects.toBeInstanceOf(RingConflictError);
      }
    });

    test('F13: the date of an answer is told where there is one, of an absent ring, too', async () => {
      const store = await openStore();
      const dates: Date[] = [];
      const onServiceDate = (date: Date) => void dates.push(date);
      await store.read({ onServiceDate });
      const whenAbsent = dates.length;
      const { revision } = await store.write('a', { expected: undefined, onServiceDate });
      await store.write('b', { expected: revision, onServiceDate });
      dates.splice(whenAbsent);
      await store.read({ onServiceDate });
      expect([whenAbsent, dates.length]).toEqual(target.isDated ? [1, 2] : [0, 0]);
      // The backend runs on this machine: its clock is ours.
      for (const date of dates) expect(Math.abs(Date.now() - date.getTime())).toBeLessThan(60_000);
    });

    test('an aborted call is unavailable and writes nothing', async () => {
      const store = await openStore();
      const signal = AbortSignal.abort();
      await expect(store.read({ signal })).rejects.toMatchObject(failed('unavailable'));
      await expect(store.write('x', { expected: undefined, signal })).rejects.toMatchObject(failed('unavailable'));
      expect(await store.read({ signal: new AbortController().signal })).toBeUndefined();
    });

    test('a call that is aborted on its way ends, and leaves the store in order', async () => {
      const store = await openStore();
      for (let i = 0; i < 20; i++) {
        const controller = new AbortController();
        const call = store.read({ signal: controller.signal });
        if (i % 2 === 0) await pause(0);
        controller.abort();
        // It may have been quicker; it never says that the ring is another than it is.
        await expect(call.catch((error: unknown) => error)).resolves.toSatisfy(isUndefinedOrUnavailable);
      }
      const { revision } = await store.write('x', { expected: undefined });
      expect(await store.read()).toEqual({ document: 'x', revision });
    });

    test.skipIf(target.breakConnection === undefined)('F9: unreachable is unavailable, never absent', async () => {
      const store = await openStore();
      const { revision } = await store.write('x', { expected: undefined });
      const unopened = await openStore();
      const mend = await target.breakConnection?.();
      await expect(store.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(unopened.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(store.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
      await expect(unopened.write('y', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
      await mend?.();
      await until(async () => (await store.read().catch(() => undefined)) !== undefined);
      // A write that ended as unavailable may have been done all the same; nothing else may have happened.
      const found = await store.read();
      expect([`x ${revision}`, 'y anew']).toContain(
        found?.document === 'y' && found.revision !== revision ? 'y anew' : `${found?.document} ${found?.revision}`,
      );
    });

    test.skipIf(!target.hasPush)('a watcher hears of what others write, until it unsubscribes', async () => {
      const [store, other] = await pair();
      let heard = 0;
      let alsoHeard = 0;
      const unwatch = store.watch?.(() => heard++);
      const unwatchOther = store.watch?.(() => alsoHeard++);
      // The subscription takes a moment, and tells of itself where it does.
      await pause(300);
      [heard, alsoHeard] = [0, 0];
      const { revision } = await other.write('x', { expected: undefined });
      await until(() => heard > 0 && alsoHeard > 0);
      expect([heard > 0, alsoHeard > 0]).toEqual([true, true]);
      unwatch?.();
      unwatch?.();
      await pause(100);
      [heard, alsoHeard] = [0, 0];
      await other.write('y', { expected: revision });
      await until(() => alsoHeard > 0);
      expect([heard, alsoHeard > 0]).toEqual([0, true]);
      unwatchOther?.();
      expect(() => Reflect.apply(Object(store).watch, store, ['x'])).toThrow(TypeError);
    });

    test.each([
      ['no document', [undefined, { expected: undefined }]],
      ['bytes', [Buffer.from('x'), { expected: undefined }]],
      ['an empty document', ['', { expected: undefined }]],
      ['a lone surrogate', ['\ud800', { expected: undefined }]],
      ['no options', ['x']],
      ['an expectation left out', ['x', {}]],
      ['a null expectation', ['x', { expected: null }]],
      ['an unknown option', ['x', { expected: undefined, expect: 'y' }]],
    ])('F17: a write with %s is a TypeError', async (_, given) => {
      const store = await openStore();
      await expect(Reflect.apply(Reflect.get(store, 'write'), store, given)).rejects.toBeInstanceOf(TypeError);
      expect(await store.read()).toBeUndefined();
    });

    test.each([[{ timeout: 5 }], [null], ['x'], [[]]])(
      'F17: a read with the options %o is a TypeError',
      async (options) => {
        const store = await openStore();
        await expect(Reflect.apply(Reflect.get(store, 'read'), store, [options])).rejects.toBeInstanceOf(TypeError);
      },
    );

    test('the store cannot be changed from outside', async () => {
      expect(Object.isFrozen(await openStore())).toBe(true);
    });

    async function pair(name = freshName()): Promise<[RingStore, RingStore]> {
      return [await openStore(name), await openStore(name)];
    }
  });
}

/** Everybody writes at once, with the same expectation: what the one winner wrote. */
async function race(
  stores: readonly RingStore[],
  expected: string | undefined,
  title: string,
): Promise<{ document: string; revision: string }> {
  const documents = Array.from({ length: WRITERS }, (_, writer) => `${title} of ${writer}`);
  const results = await Promise.allSettled(
    documents.map((document, writer) =>
      (stores[writer % stores.length] ?? first(stores)).write(document, { expected }),
    ),
  );
  const won = results.flatMap((result, writer) =>
    result.status === 'fulfilled' ? [{ document: documents[writer] ?? '', revision: result.value.revision }] : [],
  );
  const losses = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
  expect(losses.filter((loss) => !(loss instanceof RingConflictError))).toEqual([]);
  expect(won).toHaveLength(1);
  return won[0] ?? { document: '', revision: '' };
}

function first(stores: readonly RingStore[]): RingStore {
  const [store] = stores;
  if (store === undefined) throw new Error('no store');
  return store;
}

function isUndefinedOrUnavailable(outcome: unknown): boolean {
  return outcome === undefined || (outcome instanceof Error && 'kind' in outcome && outcome.kind === 'unavailable');
}

/** Waits for a condition, 10 s at most. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 10_000 && !(await condition()); waited += 20) await pause(20);
}
