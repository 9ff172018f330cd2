import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import type { Settings } from '../options.ts';
import { expectThat } from '../requirement.ts';
import { CONNECTIONS, contest, FEW_WRITERS } from './contests.ts';
import { documentText, type RingStoreChecks, type RingStoreTrial } from './trial.ts';

const READERS = 3;
/** Writers of a contest that is read: versions matter here, and how many lose matters less. */
const MOST_WRITERS = 8;
const LEAST_CONTESTS = 8;
const MOST_CONTESTS = 20;
const LEAST_LONG = 3;
const MOST_LONG = 4;
const LEAST_CREATED = 2;
const MOST_CREATED = 5;
const WRITES = 20;
/** Of two connections, short and long documents by turns. */
const LEAST_OVERLAPPED = 6;
const PARALLEL_READS = 50;
/** Reads of each connection that are under way all the time. */
const UNDER_WAY = 8;
/** So long that it is read and written in parts; most are much shorter, and a service is not busy with them. */
const LONGEST_DOCUMENT = 65_536;
/** Reads of each reader after each contest: fewer cannot show a version that comes and goes. */
const LOOKS = 3;
/** What comes late has come after it, milliseconds. */
const AFTERMATH_MS = 500;

/** What one read found, and how many contests had been won when it started. */
interface Observation {
  readonly reader: number;
  readonly wonBefore: number;
  readonly found: StoredRing | undefined;
}

interface Observed {
  /** Who won, in order; first what was there at the start. */
  readonly winners: readonly StoredRing[];
  readonly written: ReadonlySet<string>;
  readonly observations: readonly Observation[];
}

/** Documents in the order in which they were written, and how many of those writes have resolved. */
interface Progress {
  readonly begun: string[];
  resolved: number;
  /** How long a read takes. */
  lookMs: number;
}

/** Waits for a part of some time: what follows starts at any moment of a read, not always at its beginning. */
async function anyPart({ random }: RingStoreTrial, ms: number): Promise<void> {
  const until = performance.now() + (ms * random.below(100)) / 100;
  while (performance.now() < until) await otherWork();
}

/** Writes by turns, and reads on every connection after each. */
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

export const READING_CHECKS: RingStoreChecks = {
  'RING-READ-AFTER-WRITE': async (trial) => {
    const documents = Array.from({ length: WRITES }, (_, i) => `write ${i}`);
    await writeAndRead(trial, await trial.openMany(3), documents);
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
      const found = await trial.read(store, 'a read among reads');
      progress.lookMs = performance.now() - began;
      const at = found === undefined ? 0 : progress.begun.indexOf(found.document) + 1;
      expectThat(at >= resolved, `a read that started after write ${resolved}, among reads, found what was before it`);
    };
    const looks = stores.flatMap((store) => Array.from({ length: UNDER_WAY }, () => () => look(store)));
    const write = () => writeAndRead(trial, stores, trial.inTime(documents, LEAST_OVERLAPPED), progress);
    await trial.repeat([write, ...looks]);
  },
  'RING-READ-CREATED': async (trial) => {
    const what = 'a read while others create a ring';
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
    for (const isLongest of [false, true]) {
      const { winners, written, observations } = await (isLongest ? observe(trial, true) : observeOnce(trial));
      const revisions = new Map(winners.map(({ document, revision }) => [document, revision]));
      for (const { found } of observations) {
        if (found === undefined) continue;
        const what = documentText(found.document);
        expectThat(written.has(found.document), `a read among writers found ${what}, which was never written`);
        const revision = revisions.get(found.document) ?? found.revision;
        const isOwn = revision === found.revision;
        expectThat(isOwn, `a read among writers found ${what} with a revision other than that of its write`);
      }
    }
  },
  'RING-READ-CURRENT': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (const { found, wonBefore } of observations) {
      expectThat(found !== undefined, 'a read among writers says that the ring is absent');
      const at = winners.findIndex(({ document }) => document === found.document);
      expectThat(
        at < 0 || at >= wonBefore,
        `a read that started after contest ${wonBefore} was won found what was there after contest ${at}`,
      );
    }
  },
  'RING-READ-MONOTONE': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (let reader = 0; reader < READERS; reader++) {
      let latest = -1;
      for (const { found } of observations.filter((one) => one.reader === reader)) {
        const at = winners.findIndex(({ document }) => document === found?.document);
        expectThat(at < 0 || at >= latest, `a reader found version ${at} after version ${latest}`);
        latest = Math.max(at, latest);
      }
    }
  },
  'RING-LOSER-NEVER-APPEARS': async (trial) => {
    const { winners, observations } = await observeOnce(trial);
    for (const { found } of observations) {
      if (found === undefined) continue;
      const won = winners.some(({ document }) => document === found.document);
      expectThat(won, `a read found ${documentText(found.document)}, which did not win`);
    }
  },
  'RING-PARALLEL-READS': async (trial) => {
    const [store, other] = await trial.openPair();
    let revision: string | undefined;
    for (const document of ['one', longDocument(trial, 'two')]) {
      revision = await trial.write(store, document, revision);
      const written = revision;
      const what = `one of ${PARALLEL_READS} reads at once`;
      const readers = Array.from({ length: PARALLEL_READS }, (_, i) => (i % 2 === 0 ? store : other));
      await trial.all(readers.map((reader) => trial.expectStored(reader, document, written, what)));
    }
  },
};

/** What was observed of a target in a run: four requirements are about the same. */
const observed = new WeakMap<Settings, Observed>();

async function observeOnce(trial: RingStoreTrial): Promise<Observed> {
  const known = observed.get(trial.settings) ?? (await observe(trial));
  observed.set(trial.settings, known);
  return known;
}

/** Contests of writers under the eyes of readers on connections of their own, and a look at what comes after. */
async function observe(trial: RingStoreTrial, isLongest: boolean = false): Promise<Observed> {
  const name = trial.freshName();
  const writers = await trial.openMany(CONNECTIONS, name);
  const readers = await trial.openMany(READERS, name);
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
    observations.push({ reader, wonBefore, found: await trial.read(store, 'a read among writers') });
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
      // However slow the store, each reader reads several times between two contests.
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

/** Of a length of its own, and of one character: what is put together of two shows. */
function longDocument({ random, supports }: RingStoreTrial, title: string, length?: number): string {
  const most = Math.min(LONGEST_DOCUMENT, supports.maxDocumentBytes - 100);
  const character = String.fromCodePoint(0x61 + random.below(26));
  const any = Math.floor(most ** (0.5 + random.below(50) / 100));
  const count = length === undefined ? any : length - 100 - random.below(length / 4);
  return `${title}:${character.repeat(count)}.`;
}
