import type { RingStore } from '@sealring/core';
import { type Check, Finding } from '../requirement.ts';
import { kindOf, type RingStoreTrial, textOf } from './trial.ts';

/** What wins, and what loses, one after the other. */
export const EXPECTATION_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-FOUND-ONLY-ABSENT',
    async run(trial) {
      const [store, other] = await trial.openPair();
      let revision: string | undefined;
      for (const document of ['one', 'two']) {
        revision = await trial.write(store, document, revision);
        for (const one of [store, other]) {
          for (const written of ['never', document]) {
            const what = `a write of ${textOf(written)} with expected: undefined, where ${textOf(document)} is,`;
            await expectLost(trial, one, undefined, what, written);
            await trial.expectStored(one, document, revision, 'a read after that');
          }
        }
      }
    },
  },
  {
    id: 'RING-STALE-LOSES',
    async run(trial) {
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const revisions: string[] = [];
      for (const document of ['one', 'two', 'three']) {
        revisions.push(await trial.write(other, document, revisions.at(-1)));
        for (const stale of revisions.slice(0, -1)) {
          // Also of what is there: it was somebody else who wrote it.
          for (const written of ['never', document]) {
            const what = `a write of ${textOf(written)} with the revision of an earlier version, where ${textOf(document)} is,`;
            await expectLost(trial, store, stale, what, written);
            await trial.expectStored(store, document, revisions.at(-1) ?? '', 'a read after that');
            await trial.expectStored(other, document, revisions.at(-1) ?? '', 'a read elsewhere after that');
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
  },
  {
    id: 'RING-CONFLICT-ERROR',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const first = await trial.write(store, 'one', undefined);
      await trial.expectConflict(other, undefined, 'a second foundation');
      await trial.write(store, 'two', first);
      await trial.expectConflict(other, first, 'a write with the revision of an earlier version');
      await trial.expectConflict(store, first, 'the same on the connection that wrote that version');
    },
  },
  {
    id: 'RING-FOREIGN-LOSES',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const foreign = ['', 'absent', 'undefined', 'AAAA'];
      for (const expected of foreign) {
        await expectLost(trial, store, expected, `a write with the expectation ${textOf(expected)} on an absent ring`);
        await trial.expectAbsent(other, 'a read after that');
      }
      const revision = await trial.write(store, 'one', undefined);
      for (const expected of foreign) {
        await expectLost(trial, store, expected, `a write with the expectation ${textOf(expected)}`);
        await trial.expectStored(other, 'one', revision, 'a read after that');
      }
    },
  },
  {
    id: 'RING-FOREIGN-CONFLICT',
    async run(trial) {
      const store = await trial.open();
      const revision = await trial.write(store, 'one', undefined);
      const foreign = ['', 'absent', 'AAAA', `=${revision}`, '*', '%', 'é', '0'.repeat(1_000)];
      const alike = [`${revision} `, ` ${revision}`, `${revision}\n`, revision.toUpperCase(), revision.toLowerCase()];
      for (const expected of [...foreign, ...alike.filter((one) => one !== revision)]) {
        await trial.expectConflict(store, expected, `a write with the expectation ${textOf(expected)}`);
        await trial.expectStored(store, 'one', revision, 'a read after that');
      }
    },
  },
  {
    id: 'RING-REWRITE',
    async run(trial) {
      const [store, other] = await trial.openPair();
      let revision = await trial.write(store, 'one', undefined);
      for (const writer of [store, other, store]) {
        revision = await trial.write(writer, 'one', revision, 'a write of the document that is there');
        for (const reader of [store, other]) await trial.expectStored(reader, 'one', revision, 'a read after that');
      }
      await trial.write(other, 'two', revision);
    },
  },
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
