import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import type { Outcome } from '../trial.ts';
import { type Moment, moments } from './moments.ts';
import { labelled } from './sizes.ts';
import { expectDoneOrNot, expectOneOf } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

const MOST_TRIES = 20;
/** How long to wait for an aborted write that may still arrive, in milliseconds. */
const LATE_MS = 500;
/** Length of a document that a fast store writes in one step, in bytes. */
const SHORT = 500;

/** Reasons for an abort. The reason must make no difference. */
const REASONS: readonly unknown[] = [
  undefined,
  new DOMException('the deadline has passed', 'TimeoutError'),
  new Error('the caller has disconnected'),
  'a text',
  null,
];

/** Reasons of the store's own classes: a store must distinguish its own errors from those of the caller. */
async function ownReasons(trial: RingStoreTrial): Promise<readonly unknown[]> {
  const store = await trial.open();
  await trial.write(store, 'one', undefined);
  const tooLong = 'x'.repeat(trial.supports.maxDocumentBytes + 1);
  const failing = [() => store.write('two', { expected: undefined }), () => store.write(tooLong, { expected: 'x' })];
  const outcomes = await trial.all(failing.map((call) => trial.promised(call, 'a write')));
  return outcomes.flatMap((one) => ('error' in one ? [one.error] : []));
}

export const ABORT_CHECKS: RingStoreChecks = {
  'RING-ABORTED': async (trial) => {
    const stores = await trial.openPair();
    const [store] = stores;
    const own = await ownReasons(trial);
    let current: StoredRing | undefined;
    for (const document of [undefined, 'one']) {
      if (document !== undefined) {
        current = { document, revision: await trial.write(store, document, undefined) };
        await trial.expectFound(store, current, 'a read');
      }
      for (const reason of [...REASONS, ...own]) {
        const signal = AbortSignal.abort(reason);
        const where = current === undefined ? 'an absent ring' : 'a ring';
        await trial.expectFailure(() => store.read({ signal }), 'unavailable', `an aborted read of ${where}`);
        for (const expected of new Set([undefined, current?.revision])) {
          const write = (): unknown => store.write('never', { expected, signal });
          await trial.expectFailure(write, 'unavailable', `an aborted write over ${where}`);
        }
      }
      if (current !== undefined) await pause(LATE_MS);
      for (const one of stores) await trial.expectFound(one, current, 'a read after aborted writes');
    }
    const options = { signal: new AbortController().signal };
    await trial.read(store, 'a read with a signal that does not abort', options);
    await trial.write(store, 'two', current?.revision, 'a write with a signal that does not abort', options);
  },
  'RING-ABORT-READ': async (trial) => {
    const [store, other] = await trial.openPair();
    let current: StoredRing | undefined;
    for (const document of [undefined, 'one', labelled(trial.supports.maxDocumentBytes)]) {
      if (document !== undefined) {
        current = { document, revision: await trial.write(other, document, current?.revision) };
      }
      const what = `a read aborted in progress, of ${current === undefined ? 'an absent ring' : 'a ring'},`;
      const found = (when: string): Promise<void> => trial.expectFound(store, current, when);
      for (const [i, moment] of (await moments(() => found('a read'))).entries()) {
        // In every other round, no read starts before the aborted one.
        const before = i % 2 === 0 ? undefined : found('a read started before an aborted one');
        const aborted = abortedCall(trial, moment, (signal) => store.read({ signal }), what);
        // A store may keep only its latest call in a field, so in some rounds no read starts after the aborted one.
        const after = i % 4 === 1 ? undefined : found('a read started after an aborted one');
        await trial.all<unknown>([Promise.resolve(before), Promise.resolve(after), aborted]);
        const outcome = await aborted;
        if ('error' in outcome) trial.expectUnavailable(outcome.error, what);
        // The read may finish before the abort, but must return the current ring.
        else expectOneOf(outcome.value, [current], what);
        if (after !== undefined || document !== 'one') await found('a read after an aborted read');
        if (document !== 'one') continue;
        // The response to an aborted read must not be used as the answer to another read.
        current = { document: `${i}`, revision: await trial.write(other, `${i}`, current?.revision) };
        await found('a read after an aborted read and a write');
      }
    }
    await trial.write(store, 'two', current?.revision, 'a write after aborted reads');
  },
  // A busy machine may miss a moment, so each moment is tried several times with a fast store.
  'RING-ABORT-WRITE': async (trial) => {
    for (const length of [SHORT, trial.supports.maxDocumentBytes]) {
      const stores = await trial.openPair();
      let revision = await trial.write(stores[0], 'start', undefined);
      const measured = await moments(async () => {
        revision = await trial.write(stores[0], labelled(length), revision);
      });
      let i = 0;
      for (const moment of trial.inTime(
        length === SHORT ? [...measured, ...measured, ...measured] : measured,
        measured.length,
      )) {
        i += 1;
        const before = { document: `before ${i}`, revision: await trial.write(stores[0], `before ${i}`, revision) };
        revision = await abortWrite(trial, stores, before, `${i}: ${labelled(length)}`.slice(0, length), moment);
      }
      await trial.write(stores[0], 'end', revision, 'a write after aborted writes');
    }
  },
  'RING-ABORT-CREATE': async (trial) => {
    const measured = await moments(async () => {
      const store = await trial.open();
      return async () => trial.write(store, 'timed', undefined);
    });
    for (const moment of trial.inTime([...measured, ...measured, ...measured], measured.length)) {
      const pair = await trial.openPair();
      await abortWrite(trial, pair, undefined, 'created', moment);
      // A database allows few connections, so the stores are closed early.
      await trial.all(pair.map((store) => trial.closeEarly(store)));
    }
  },
  'RING-ABORT-OTHERS': async (trial) => {
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
      // One of two concurrent writes may lose, but must not fail in any other way.
      const beside = trial.attempt(store, `beside ${i}`, revision, what);
      const write = (signal: AbortSignal) => store.write(`aborted ${i}`, { expected: revision, signal });
      const aborted = abortedCall(trial, moment, write, what);
      const after = trial.read(store, what);
      const written = trial.write(elsewhere, `elsewhere ${i}`, other, what);
      await trial.all<unknown>([before, beside, aborted, after, written]);
      other = await written;
      revision = await supersede(trial, store, `after ${i}`);
    }
  },
  'RING-SIGNAL-LEFT': async (trial) => {
    const store = await trial.open();
    const { signal } = new AbortController();
    const controller = new AbortController();
    const revision = await trial.write(store, 'one', undefined, 'a write', { signal });
    const calls: readonly (readonly [what: string, signal: AbortSignal, call: () => unknown])[] = [
      ['a read', signal, () => store.read({ signal })],
      ['a write', signal, () => store.write('two', { expected: revision, signal })],
      ['a write that conflicts', signal, () => store.write('three', { expected: undefined, signal })],
      ['an aborted read', controller.signal, () => store.read({ signal: controller.signal })],
    ];
    for (const [what, of, call] of calls) {
      const ended = trial.promised(call, what);
      if (of === controller.signal) controller.abort();
      await ended;
      await pause(1);
      const { length } = getEventListeners(of, 'abort');
      expectThat(length === 0, `after ${what}, ${length} listeners are left on its signal`);
    }
  },
};

async function abortedCall(
  trial: RingStoreTrial,
  moment: Moment,
  call: (signal: AbortSignal) => unknown,
  what: string,
): Promise<Outcome> {
  const controller = new AbortController();
  const began = performance.now();
  const ended = trial.promised(() => call(controller.signal), what);
  // This promise is awaited below. The handler prevents an unhandled rejection until then.
  ended.catch(() => undefined);
  await moment(began);
  controller.abort(REASONS[trial.random.below(REASONS.length)]);
  return ended;
}

/** Aborts one write and checks the store after it. @returns the current revision. */
async function abortWrite(
  trial: RingStoreTrial,
  [store, other]: readonly [RingStore, RingStore],
  before: StoredRing | undefined,
  document: string,
  moment: Moment,
): Promise<string> {
  const name = 'a write aborted in progress';
  const expected = before?.revision;
  const outcome = await abortedCall(trial, moment, (signal) => store.write(document, { expected, signal }), name);
  if ('error' in outcome) trial.expectUnavailable(outcome.error, name);
  const found = await trial.read(other, `a read after ${name}`);
  expectDoneOrNot(found, before, document, outcome, name);
  const revision = await supersede(trial, other, 'after');
  await trial.expectStored(store, 'after', revision, `a read after ${name}, on its connection,`);
  return revision;
}

/** Replaces the stored document. The aborted write may arrive before that, but not after it. */
async function supersede(trial: RingStoreTrial, store: RingStore, document: string): Promise<string> {
  const what = 'a write after an aborted one';
  for (let i = 0; i < MOST_TRIES; i++) {
    const found = await trial.read(store, 'a read after an aborted write');
    const expected = found?.revision;
    const revision = await trial.attempt(store, document, expected, what);
    if (revision !== undefined) return revision;
  }
  throw new Finding('no write wins after an aborted one');
}
