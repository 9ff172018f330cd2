import type { RingStore, StoredRing } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { type Moment, moments } from './moments.ts';
import { CONTRACT, must, type RingStoreRequirement, SIGNAL } from './requirement.ts';
import { labelled } from './sizes.ts';
import { documentText, isConflict, isFailure, type Outcome, type RingStoreTrial, revisionOf } from './trial.ts';

const MOST_TRIES = 20;
/** How long the moments of an abort are tried again. */
const SWEEP_MS = 500;

/** Calls whose caller does not wait any longer. */
export const ABORT_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-ABORTED',
    'A call with an aborted signal rejects with unavailable and writes nothing.',
    SIGNAL,
    {
      operations: 'read; writes that would create, replace and conflict; then each with a signal that does not abort',
      order: 'where nothing is stored, and over a ring; read on both connections',
    },
    async (trial) => {
      const [store, other] = await trial.openPair();
      const signal = AbortSignal.abort();
      const write = (expected: string | undefined) => () => store.write('never', { expected, signal });
      await trial.expectFailure(() => store.read({ signal }), 'unavailable', 'an aborted read of an absent ring');
      await trial.expectFailure(write(undefined), 'unavailable', 'an aborted write that would create a ring');
      for (const one of [store, other]) await trial.expectAbsent(one, 'a read after an aborted write');
      const revision = await trial.write(store, 'one', undefined);
      await trial.expectFailure(() => store.read({ signal }), 'unavailable', 'an aborted read');
      await trial.expectFailure(write(revision), 'unavailable', 'an aborted write');
      for (const one of [store, other]) await trial.expectStored(one, 'one', revision, 'a read after an aborted write');
      const options = { signal: new AbortController().signal };
      await trial.read(store, 'a read with a signal that does not abort', options);
      await trial.write(store, 'two', revision, 'a write with a signal that does not abort', options);
    },
  ),
  must(
    'RING-ABORT-READ',
    'A read aborted on its way is right or unavailable, and disturbs no other call.',
    SIGNAL,
    {
      operations:
        'read, with reads on the same connection that start before it, every other time, and after it; then write',
      lengths: 'an absent ring, a few bytes, and the longest',
      order: 'aborted after 0 to 8 turns of the event loop, and after 5 to 150 % of the time that a read takes',
    },
    async (trial) => {
      const [store, other] = await trial.openPair();
      let current: StoredRing | undefined;
      for (const document of [undefined, 'one', labelled(trial.subject.supports.maxDocumentBytes)]) {
        if (document !== undefined) {
          current = { document, revision: await trial.write(other, document, current?.revision) };
        }
        const expectCurrent = async (what: string): Promise<void> => {
          if (current === undefined) await trial.expectAbsent(store, what);
          else await trial.expectStored(store, current.document, current.revision, what);
        };
        const what = `a read aborted on its way, of ${current === undefined ? 'an absent ring' : 'a ring'},`;
        for (const [i, moment] of (await moments(() => expectCurrent('a read'))).entries()) {
          // Every other time the aborted read is the first of the three.
          const before = i % 2 === 0 ? undefined : expectCurrent('a read that another read was aborted after');
          const aborted = abortedCall(trial, moment, (signal) => store.read({ signal }), what);
          const after = expectCurrent('a read that another read was aborted before');
          await trial.all<unknown>([Promise.resolve(before), after, aborted]);
          const outcome = await aborted;
          if (outcome.status === 'rejected') {
            expectThat(
              isFailure(outcome.error, 'unavailable'),
              `${what} rejected with ${describeThrown(outcome.error)}`,
            );
          } else {
            // It may have been quicker; it never says that the ring is another than it is.
            const found = outcome.value as StoredRing | undefined;
            const isRight = found?.document === current?.document && found?.revision === current?.revision;
            expectThat(isRight && found !== null, `${what} resolved to ${kindOf(found)}, which is not what is stored`);
          }
          await expectCurrent('a read after an aborted read');
        }
      }
      await trial.write(store, 'two', current?.revision, 'a write after aborted reads');
    },
  ),
  must(
    'RING-ABORT-WRITE',
    'A write aborted on its way is done whole or not at all, and the store stays usable.',
    SIGNAL,
    {
      operations: 'write; then read and write on another connection, read and write on the same one',
      lengths: '500 bytes, and the longest',
      order: 'aborted after 0 to 8 turns of the event loop, and after 5 to 150 % of the time that a write takes',
    },
    async (trial) => {
      for (const length of [500, trial.subject.supports.maxDocumentBytes]) {
        const [store, other] = await trial.openPair();
        let revision = await trial.write(store, 'start', undefined);
        const measured = await moments(async () => {
          revision = await trial.write(store, labelled(length), revision);
        });
        const began = performance.now();
        // A moment may miss on a busy machine: a quick store is given each of them several times.
        const several = [measured, measured, measured].flat();
        for (const [i, moment] of several.entries()) {
          if (i >= measured.length && performance.now() - began > SWEEP_MS) break;
          const before = { document: `before ${i}`, revision: await trial.write(store, `before ${i}`, revision) };
          const document = `${i}: ${labelled(length)}`.slice(0, length);
          revision = await abortWrite(trial, [store, other], before, document, moment);
        }
        await trial.write(store, 'end', revision, 'a write after aborted writes');
      }
    },
  ),
  must(
    'RING-ABORT-CREATE',
    'The same holds for a write that creates a ring.',
    SIGNAL,
    {
      operations: 'write where nothing is stored; then read and write on another connection, read on the same one',
      order: 'as RING-ABORT-WRITE, each with a new ring',
    },
    async (trial) => {
      const measured = await moments(async () => {
        const store = await trial.open();
        return async () => trial.write(store, 'timed', undefined);
      });
      for (const moment of measured) await abortWrite(trial, await trial.openPair(), undefined, 'created', moment);
    },
  ),
  must(
    'RING-ABORT-OTHERS',
    'An aborted write does not disturb other calls on its connection.',
    CONTRACT,
    {
      operations: 'a write that is aborted; reads, and a write of another ring’s store, made at the same time',
      order: 'one call before it and one after it, on the same connection',
    },
    async (trial) => {
      const store = await trial.open();
      const elsewhere = await trial.open();
      let revision = await trial.write(store, 'start', undefined);
      let other: string | undefined;
      const measured = await moments(async () => {
        revision = await trial.write(store, 'timed', revision);
      });
      for (const [i, moment] of measured.entries()) {
        const what = 'a call while another write was aborted';
        const before = trial.read(store, what);
        const aborted = abortedCall(
          trial,
          moment,
          (signal) => store.write(`aborted ${i}`, { expected: revision, signal }),
          what,
        );
        const after = trial.read(store, what);
        const written = trial.write(elsewhere, `elsewhere ${i}`, other, what);
        await trial.all<unknown>([before, aborted, after, written]);
        other = await written;
        revision = await supersede(trial, store, `after ${i}`);
      }
    },
  ),
];

/** Starts a call, and aborts it. */
async function abortedCall(
  trial: RingStoreTrial,
  moment: Moment,
  call: (signal: AbortSignal) => unknown,
  what: string,
): Promise<Outcome> {
  const controller = new AbortController();
  const began = performance.now();
  const ended = trial.outcome(() => call(controller.signal), what);
  // It is waited for below; until then nobody handles it.
  ended.catch(() => undefined);
  await moment(began);
  controller.abort();
  return ended;
}

/** One write that is aborted, and all that must hold after it. @returns the revision of what is stored then. */
async function abortWrite(
  trial: RingStoreTrial,
  [store, other]: readonly [RingStore, RingStore],
  before: StoredRing | undefined,
  document: string,
  moment: Moment,
): Promise<string> {
  const name = 'a write aborted on its way';
  const expected = before?.revision;
  const outcome = await abortedCall(trial, moment, (signal) => store.write(document, { expected, signal }), name);
  if (outcome.status === 'rejected') {
    expectThat(isFailure(outcome.error, 'unavailable'), `${name} rejected with ${describeThrown(outcome.error)}`);
  }
  const found = await trial.read(other, `a read after ${name}`);
  const what = found === undefined ? 'no ring' : documentText(found.document);
  const isNew = found?.document === document;
  expectThat(isNew || found?.document === before?.document, `${name} left ${what}`);
  const isOld = found?.revision === expected;
  expectThat(
    isNew !== isOld,
    `${name} left ${what} with the revision of ${isNew ? 'the document before' : 'another document'}`,
  );
  if (outcome.status === 'resolved') {
    const isThere = isNew && found?.revision === revisionOf(outcome.value, name);
    expectThat(isThere, `${name} resolved, and a read finds ${what}`);
  }
  const revision = await supersede(trial, other, 'after');
  await trial.expectStored(store, 'after', revision, `a read after ${name}, on its connection,`);
  return revision;
}

/** Replaces what is stored. What was aborted may still arrive before that, and never after it. */
async function supersede(trial: RingStoreTrial, store: RingStore, document: string): Promise<string> {
  const what = 'a write after an aborted one';
  for (let i = 0; i < MOST_TRIES; i++) {
    const found = await trial.read(store, 'a read after an aborted write');
    const expected = found?.revision;
    const outcome = await trial.outcome(() => store.write(document, { expected }), what);
    if (outcome.status === 'resolved') return revisionOf(outcome.value, what);
    if (!isConflict(outcome.error)) throw new Finding(`${what} rejected with ${describeThrown(outcome.error)}`);
  }
  throw new Finding('no write wins after an aborted one');
}
