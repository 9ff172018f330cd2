import type { RingStore } from '@sealring/core';
import { type Check, expectThat, Finding } from '../requirement.ts';
import { CONNECTIONS, contest } from './contest.ts';
import { isConflict, nameOf, type RingStoreTrial, textOf } from './trial.ts';

const MOST_FOUNDATIONS = 5;
/** Additions that every writer makes. */
const ADDITIONS = 5;
const ADDERS = 2 * CONNECTIONS;

/** Many who want the same at once. */
export const CONTEST_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-FOUND-ONE-WINNER',
    async run(trial) {
      for (let round = 0; round < Math.min(trial.rounds, MOST_FOUNDATIONS); round++) {
        const stores = await trial.openMany(CONNECTIONS);
        const { document, revision } = await contest(trial, stores, undefined, `foundation ${round + 1}`);
        for (const store of stores) await trial.expectStored(store, document, revision, 'a read after the foundation');
        await trial.expectConflict(stores[0] as RingStore, undefined, 'one who founds late');
      }
    },
  },
  {
    id: 'RING-CAS-ONE-WINNER',
    async run(trial) {
      const stores = await trial.openMany(CONNECTIONS);
      let revision = await trial.write(stores[0] as RingStore, 'start', undefined);
      const revisions = new Set([revision]);
      for (let round = 1; round <= trial.rounds; round++) {
        const winner = await contest(trial, stores, revision, `contest ${round}`);
        // Another connection than the winner's, by turns.
        const reader = stores[round % CONNECTIONS] as RingStore;
        await trial.expectStored(reader, winner.document, winner.revision, `a read after contest ${round}`);
        expectThat(
          !revisions.has(winner.revision),
          `contest ${round}: the revision ${textOf(winner.revision)} came back`,
        );
        revisions.add(winner.revision);
        ({ revision } = winner);
      }
    },
  },
  {
    id: 'RING-NO-LOST-UPDATE',
    async run(trial) {
      const stores = await trial.openMany(CONNECTIONS);
      await trial.write(stores[0] as RingStore, '0', undefined);
      const added = await Promise.allSettled(
        Array.from({ length: ADDERS }, (_, i) => add(trial, stores[i % CONNECTIONS] as RingStore)),
      );
      for (const one of added) if (one.status === 'rejected') throw one.reason;
      for (const store of stores) {
        const found = await trial.read(store);
        const expected = ADDERS * ADDITIONS;
        expectThat(
          found?.document === String(expected),
          `${expected} additions resolved, the sum is ${textOf(found?.document ?? 'absent')}`,
        );
      }
    },
  },
];

/** Adds one, as often as it takes, {@link ADDITIONS} times. */
async function add(trial: RingStoreTrial, store: RingStore): Promise<void> {
  for (let done = 0; done < ADDITIONS; ) {
    const found = await trial.read(store);
    expectThat(found !== undefined, 'a read among writers says that the ring is absent');
    const write = () => store.write(String(Number(found.document) + 1), { expected: found.revision });
    const outcome = await trial.outcome(write, 'an addition');
    if (outcome.status === 'resolved') done++;
    else if (!isConflict(outcome.error)) throw new Finding(`an addition rejected with ${nameOf(outcome.error)}`);
  }
}
