import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import type { Settings } from '../options.ts';
import { expectThat } from '../requirement.ts';
import { CONNECTIONS, contest, FEW_WRITERS } from './contests.ts';
import { documentText, expectOneOf, storedRing } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

const READERS = 3;
/**
 * Maximum number of writers in a contest with readers. Here, the number of versions matters more than the number of
 * losers.
 */
const MOST_WRITERS = 8;
const LEAST_CONTESTS = 8;
const MOST_CONTESTS = 20;
const LEAST_LONG = 3;
const MOST_LONG = 4;
const LEAST_CREATED = 2;
const MOST_CREATED = 5;
const WRITES = 20;
/** Minimum number of writes over two connections; short and long documents alternate. */
const LEAST_OVERLAPPED = 6;
const PARALLEL_READS = 50;
/** Number of concurrent reads on each connection. */
const UNDER_WAY = 8;
/** Length of a document that is transferred in parts, in bytes. Most documents are shorter, to spare the service. */
const LONGEST_DOCUMENT = 65_536;
/** Number of reads by each reader after each contest: enough to show a version that appears and then disappears. */
const LOOKS = 3;
/** Time in which a store that reads ahead would do so, in milliseconds. */
const READING_AHEAD_MS = 50;
/** How long to wait until late writes have arrived, in milliseconds. */
const AFTERMATH_MS = 500;

/** The result of one read, and the number of contests won before it started. */
interface Observation {
  readonly reader: number;
  readonly wonBefore: number;
  readonly found: StoredRing | undefined;
}

interface Observed {
  /** The winning documents in order, beginning with the initial one. */
  readonly winners: readonly StoredRing[];
  readonly written: ReadonlySet<string>;
  readonly observations: readonly Observation[];
}

/** The progress of a writer: its documents in the order of their writes, and how many writes have resolved. */
interface Progress {
  readonly begun: string[];
  resolved: number;
  /** Duration of the latest read, in milliseconds. */
  lookMs: number;
}

/** Waits for a random part of `ms`, so that the next call starts at a random moment of a read. */
async function anyPart({ random }: RingStoreTrial, ms: number): Promise<void> {
  const until = performance.now() + (ms * random.below(100)) / 100;
  while (performance.now() < until) await otherWork();
}

/** Writes alternately over two connections, and reads on every connection after each write. */
async function writeAndRead(
  trial: RingStoreTrial,
  stores: readonly RingStore[],
  documents: Iterable<string>,
  progress: Progress = { begun: [], resolved: 0, lookMs: 0 },
): Promise<true> {
  let revision: string | undefined;
  for (const document of documents) {
    await anyPart(trial, progress.lookMs);
    const at = progress.begun.push(document) % stores.length;
    const written = await trial.write(stores[at] as RingStore, document, revision);
    revision = written;
    progress.resolved++;
    await trial.all(
      stores.map((store, reader) => {
        const where = reader === at ? 'on its own connection' : 'on another connection';
        return trial.expectStored(store, document, written, `a read after write ${progress.resolved}, ${where},`);
      }),
    );
  }
  return true;
}

/** Expects a store that reads ahead not to return a document that it read before a write. */
async function expectFresh(trial: RingStoreTrial): Promise<void> {
  const name = trial.freshName();
  const [store, unused] = await trial.openPair(name);
  const first = await trial.write(store, 'one', undefined);
  const opened = await trial.open(name);
  await pause(READING_AHEAD_MS);
  const revision = await trial.write(store, 'two', first);
  for (const one of [unused, opened]) await trial.expectStored(one, 'two', revision, 'the first read of a store');
  await pause(READING_AHEAD_MS);
  const last = await trial.write(store, 'three', revision);
  for (const one of [unused, opened]) await trial.expectStored(one, 'three', last, 'the second read of a store');
}

/** Expects that the result of a read does not change. It is checked only after a later write. */
async function expectKept(trial: RingStoreTrial): Promise<void> {
  const [store, other] = await trial.openPair();
  const one = { document: 'one', revision: await trial.write(store, 'one', undefined) };
  const raw = await trial.answer(() => store.read(), 'a read');
  await trial.write(other, 'two', one.revision);
  await trial.read(store, 'another read');
  expectOneOf(storedRing(raw, 'a read'), [one], 'the result of a read, after a later write,');
}

export const READING_CHECKS: RingStoreChecks = {
  'RING-READ-AFTER-WRITE': async (trial) => {
    const documents = Array.from({ length: WRITES }, (_, i) => `write ${i}`);
    await writeAndRead(trial, await trial.openMany(3), documents);
    await expectFresh(trial);
  },
  'RING-READ-OVERLAPPED': async (trial) => {
    const stores = await trial.openMany(2);
    const documents = Array.from({ length: WRITES }, (_, i) =>
      i % 2 === 0 ? `write ${i}` : longDocument(trial, `write ${i}`),
    );
    const progress: Progress = { begun: [], resolved: 0, lookMs: 0 };
    const look = async (store: RingStore): Promise<void> => {
      const { resolved } = progress;
      const began = performance.now();
      const found = await trial.read(store, 'a concurrent read');
      progress.lookMs = performance.now() - began;
      const at = found === undefined ? 0 : progress.begun.indexOf(found.document) + 1;
      expectThat(at >= resolved, `a read after write ${resolved}, during other reads, returned an older document`);
    };
    const looks = stores.flatMap((store) => Array.from({ length: UNDER_WAY }, () => () => look(store)));
    const write = () => writeAndRead(trial, stores, trial.inTime(documents, LEAST_OVERLAPPED), progress);
    await trial.repeat([write, ...looks]);
  },
  'RING-READ-CREATED': async (trial) => {
    const what = 'a read during the creation of a ring';
    for (const round of trial.contests(LEAST_CREATED, MOST_CREATED)) {
      const name = trial.freshName();
      const writers = await trial.openMany(CONNECTIONS, name);
      const readers = await trial.openMany(2, name);
      const seen: (StoredRing | undefined)[] = [];
      const title = `creation ${round}`;
      const documentOf = (writer: number): string => longDocument(trial, `${title} of ${writer}`);
      let winner: StoredRing | undefined;
      await trial.repeat([
        async () => (winner = await contest(trial, writers, undefined, title, documentOf)) !== undefined,
        ...readers.map((store) => async () => void seen.push(await trial.read(store, what))),
      ]);
      for (const found of seen) {
        const isRight = found === undefined || found.document === winner?.document;
        expectThat(isRight, `${what} found ${documentText(found?.document ?? '')}`);
      }
    }
  },
  'RING-READ-WHOLE': async (trial) => {
    await expectKept(trial);
    for (const isLongest of [false, true]) {
      const { winners, written, observations } = await (isLongest ? observe(trial, true) : observeOnce(trial));
      const revisions = new Map(winners.map(({ document, revision }) => [document, revision]));
      for (const { found } of observations) {
        if (found === undefined) continue;
        const what = documentText(found.document);
        expectThat(written.has(found.document), `a concurrent read returned ${what}, which was never written`);
        const revision = revisions.get(found.document) ?? found.revision;
        const isOwn = revision === found.revision;
        expectThat(isOwn, `a concurrent read returned ${what} with a revision other than that of its write`);
      }
    }
  },
  'RING-READ-CURRENT': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (const { found, wonBefore } of observations) {
      expectThat(found !== undefined, 'a read during concurrent writes reports the ring as absent');
      const at = winners.findIndex(({ document }) => document === found.document);
      expectThat(
        at < 0 || at >= wonBefore,
        `a read that started after contest ${wonBefore} returned the document of contest ${at}`,
      );
    }
  },
  'RING-READ-MONOTONE': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (let reader = 0; reader < READERS; reader++) {
      let latest = -1;
      for (const { found } of observations.filter((one) => one.reader === reader)) {
        const at = winners.findIndex(({ document }) => document === found?.document);
        expectThat(at < 0 || at >= latest, `a reader got version ${at} after version ${latest}`);
        latest = Math.max(at, latest);
      }
    }
  },
  'RING-LOSER-NEVER-APPEARS': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (const { found } of observations) {
      if (found === undefined) continue;
      const won = winners.some(({ document }) => document === found.document);
      expectThat(won, `a read returned ${documentText(found.document)}, which did not win`);
    }
  },
  'RING-PARALLEL-READS': async (trial) => {
    const [store, other] = await trial.openPair();
    let revision: string | undefined;
    for (const document of ['one', longDocument(trial, 'two')]) {
      revision = await trial.write(store, document, revision);
      const written = revision;
      const what = `one of ${PARALLEL_READS} concurrent reads`;
      const readers = Array.from({ length: PARALLEL_READS }, (_, i) => (i % 2 === 0 ? store : other));
      await trial.all(readers.map((reader) => trial.expectStored(reader, document, written, what)));
    }
  },
};

/** The observations of each run on a target, which four requirements share. */
const observed = new WeakMap<Settings, Observed>();

async function observeOnce(trial: RingStoreTrial): Promise<Observed> {
  const known = observed.get(trial.settings) ?? (await observe(trial));
  observed.set(trial.settings, known);
  return known;
}

/** Runs contests between writers while readers read on separate connections, and reads once more at the end. */
async function observe(trial: RingStoreTrial, isLongest: boolean = false): Promise<Observed> {
  const name = trial.freshName();
  const writers = await trial.openMany(CONNECTIONS, name);
  // One reader is a writer: it must not show its own write before that has won.
  const readers = [...(await trial.openMany(READERS - 1, name)), writers[0]];
  const written = new Set<string>();
  const documentOf = (title: string, writer: number): string => {
    const most = trial.supports.maxDocumentBytes;
    const document = longDocument(trial, `${title} of ${writer}`, isLongest ? most : undefined);
    written.add(document);
    return document;
  };
  const start = documentOf('start', 0);
  const revision = await trial.write(writers[0], start, undefined);
  const winners: StoredRing[] = [{ document: start, revision }];
  const observations: Observation[] = [];
  const looks = readers.map(() => 0);
  let lookMs = 0;
  const look = async (store: RingStore, reader: number): Promise<void> => {
    const wonBefore = winners.length - 1;
    const began = performance.now();
    observations.push({ reader, wonBefore, found: await trial.read(store, 'a read during concurrent writes') });
    lookMs = performance.now() - began;
    if (wonBefore === winners.length - 1) looks[reader] = (looks[reader] ?? 0) + 1;
  };
  const write = async (isOver: () => boolean): Promise<true> => {
    const [least, most] = isLongest ? [LEAST_LONG, MOST_LONG] : [LEAST_CONTESTS, MOST_CONTESTS];
    for (const round of trial.contests(least, most)) {
      const title = `contest ${round}`;
      const { revision: expected } = winners.at(-1) as StoredRing;
      const count = isLongest ? FEW_WRITERS : Math.min(trial.writers, MOST_WRITERS);
      winners.push(await contest(trial, writers, expected, title, (writer) => documentOf(title, writer), count));
      // Each reader reads several times between two contests, even on a slow store.
      looks.fill(0);
      while (!isOver() && looks.some((many) => many < LOOKS)) await otherWork();
      await anyPart(trial, lookMs);
    }
    return true;
  };
  await trial.repeat([write, ...readers.map((store, reader) => () => look(store, reader))]);
  for (const waitMs of isLongest ? [0] : [0, AFTERMATH_MS]) {
    await pause(waitMs);
    for (const [reader, store] of readers.entries()) await look(store, reader);
  }
  return { winners, written, observations };
}

/** A document with a random length and one repeated character, so that a mixture of two documents is detected. */
function longDocument({ random, supports }: RingStoreTrial, title: string, length?: number): string {
  const most = Math.min(LONGEST_DOCUMENT, supports.maxDocumentBytes - 100);
  const character = String.fromCodePoint(0x61 + random.below(26));
  const any = Math.floor(most ** (0.5 + random.below(50) / 100));
  const count = length === undefined ? any : length - 100 - random.below(length / 4);
  return `${title}:${character.repeat(count)}.`;
}
