import { setImmediate as otherWork, setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import { type Check, expectThat } from '../requirement.ts';
import { CONNECTIONS, contest } from './contest.ts';
import { documentText, type RingStoreTrial } from './trial.ts';

const READERS = 3;
const MOST_CONTESTS = 20;
const WRITES = 20;
const PARALLEL_READS = 50;
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
  /** What somebody wrote, whether it won or lost. */
  readonly written: ReadonlySet<string>;
  readonly observations: readonly Observation[];
}

/** What is read after writes, and while others write. */
export const READING_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-READ-AFTER-WRITE',
    async run(trial) {
      const stores = await trial.openMany(3);
      let revision: string | undefined;
      for (let i = 0; i < WRITES; i++) {
        const document = `write ${i}`;
        revision = await trial.write(stores[i % stores.length] as RingStore, document, revision);
        const written = revision;
        const reads = await Promise.allSettled(
          stores.map((store, reader) => {
            const where = reader === i % stores.length ? 'on its own connection' : 'on another connection';
            return trial.expectStored(store, document, written, `a read after write ${i + 1}, ${where},`);
          }),
        );
        for (const read of reads) if (read.status === 'rejected') throw read.reason;
      }
    },
  },
  {
    id: 'RING-READ-WHOLE',
    async run(trial) {
      const { winners, written, observations } = await observe(trial);
      const revisions = new Map(winners.map(({ document, revision }) => [document, revision]));
      for (const { found } of observations) {
        if (found === undefined) continue;
        const what = documentText(found.document);
        expectThat(written.has(found.document), `a read among writers found ${what}, which nobody wrote`);
        const revision = revisions.get(found.document) ?? found.revision;
        expectThat(
          revision === found.revision,
          `a read among writers found ${what} with another revision than its write`,
        );
      }
    },
  },
  {
    id: 'RING-READ-CURRENT',
    async run(trial) {
      const { winners, observations } = await observe(trial);
      for (const { found, wonBefore } of observations) {
        expectThat(found !== undefined, 'a read among writers says that the ring is absent');
        const at = winners.findIndex(({ document }) => document === found.document);
        expectThat(
          at < 0 || at >= wonBefore,
          `a read that started after contest ${wonBefore} was won found what was there after contest ${at}`,
        );
      }
    },
  },
  {
    id: 'RING-READ-MONOTONE',
    async run(trial) {
      const { winners, observations } = await observe(trial);
      for (let reader = 0; reader < READERS; reader++) {
        let latest = -1;
        for (const { found } of observations.filter((one) => one.reader === reader)) {
          const at = winners.findIndex(({ document }) => document === found?.document);
          expectThat(at < 0 || at >= latest, `a reader found version ${at} after version ${latest}`);
          latest = Math.max(at, latest);
        }
      }
    },
  },
  {
    id: 'RING-LOSER-NEVER-APPEARS',
    async run(trial) {
      const { winners, observations } = await observe(trial);
      for (const { found } of observations) {
        if (found === undefined) continue;
        const won = winners.some(({ document }) => document === found.document);
        expectThat(won, `a read found ${documentText(found.document)}, which did not win`);
      }
    },
  },
  {
    id: 'RING-PARALLEL-READS',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const revision = await trial.write(store, 'one', undefined);
      const reads = await Promise.allSettled(
        Array.from({ length: PARALLEL_READS }, (_, i) =>
          trial.expectStored(i % 2 === 0 ? store : other, 'one', revision, `one of ${PARALLEL_READS} reads at once`),
        ),
      );
      for (const read of reads) if (read.status === 'rejected') throw read.reason;
    },
  },
];

/** Contests of writers under the eyes of readers on connections of their own, and a look at what comes after. */
async function observe(trial: RingStoreTrial): Promise<Observed> {
  const name = trial.freshName();
  const writers = await trial.openMany(CONNECTIONS, name);
  const readers = await trial.openMany(READERS, name);
  const written = new Set<string>();
  const documentOf = (title: string, writer: number): string => {
    const document = longDocument(trial, `${title} of ${writer}`);
    written.add(document);
    return document;
  };
  const start = documentOf('start', 0);
  const revision = await trial.write(writers[0] as RingStore, start, undefined);
  const winners: StoredRing[] = [{ document: start, revision }];
  const observations: Observation[] = [];
  const looks = readers.map(() => 0);
  const over = new AbortController();

  async function look(store: RingStore, reader: number): Promise<void> {
    const wonBefore = winners.length - 1;
    observations.push({ reader, wonBefore, found: await trial.read(store, 'a read among writers') });
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
  }

  async function write(): Promise<void> {
    try {
      for (let round = 1; round <= Math.min(trial.rounds, MOST_CONTESTS); round++) {
        const title = `contest ${round}`;
        const { revision: expected } = winners.at(-1) as StoredRing;
        winners.push(await contest(trial, writers, expected, title, (writer) => documentOf(title, writer)));
        await everybodyLooks();
      }
    } finally {
      over.abort();
    }
  }

  const ended = await Promise.allSettled([write(), ...readers.map(watch)]);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  for (const waitMs of [0, AFTERMATH_MS]) {
    await pause(waitMs);
    for (const [reader, store] of readers.entries()) await look(store, reader);
  }
  return { winners, written, observations };
}

/** Of a length of its own, and of one character: what is put together of two shows. */
function longDocument({ random, subject }: RingStoreTrial, title: string): string {
  const most = Math.min(LONGEST_DOCUMENT, subject.supports.maxDocumentBytes - 100);
  const character = String.fromCodePoint(0x61 + random.below(26));
  return `${title}:${character.repeat(1 + random.below(most))}.`;
}
