import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import type { Settings } from '../options.ts';
import { expectThat } from '../requirement.ts';
import { CONNECTIONS, contest, FEW_WRITERS } from './contests.ts';
import { documentText, type RingStoreChecks, type RingStoreTrial } from './trial.ts';

const READERS = 3;
/** Writers of a contest that is read: versions matter here, and how many lose matters less. */
const MOST_WRITERS = 8;
const LEAST_CONTESTS = 5;
const MOST_CONTESTS = 20;
const LEAST_LONG = 2;
const MOST_LONG = 3;
const LEAST_CREATED = 2;
const MOST_CREATED = 5;
const WRITES = 20;
/** Of two connections, short and long documents by turns. */
const LEAST_OVERLAPPED = 6;
const PARALLEL_READS = 50;
/** Reads of each connection that are under way all the time. */
const UNDER_WAY = 8;
/** So long that a part of it shows, and a service is not busy with it. */
const LONGEST_DOCUMENT = 8_192;
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

export const READING_CHECKS: RingStoreChecks = {
  'RING-READ-AFTER-WRITE': async (trial) => {
    const stores = await trial.openMany(3);
    let revision: string | undefined;
    for (let i = 0; i < WRITES; i++) {
      const document = `write ${i}`;
      revision = await trial.write(stores[i % stores.length] as RingStore, document, revision);
      const written = revision;
      await trial.all(
        stores.map((store, reader) => {
          const where = reader === i % stores.length ? 'on its own connection' : 'on another connection';
          return trial.expectStored(store, document, written, `a read after write ${i + 1}, ${where},`);
        }),
      );
    }
  },
  'RING-READ-OVERLAPPED': async (trial) => {
    const stores = await trial.openMany(2);
    const over = new AbortController();
    const readOn = async (store: RingStore): Promise<void> => {
      while (!over.signal.aborted) {
        await trial.read(store, 'a read among reads');
        await otherWork();
      }
    };
    const write = async (): Promise<void> => {
      let revision: string | undefined;
      for (const i of trial.repeats(LEAST_OVERLAPPED, WRITES)) {
        const document = i % 2 === 0 ? `write ${i}` : longDocument(trial, `write ${i}`);
        revision = await trial.write(stores[i % 2] as RingStore, document, revision);
        const written = revision;
        const what = `a read after write ${i}, with earlier reads under way,`;
        await trial.all(stores.map((store) => trial.expectStored(store, document, written, what)));
      }
    };
    const end = (): void => over.abort();
    const readers = stores.flatMap((store) => Array.from({ length: UNDER_WAY }, () => readOn(store).finally(end)));
    await trial.all([write().finally(end), ...readers]);
  },
  'RING-READ-CREATED': async (trial) => {
    for (const round of trial.contests(LEAST_CREATED, MOST_CREATED)) {
      const name = trial.freshName();
      const writers = await trial.openMany(CONNECTIONS, name);
      const readers = await trial.openMany(2, name);
      const seen: (StoredRing | undefined)[] = [];
      const over = new AbortController();
      const look = async (store: RingStore): Promise<void> => {
        while (!over.signal.aborted) {
          seen.push(await trial.read(store, 'a read while others create a ring'));
          await otherWork();
        }
      };
      const create = async (): Promise<void> => {
        const title = `creation ${round}`;
        const winner = await contest(trial, writers, undefined, title, (i) => longDocument(trial, `${title} of ${i}`));
        over.abort();
        for (const found of seen) {
          const isRight = found === undefined || found.document === winner.document;
          expectThat(isRight, `a read while others create a ring found ${documentText(found?.document ?? '')}`);
        }
      };
      await trial.all([create().finally(() => over.abort()), ...readers.map(look)]);
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
  const revision = await trial.write(writers[0] as RingStore, start, undefined);
  const winners: StoredRing[] = [{ document: start, revision }];
  const observations: Observation[] = [];
  const looks = readers.map(() => 0);
  const over = new AbortController();
  let lookMs = 0;

  async function look(store: RingStore, reader: number): Promise<void> {
    const wonBefore = winners.length - 1;
    const began = performance.now();
    observations.push({ reader, wonBefore, found: await trial.read(store, 'a read among writers') });
    lookMs = performance.now() - began;
    if (wonBefore === winners.length - 1) looks[reader] = (looks[reader] ?? 0) + 1;
  }

  async function watch(store: RingStore, reader: number): Promise<void> {
    try {
      while (!over.signal.aborted) {
        await look(store, reader);
        await otherWork();
      }
    } finally {
      over.abort();
    }
  }

  /** However slow the store, each reader reads several times between two contests. */
  async function everybodyLooks(): Promise<void> {
    looks.fill(0);
    while (!over.signal.aborted && looks.some((count) => count < LOOKS)) await otherWork();
    // The next contest starts at any moment of a read, not always at its beginning.
    const until = performance.now() + (lookMs * trial.random.below(100)) / 100;
    while (!over.signal.aborted && performance.now() < until) await otherWork();
  }

  async function write(): Promise<void> {
    try {
      const [least, most] = isLongest ? [LEAST_LONG, MOST_LONG] : [LEAST_CONTESTS, MOST_CONTESTS];
      for (const round of trial.contests(least, most)) {
        const title = `contest ${round}`;
        const { revision: expected } = winners.at(-1) as StoredRing;
        const count = isLongest ? FEW_WRITERS : Math.min(trial.writers, MOST_WRITERS);
        winners.push(await contest(trial, writers, expected, title, (writer) => documentOf(title, writer), count));
        await everybodyLooks();
      }
    } finally {
      over.abort();
    }
  }

  await trial.all([write(), ...readers.map(watch)]);
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
  const count = length === undefined ? 1 + random.below(most) : length - 100 - random.below(length / 4);
  return `${title}:${character.repeat(count)}.`;
}
