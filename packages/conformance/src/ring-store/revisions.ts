import { expectThat, must, NotApplicable, should } from '../requirement.ts';
import { ABSENT, KIT, REVISION, type RingStoreRequirement } from './requirement.ts';
import { labelled } from './sizes.ts';
import { documentText, type RingStoreTrial, textOf } from './trial.ts';

const VERSIONS = 20;
const READS = 5;
/** Places of a long document that are changed, one at a time. */
const PLACES = 16;
const LONGEST = 65_536;

/** What a revision stands for, and for how long. */
export const REVISION_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-REVISION-STABLE',
    'Every read of one version returns the revision that its write returned.',
    REVISION,
    async (trial) => {
      const stores = await trial.openPair();
      const elsewhere = await trial.open();
      let [revision, other]: (string | undefined)[] = [];
      for (const document of ['one', 'two', longest(trial)]) {
        revision = await trial.write(stores[0], document, revision);
        for (let i = 0; i < READS; i++) {
          for (const store of stores)
            await trial.expectStored(store, document, revision, `read ${i + 1} of one version`);
          other = await trial.write(elsewhere, `of another ring ${i}`, other);
        }
      }
    },
  ),
  must('RING-REVISION-OF-ONE', 'Two different documents never have the same revision.', REVISION, async (trial) => {
    const stores = await trial.openPair();
    const documents = new Map<string, string>();
    let revision: string | undefined;
    const versions = Array.from({ length: VERSIONS }, (_, i) => `version ${String(i).padStart(3, '0')}`);
    for (const [i, document] of [...versions, ...similar(), ...similarLong(trial)].entries()) {
      revision = await trial.write(stores[i % 2] ?? stores[0], document, revision);
      const other = documents.get(revision);
      const pair = `${documentText(other ?? '')} and ${documentText(document)}`;
      expectThat(other === undefined, `${pair} have the revision ${textOf(revision)}`);
      documents.set(revision, document);
    }
  }),
  must(
    'RING-REVISION-UNIQUE',
    'A document that is written again has another revision, where the target says so.',
    REVISION,
    async (trial) => {
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
  ),
  must('RING-REMOVED', 'A ring that was removed is absent, and can be created again.', ABSENT, async (trial) => {
    const name = trial.freshName();
    const stores = await trial.openPair(name);
    const [store, other] = stores;
    const first = await trial.write(store, 'one', undefined);
    await trial.expectStored(other, 'one', first, 'a read before the removal');
    await trial.remove(name);
    for (const one of stores) await trial.expectAbsent(one, 'a read after the removal');
    const revision = await trial.write(other, 'two', undefined, 'a write that creates the ring after the removal');
    for (const one of stores)
      await trial.expectStored(one, 'two', revision, 'a read of the ring that was created again');
  }),
  should(
    'RING-REVISION-REMOVED',
    'A revision from before a removal never wins after it.',
    `${KIT}; F31`,
    async (trial) => {
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
  ),
];

/** Documents that some take for the same. */
function similar(): readonly string[] {
  return [
    '{"a":1,"b":2}',
    '{"b":2,"a":1}',
    '{"a":1, "b":2}',
    '{"a":1,"b":2}\n',
    '{"a":1.0,"b":2}',
    '{"A":1,"b":2}',
    '{"a":"\u00e9"}',
    '{"a":"e\u0301"}',
    '{"a":"\\u00e9"}',
    'one\ntwo\n',
    'two\none\n',
    'one\r\ntwo\r\n',
  ];
}

function longest(trial: RingStoreTrial): string {
  return labelled(Math.min(LONGEST, trial.subject.supports.maxDocumentBytes));
}

/** Long documents that differ in one place, or in the order of two. */
function similarLong(trial: RingStoreTrial): readonly string[] {
  const long = longest(trial);
  const places = Array.from({ length: PLACES + 1 }, (_, i) => Math.floor(((long.length - 1) * i) / PLACES));
  const changed = places.map((at) => `${long.slice(0, at)}x${long.slice(at + 1)}`);
  const [one, other] = [long.length / 4, long.length / 2].map((at) => Math.floor(at / 8) * 8) as [number, number];
  const exchanged = [0, one, other].map((at) => long.slice(at, at + 8));
  return [
    long,
    ...changed,
    exchanged[0] +
      long.slice(8, one) +
      exchanged[2] +
      long.slice(one + 8, other) +
      exchanged[1] +
      long.slice(other + 8),
  ];
}
