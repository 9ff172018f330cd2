import type { RingStore, StoredRing } from '@sealring/core';
import { expectThat } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import { isConflict, type RingStoreTrial, revisionOf } from './trial.ts';

/** Connections that the writers share. */
export const CONNECTIONS = 4;

/** Writers of the longest documents: more would measure the network. */
export const FEW_WRITERS = 4;

/** All write at once, with the same expectation. Resolves to what the one winner wrote. */
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
      return trial.outcome(() => store.write(document, { expected }), `a write in ${title}`);
    }),
  );
  const won: StoredRing[] = [];
  const failures = new Map<string, number>();
  for (const [writer, outcome] of outcomes.entries()) {
    if (outcome.status === 'resolved') {
      won.push({ document: documents[writer] ?? '', revision: revisionOf(outcome.value, `a write in ${title}`) });
    } else if (!isConflict(outcome.error)) {
      failures.set(describeThrown(outcome.error), (failures.get(describeThrown(outcome.error)) ?? 0) + 1);
    }
  }
  const [winner] = won;
  const those = [...failures].map(([name, count]) => `, ${count} got ${name}`).join('');
  const finding = `${title}: of ${writers} who wrote at once, ${won.length} won${those}`;
  expectThat(winner !== undefined && won.length === 1 && failures.size === 0, finding);
  return winner;
}
