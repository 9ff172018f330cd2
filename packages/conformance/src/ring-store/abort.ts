import { setTimeout as pause } from 'node:timers/promises';
import type { StoredRing } from '@sealring/core';
import { type Check, expectThat, Finding } from '../requirement.ts';
import {
  documentText,
  isConflict,
  isFailure,
  kindOf,
  nameOf,
  type Outcome,
  type RingStoreTrial,
  revisionOf,
} from './trial.ts';

const ABORTS = 20;
/** Longest time between a call and its abortion, milliseconds. */
const LONGEST_START_MS = 12;
const MOST_TRIES = 20;

/** Calls whose caller does not wait any longer. */
export const ABORT_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-ABORTED',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const signal = AbortSignal.abort();
      const write = (expected: string | undefined) => () => store.write('never', { expected, signal });
      await trial.expectFailure(() => store.read({ signal }), 'unavailable', 'an aborted read of an absent ring');
      await trial.expectFailure(write(undefined), 'unavailable', 'an aborted foundation');
      await trial.expectAbsent(other, 'a read after an aborted foundation');
      const revision = await trial.write(store, 'one', undefined);
      await trial.expectFailure(() => store.read({ signal }), 'unavailable', 'an aborted read');
      await trial.expectFailure(write(revision), 'unavailable', 'an aborted write');
      await trial.expectStored(other, 'one', revision, 'a read after an aborted write');
      const options = { signal: new AbortController().signal };
      await trial.read(store, 'a read with a signal that does not abort', options);
      await trial.write(store, 'two', revision, 'a write with a signal that does not abort', options);
    },
  },
  {
    id: 'RING-ABORT-READ',
    async run(trial) {
      const [store, other] = await trial.openPair();
      let current: StoredRing | undefined;
      for (let i = 0; i < ABORTS; i++) {
        if (i === ABORTS / 2) current = { document: 'one', revision: await trial.write(other, 'one', undefined) };
        const what = `a read that was aborted on its way, of ${current === undefined ? 'an absent ring' : 'a ring'},`;
        const outcome = await abortedCall(trial, i, (signal) => store.read({ signal }), what);
        if (outcome.status === 'rejected') {
          expectThat(isFailure(outcome.error, 'unavailable'), `${what} rejected with ${nameOf(outcome.error)}`);
          continue;
        }
        // It may have been quicker; it never says that the ring is another than it is.
        const found = outcome.value as StoredRing | undefined;
        const isRight = found?.document === current?.document && found?.revision === current?.revision;
        expectThat(isRight && found !== null, `${what} resolved to ${kindOf(found)}, which is not what is there`);
      }
      const { document, revision } = current ?? { document: '', revision: '' };
      await trial.expectStored(store, document, revision, 'a read after aborted reads');
      await trial.write(store, 'two', revision, 'a write after aborted reads');
    },
  },
  {
    id: 'RING-ABORT-WRITE',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const name = 'a write that was aborted on its way';
      let current: StoredRing = { document: 'start', revision: await trial.write(store, 'start', undefined) };
      // Written with the current expectation, and perhaps under way still.
      let underWay: string[] = [];
      for (let i = 0; i < ABORTS; i++) {
        const document = `aborted ${i} ${'x'.repeat(500)}`;
        const expected = current.revision;
        const outcome = await abortedCall(trial, i, (signal) => store.write(document, { expected, signal }), name);
        if (outcome.status === 'rejected') {
          const { error } = outcome;
          const isLate = underWay.length > 0 && isConflict(error);
          expectThat(isLate || isFailure(error, 'unavailable'), `${name} rejected with ${nameOf(error)}`);
          if (!isLate) underWay.push(document);
        }
        const found = await trial.read(other, `a read after ${name}`);
        expectThat(found !== undefined, `a read after ${name} says that the ring is absent`);
        if (outcome.status === 'resolved') {
          const revision = revisionOf(outcome.value, name);
          const isThere = found.document === document && found.revision === revision;
          expectThat(isThere, `${name} and resolved, and a read finds ${documentText(found.document)}`);
        }
        const isNew = found.document !== current.document;
        const what = documentText(found.document);
        expectThat(!isNew || found.document === document || underWay.includes(found.document), `${name} left ${what}`);
        expectThat(
          isNew === (found.revision !== expected),
          `${name} left ${what} with the revision of ${isNew ? 'the document before' : 'another document'}`,
        );
        if (isNew) [current, underWay] = [found, []];
      }
      await winAfter(trial, other, name);
    },
  },
];

/** Starts a call, and aborts it: at once, or a little later. */
async function abortedCall(
  trial: RingStoreTrial,
  turn: number,
  call: (signal: AbortSignal) => unknown,
  what: string,
): Promise<Outcome> {
  const controller = new AbortController();
  const ended = trial.outcome(() => call(controller.signal), what);
  // It is waited for below; until then nobody handles it.
  ended.catch(() => undefined);
  if (turn % 3 !== 0) await pause(trial.random.below(LONGEST_START_MS));
  controller.abort();
  return ended;
}

/** What is under way may still arrive, a few times; then the ring can be written as ever. */
async function winAfter(
  trial: RingStoreTrial,
  store: Parameters<RingStoreTrial['read']>[0],
  name: string,
): Promise<void> {
  for (let i = 0; i < MOST_TRIES; i++) {
    const found = await trial.read(store, `a read after ${name}`);
    const expected = found?.revision;
    const outcome = await trial.outcome(() => store.write('end', { expected }), `a write after ${name}`);
    if (outcome.status === 'resolved') return;
    if (!isConflict(outcome.error)) throw new Finding(`a write after ${name} rejected with ${nameOf(outcome.error)}`);
  }
  throw new Finding(`no write wins after ${name}`);
}
