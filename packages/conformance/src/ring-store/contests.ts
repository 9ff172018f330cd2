import type { RingStore, StoredRing } from '@sealring/core';
import { expectThat } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import { moments } from './moments.ts';
import { labelled } from './sizes.ts';
import { documentText, isConflict, revisionOf, textOf } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

export const CONNECTIONS = 4;

/** Number of writers of the longest documents. More of them would only load the network. */
export const FEW_WRITERS = 4;

/** Writes concurrently, with the same expectation for all writers. Resolves to the ring that the only winner wrote. */
export async function contest(
  trial: RingStoreTrial,
  stores: readonly RingStore[],
  expected: string | undefined,
  title: string,
  documentOf: (writer: number) => string = (writer) => `${title} of ${writer}`,
  writers: number = trial.writers,
): Promise<StoredRing> {
  const documents = Array.from({ length: writers }, (_, writer) => documentOf(writer));
  const outcomes = await Promise.all(
    documents.map((document, writer) => {
      const store = stores[writer % stores.length] as RingStore;
      return trial.promised(() => trial.writeSomehow(store, document, expected), `a write in ${title}`);
    }),
  );
  const won: StoredRing[] = [];
  const failures = new Map<string, number>();
  for (const [writer, outcome] of outcomes.entries()) {
    if ('value' in outcome) {
      won.push({ document: documents[writer] ?? '', revision: revisionOf(outcome.value, `a write in ${title}`) });
    } else if (!isConflict(outcome.error)) {
      failures.set(describeThrown(outcome.error), (failures.get(describeThrown(outcome.error)) ?? 0) + 1);
    }
  }
  const [winner] = won;
  const those = [...failures].map(([name, count]) => `, ${count} got ${name}`).join('');
  const finding = `${title}: of ${writers} concurrent writers, ${won.length} won${those}`;
  expectThat(winner !== undefined && won.length === 1 && failures.size === 0, finding);
  return winner;
}

const LEAST_CONTESTS = 5;
/**
 * Time limit for the optional contests, in milliseconds. It is longer than for other checks, since a store may let two
 * writers win only rarely.
 */
const CONTESTS_MS = 1_000;
/** Number of contests to create a ring. In every other contest, all writers have equal documents. */
const LEAST_CREATED = 2;
const MOST_CREATED = 5;
const MOST_LONG = 3;
/** Number of times that a ring is removed and created again during one write. */
const MOST_REPLACED = 20;
const ADDERS = 2 * CONNECTIONS;
const LEAST_ADDITIONS = 2 * ADDERS;
const MOST_ADDITIONS = 5 * ADDERS;
/** Number of winning writes while others also try to write. */
const LEAST_CHASES = 15;
const MOST_CHASES = 60;

export const CONTEST_CHECKS: RingStoreChecks = {
  'RING-CREATE-ONE-WINNER': async (trial) => {
    for (const round of trial.contests(LEAST_CREATED, MOST_CREATED)) {
      const stores = await trial.openMany(CONNECTIONS);
      const title = `creation ${round}`;
      const documentOf = (writer: number): string => `${title} of ${round % 2 === 0 ? writer : 'all'}`;
      const { document, revision } = await contest(trial, stores, undefined, title, documentOf);
      for (const store of stores) await trial.expectStored(store, document, revision, 'a read after the creation');
      await trial.expectConflict(stores[0], undefined, 'a late creation');
    }
    if (trial.target.remove === undefined) return;
    // The remains of a removed ring must not let two creations win.
    const name = trial.freshName();
    const stores = await trial.openMany(CONNECTIONS, name);
    await trial.write(stores[0], 'one', undefined);
    for (const round of trial.contests(LEAST_CREATED, MOST_CREATED)) {
      await trial.remove(name);
      const { document, revision } = await contest(trial, stores, undefined, `creation ${round} after a removal`);
      for (const store of stores) await trial.expectStored(store, document, revision, 'a read after the creation');
    }
  },
  'RING-CAS-ONE-WINNER': async (trial) => {
    const stores = await trial.openMany(CONNECTIONS);
    let revision = await trial.write(stores[0], 'start', undefined);
    const revisions = new Set([revision]);
    for (const round of trial.contests(LEAST_CONTESTS, trial.rounds, CONTESTS_MS)) {
      const winner = await contest(trial, stores, revision, `contest ${round}`);
      // The result of each contest is read on the next connection.
      const reader = stores[round % CONNECTIONS] as RingStore;
      await trial.expectStored(reader, winner.document, winner.revision, `a read after contest ${round}`);
      expectThat(!revisions.has(winner.revision), `contest ${round}: the revision ${textOf(winner.revision)} recurred`);
      revisions.add(winner.revision);
      ({ revision } = winner);
    }
  },
  'RING-CAS-LARGEST': async (trial) => {
    const stores = await trial.openMany(FEW_WRITERS);
    const most = trial.supports.maxDocumentBytes;
    let revision: string | undefined;
    for (let round = 0; round <= Math.min(trial.rounds, MOST_LONG); round++) {
      const documentOf = (writer: number): string => `${round} of ${writer}${labelled(most - 7)}${writer}`;
      const title = `contest ${round} of ${most} bytes`;
      const winner = await contest(trial, stores, revision, title, documentOf, FEW_WRITERS);
      for (const store of stores) {
        await trial.expectStored(store, winner.document, winner.revision, `a read after ${title}`);
      }
      ({ revision } = winner);
    }
  },
  'RING-WRITE-REVISION': async (trial) => {
    const stores = await trial.openMany(CONNECTIONS);
    await trial.write(stores[0], 'start', undefined);
    const documents = new Map<string, string>();
    const note = (document: string, revision: string): void => {
      const other = documents.get(revision) ?? document;
      const pair = `${documentText(other)} and ${documentText(document)}`;
      expectThat(other === document, `${pair} have the revision ${textOf(revision)}`);
      documents.set(revision, document);
    };
    const wins = trial.contests(LEAST_CHASES, MOST_CHASES);
    const expectWin = trial.patience('no write won against concurrent ones');
    const chasers = Array.from({ length: ADDERS }, (_, chaser) => async () => {
      const store = stores[chaser % CONNECTIONS] as RingStore;
      const found = await trial.read(store);
      expectThat(found !== undefined, 'a read during concurrent writes reports the ring as absent');
      note(found.document, found.revision);
      const document = `write ${documents.size} of ${chaser}`;
      const revision = await trial.attempt(store, document, found.revision, 'a concurrent write');
      expectWin(revision !== undefined);
      if (revision === undefined) return false;
      note(document, revision);
      return wins.next().done;
    });
    await trial.repeat(chasers);
    if (trial.target.remove !== undefined) await replaceAtOnce(trial);
  },
  'RING-NO-LOST-UPDATE': async (trial) => {
    const stores = await trial.openMany(CONNECTIONS);
    await trial.write(stores[0], '0', undefined);
    const expectWin = trial.patience('no addition won');
    const additions = trial.inTime([...Array(MOST_ADDITIONS).keys()], LEAST_ADDITIONS);
    let expected = 0;
    const adders = Array.from({ length: ADDERS }, (_, i) => async () => {
      const store = stores[i % CONNECTIONS] as RingStore;
      const found = await trial.read(store);
      expectThat(found !== undefined, 'a read during concurrent writes reports the ring as absent');
      const sum = String(Number(found.document) + 1);
      const hasWon = (await trial.attempt(store, sum, found.revision, 'an addition')) !== undefined;
      if (hasWon) expected++;
      expectWin(hasWon);
      return hasWon && additions.next().done;
    });
    await trial.repeat(adders);
    for (const store of stores) {
      const found = await trial.read(store);
      expectThat(
        found?.document === String(expected),
        `${expected} additions resolved, but the sum is ${textOf(found?.document ?? 'absent')}`,
      );
    }
  },
};

/**
 * While one store creates a ring, another store repeatedly removes and creates the same ring, which needs no revision.
 */
async function replaceAtOnce(trial: RingStoreTrial): Promise<void> {
  const measured = await moments(async () => {
    const store = await trial.open();
    return async () => trial.write(store, 'timed', undefined);
  });
  const again = trial.freshName();
  const counted = await trial.open(again);
  const first = await trial.write(counted, 'first', undefined);
  await trial.remove(again);
  // If revisions start over when a ring is created again, equal revisions are allowed, and there is nothing to check.
  if ((await trial.write(counted, 'second', undefined)) === first) return;
  const coarse = measured.filter((_, i) => i % 2 === 0);
  for (const moment of trial.inTime([...coarse, ...measured, ...measured], coarse.length)) {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const began = performance.now();
    const what = 'a write during which its ring is removed and created again';
    const over = new AbortController();
    const writing = trial.promised(() => store.write('first', { expected: undefined }), what);
    const ended = writing.finally(() => over.abort());
    // This promise is awaited below. The handler prevents an unhandled rejection until then.
    ended.catch(() => undefined);
    await moment(began);
    const revisions: string[] = [];
    for (let i = 0; i === 0 || (i < MOST_REPLACED && !over.signal.aborted); i++) {
      // The ring may not exist yet.
      await trial.remove(name).catch(() => undefined);
      const document = `other ${i}`;
      const outcome = await trial.promised(() => other.write(document, { expected: undefined }), 'another write');
      if ('value' in outcome) revisions.push(revisionOf(outcome.value, 'another write'));
    }
    const outcome = await ended;
    if ('value' in outcome) {
      const revision = revisionOf(outcome.value, what);
      const isOthers = revisions.includes(revision);
      expectThat(!isOthers, `${what} resolved to the revision of another write, ${textOf(revision)}`);
      // The writer may give up, with a conflict or because it does not know the result of its write.
    } else if (!isConflict(outcome.error)) trial.expectUnavailable(outcome.error, what);
  }
}
