import type { RingStore } from '@sealring/core';
import { Finding, must, should } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import { ERRORS, type RingStoreRequirement, SWAP } from './requirement.ts';
import { type RingStoreTrial, textOf } from './trial.ts';

/** What languages and services take for nothing, for anything, or for a version. */
const FOREIGN: readonly string[] = [
  '',
  "' OR 1=1 --",
  ...'absent undefined null none false NaN AAAA 0 -1 00 1e9 9007199254740993 * "*" % _ .* $ {} {"$ne":null}'.split(' '),
];

/** What wins, and what loses, one after the other. */
export const EXPECTATION_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-CREATE-ONLY-ABSENT',
    'expected: undefined loses where a document is stored, and changes nothing.',
    SWAP,
    async (trial) => {
      const [store, other] = await trial.openPair();
      let revision: string | undefined;
      for (const document of ['one', 'two']) {
        revision = await trial.write(store, document, revision);
        for (const one of [store, other]) {
          for (const written of ['never', document]) {
            const what = `a write of ${textOf(written)} with expected: undefined, over ${textOf(document)},`;
            await expectLost(trial, one, undefined, what, written);
            await trial.expectStored(one, document, revision, 'a read after that');
          }
        }
      }
    },
  ),
  must(
    'RING-STALE-LOSES',
    'A revision that is not the current one loses, and changes nothing.',
    SWAP,
    async (trial) => {
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const revisions: string[] = [];
      for (const document of ['one', 'two', 'three']) {
        revisions.push(await trial.write(other, document, revisions.at(-1)));
        for (const stale of revisions.slice(0, -1)) {
          // Also of the stored document: it was somebody else who wrote it.
          for (const written of ['never', document]) {
            const what = `a write of ${textOf(written)} with the revision of an earlier version, over ${textOf(document)},`;
            await expectLost(trial, store, stale, what, written);
            await trial.expectStored(store, document, revisions.at(-1), 'a read after that');
            await trial.expectStored(other, document, revisions.at(-1), 'a read elsewhere after that');
          }
        }
      }
      if (trial.subject.remove === undefined) return;
      await trial.remove(name);
      for (const stale of revisions) {
        await expectLost(trial, store, stale, 'a write with a revision from before the removal, on the absent ring,');
        await trial.expectAbsent(other, 'a read after that');
      }
    },
  ),
  must('RING-CONFLICT-ERROR', 'A write that loses rejects with RingConflictError.', ERRORS, async (trial) => {
    const [store, other] = await trial.openPair();
    const first = await trial.write(store, 'one', undefined);
    for (const one of [store, other])
      await trial.expectConflict(one, undefined, 'a second write that would create the ring');
    await trial.write(store, 'two', first);
    await trial.expectConflict(other, first, 'a write with the revision of an earlier version');
    await trial.expectConflict(store, first, 'the same on the connection that wrote that version');
  }),
  must(
    'RING-FOREIGN-LOSES',
    'Text that is not the current revision never wins, not even the empty text or an asterisk.',
    SWAP,
    async (trial) => {
      const [store, other] = await trial.openPair();
      for (const expected of FOREIGN) {
        await expectLost(trial, store, expected, `a write that expects ${textOf(expected)} of an absent ring`);
      }
      await trial.expectAbsent(other, 'a read after that');
      const revision = await trial.write(store, 'one', undefined);
      for (const expected of FOREIGN.filter((one) => one !== revision)) {
        await expectLost(trial, store, expected, `a write that expects ${textOf(expected)}`);
        await trial.expectStored(other, 'one', revision, 'a read after that');
      }
    },
  ),
  must(
    'RING-REVISION-FOREIGN',
    'The revision of another ring loses, also where no ring is stored.',
    SWAP,
    async (trial) => {
      const [store, other] = await trial.openPair();
      const another = await trial.open();
      const earlier = await trial.write(another, 'earlier', undefined);
      await expectLost(trial, store, earlier, 'a write with the revision of another ring, on an absent ring,');
      await trial.expectAbsent(other, 'a read after that');
      const revision = await trial.write(store, 'one', undefined);
      const later = await trial.write(another, 'later', earlier);
      for (const [when, expected] of [
        ['an earlier', earlier],
        ['a later', later],
      ] as const) {
        // Rings may be counted apart: then two revisions are the same.
        if (expected === revision) continue;
        await expectLost(trial, store, expected, `a write with ${when} revision of another ring`);
        await trial.expectStored(other, 'one', revision, 'a read after that');
      }
    },
  ),
  should(
    'RING-FOREIGN-CONFLICT',
    'Text that is no revision of the store is a conflict, however similar it is.',
    SWAP,
    async (trial) => {
      const store = await trial.open();
      const revision = await trial.write(store, 'one', undefined);
      const foreign = [...FOREIGN, 'é', '0'.repeat(1_000)];
      const around = [' ', '\n', '0', 'x', '.0', '"', '='];
      const alike = [
        ...around.flatMap((one) => [`${revision}${one}`, `${one}${revision}`]),
        revision.toUpperCase(),
        revision.toLowerCase(),
        revision.slice(0, -1),
        revision.slice(1),
        `W/"${revision}"`,
      ];
      for (const expected of [...foreign, ...alike].filter((one) => one !== revision)) {
        await trial.expectConflict(store, expected, `a write that expects ${textOf(expected)}`);
        await trial.expectStored(store, 'one', revision, 'a read after that');
      }
    },
  ),
  must('RING-REWRITE', 'The same document once more, with the current revision, wins.', SWAP, async (trial) => {
    const [store, other] = await trial.openPair();
    let revision = await trial.write(store, 'one', undefined);
    for (const writer of [store, other, store]) {
      revision = await trial.write(writer, 'one', revision, 'a write of the stored document');
      for (const reader of [store, other]) await trial.expectStored(reader, 'one', revision, 'a read after that');
    }
    await trial.write(other, 'two', revision);
  }),
];

/** With whatever error: it has to say that it lost. */
async function expectLost(
  trial: RingStoreTrial,
  store: RingStore,
  expected: string | undefined,
  what: string,
  document = 'never',
): Promise<void> {
  const outcome = await trial.outcome(() => store.write(document, { expected }), what);
  if (outcome.status === 'resolved') throw new Finding(`${what} won: it resolved to ${kindOf(outcome.value)}`);
}
