import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { documentText, type RingStoreTrial, textOf } from './trial.ts';

const VERSIONS = 20;
const READS = 5;

/** What a revision stands for, and for how long. */
export const REVISION_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-REVISION-STABLE',
    async run(trial) {
      const stores = await trial.openPair();
      let revision: string | undefined;
      for (const document of ['one', 'two']) {
        revision = await trial.write(stores[0], document, revision);
        for (let i = 0; i < READS; i++) {
          for (const store of stores)
            await trial.expectStored(store, document, revision, `read ${i + 1} of one version`);
        }
      }
    },
  },
  {
    id: 'RING-REVISION-OF-ONE',
    async run(trial) {
      const stores = await trial.openPair();
      const documents = new Map<string, string>();
      let revision: string | undefined;
      for (let i = 0; i < VERSIONS; i++) {
        // Of one length, and quickly: a length or a time is no revision.
        const document = `version ${String(i).padStart(3, '0')}`;
        revision = await trial.write(stores[i % 2] ?? stores[0], document, revision);
        const other = documents.get(revision);
        expectThat(
          other === undefined,
          `${documentText(other ?? '')} and ${documentText(document)} have the revision ${textOf(revision)}`,
        );
        documents.set(revision, document);
      }
    },
  },
  {
    id: 'RING-REVISION-UNIQUE',
    async run(trial) {
      if (!trial.subject.supports.uniqueRevisions) throw new NotApplicable('supports.uniqueRevisions is not declared');
      const [store, other] = await trial.openPair();
      const revisions: string[] = [];
      for (const document of ['a', 'b', 'a', 'b', 'a', 'a']) {
        const revision = await trial.write(store, document, revisions.at(-1));
        expectThat(!revisions.includes(revision), `the revision ${textOf(revision)} came back with its document`);
        revisions.push(revision);
      }
      for (const expected of revisions.slice(0, -1)) {
        await trial.expectConflict(other, expected, 'a write with the revision of an earlier version');
      }
    },
  },
  {
    id: 'RING-REMOVED',
    async run(trial) {
      const name = trial.freshName();
      const stores = await trial.openPair(name);
      const [store, other] = stores;
      const first = await trial.write(store, 'one', undefined);
      await trial.expectStored(other, 'one', first, 'a read before the removal');
      await trial.remove(name);
      for (const one of stores) await trial.expectAbsent(one, 'a read after the removal');
      const revision = await trial.write(other, 'two', undefined, 'a foundation after the removal');
      for (const one of stores)
        await trial.expectStored(one, 'two', revision, 'a read of the ring that was founded anew');
    },
  },
  {
    id: 'RING-REVISION-REMOVED',
    async run(trial) {
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const first = await trial.write(store, 'one', undefined);
      const second = await trial.write(store, 'two', first);
      await trial.remove(name);
      let revision: string | undefined;
      // Where a revision is a hash it comes back with its document, and that loses nothing.
      for (const document of trial.subject.supports.uniqueRevisions ? ['one', 'two', 'three'] : ['three', 'four']) {
        revision = await trial.write(other, document, revision, 'a write after the removal');
        for (const expected of [first, second]) {
          await trial.expectConflict(store, expected, 'a write with a revision from before the removal');
        }
        await trial.expectStored(other, document, revision, 'a read after that');
      }
    },
  },
];
