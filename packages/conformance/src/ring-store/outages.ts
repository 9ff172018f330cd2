import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import {
  expectUnavailable,
  isConflict,
  isFailure,
  type RingStoreChecks,
  type RingStoreTrial,
  revisionOf,
} from './trial.ts';

/** The caller's deadline, milliseconds; a store may have a shorter one of its own. */
const DEADLINE_MS = 8_000;
const SHORT_DEADLINE_MS = 500;
/** Longest time between a deadline and the end of its call, milliseconds. */
const SLACK_MS = 10_000;
/** What is sent again after an outage has arrived, milliseconds. */
const SENT_AGAIN_MS = 1_000;
/** A call under way gets this far before the outage, milliseconds. */
const UNDER_WAY_MS: readonly number[] = [0, 0.5, 1, 2];

export const OUTAGE_CHECKS: RingStoreChecks = {
  'RING-ABORT-ENDS': async (trial) => {
    trial.expectAble('breakConnection');
    const name = trial.freshName();
    const [store, unused] = await trial.openPair(name);
    const revision = await trial.write(store, 'one', undefined);
    await trial.breakConnection();
    await allUnavailable(trial, SHORT_DEADLINE_MS, callsOf(store, unused, 'two', revision));
  },
  'RING-UNREACHABLE': async (trial) => {
    trial.expectAble('breakConnection');
    const name = trial.freshName();
    const store = await trial.open(name);
    const revision = await trial.write(store, 'one', undefined);
    const [unused, creator] = await trial.openPair(name);
    const [absent, first] = await trial.openPair();
    // What was read before is no answer while nobody can be asked.
    await trial.expectStored(store, 'one', revision, 'a read before the outage');
    await trial.breakConnection();
    await allUnavailable(trial, DEADLINE_MS, [
      ['a read', (signal) => store.read({ signal })],
      ['a second read', (signal) => store.read({ signal })],
      ['a first read', (signal) => unused.read({ signal })],
      ['a read of an absent ring', (signal) => absent.read({ signal })],
      ['a write', (signal) => store.write('two', { expected: revision, signal })],
      ['a write that would create a ring', (signal) => first.write('two', { expected: undefined, signal })],
      ['the same where a ring is', (signal) => creator.write('two', { expected: undefined, signal })],
    ]);
  },
  'RING-RECOVERS': async (trial) => {
    trial.expectAble('breakConnection');
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const idle = await trial.open(name);
    const revision = await trial.write(store, 'one', undefined);
    await trial.read(idle);
    await trial.breakConnection();
    await allUnavailable(trial, DEADLINE_MS, [
      ['a read', (signal) => other.read({ signal })],
      ['a write', (signal) => store.write('two', { expected: revision, signal })],
    ]);
    await trial.mend();
    const stores = { 'the store that wrote': store, 'another store': other, 'a store that was not used': idle };
    for (const [what, one] of Object.entries(stores)) {
      await trial.until(() => readsAgain(one), `${what} did not read again after the outage`);
      const found = await trial.read(one, 'a read after an outage');
      // A write that ended as unavailable may have been done all the same; nothing else may have happened.
      const isOld = found?.document === 'one' && found.revision === revision;
      const isNew = found?.document === 'two' && found.revision !== revision;
      expectThat(isOld || isNew, `after an outage ${what} finds neither what was there nor what was written meanwhile`);
    }
    for (const [what, one] of Object.entries(stores)) {
      await trial.until(async () => (await writeAgain(one, `${what} again`)) !== undefined, `${what} did not write`);
    }
  },
  'RING-OUTAGE-LATER': async (trial) => {
    trial.expectAble('breakConnection');
    const [store, other] = await trial.openPair();
    const [creator, afterwards] = await trial.openPair();
    const revision = await trial.write(store, 'one', undefined);
    await trial.breakConnection();
    await allUnavailable(trial, SHORT_DEADLINE_MS, [
      ['a write', (signal) => store.write('two', { expected: revision, signal })],
      ['a write that would create a ring', (signal) => creator.write('two', { expected: undefined, signal })],
    ]);
    await trial.mend();
    const later: (readonly [reader: RingStore, written: string | undefined])[] = [];
    for (const [writer, reader] of [
      [other, store],
      [afterwards, creator],
    ] as const) {
      let written: string | undefined;
      await trial.until(async () => {
        written = await writeAgain(writer, 'three');
        return written !== undefined;
      }, 'nothing could be written after the outage');
      await trial.until(() => readsAgain(reader), 'the store that wrote did not read again after the outage');
      await trial.expectStored(reader, 'three', written, 'a read after the outage');
      later.push([reader, written]);
    }
    await pause(SENT_AGAIN_MS);
    for (const [reader, written] of later) {
      await trial.expectStored(reader, 'three', written, 'a later read after the outage');
    }
  },
  'RING-OUTAGE-UNDER-WAY': async (trial) => {
    trial.expectAble('breakConnection');
    for (const waitMs of UNDER_WAY_MS) await interrupt(trial, waitMs);
  },
};

/** Calls during which the backend goes out of reach, and what is found after it. */
async function interrupt(trial: RingStoreTrial, waitMs: number): Promise<void> {
  const [store, creator] = await trial.openPair();
  const absent = await trial.open();
  const revision = await trial.write(store, 'one', undefined);
  const signal = AbortSignal.timeout(SHORT_DEADLINE_MS);
  const calls = trial.all([
    trial.promised(() => creator.read({ signal }), 'a read'),
    trial.promised(() => store.write('two', { expected: revision, signal }), 'a write'),
    trial.promised(() => absent.write('two', { expected: undefined, signal }), 'a write that creates a ring'),
  ]);
  // It is waited for below; until then nobody handles it.
  calls.catch(() => undefined);
  const began = performance.now();
  while (performance.now() - began < waitMs) await new Promise((resolve) => setImmediate(resolve));
  await trial.breakConnection();
  const [read, write, create] = (await calls) as [Outcome, Outcome, Outcome];
  await trial.mend();
  for (const one of [read, write, create]) {
    if ('error' in one) expectUnavailable(one.error, 'a call that an outage interrupts');
  }
  if ('value' in read) {
    const found = read.value as { readonly document?: unknown } | undefined;
    expectThat(
      found?.document === 'one' || found?.document === 'two',
      'a read that an outage interrupts found another document',
    );
  }
  for (const [one, outcome, before] of [
    [store, write, 'one'],
    [absent, create, undefined],
  ] as const) {
    await trial.until(() => readsAgain(one, true), 'a store did not read again after the outage');
    const found = await trial.read(one, 'a read after the outage');
    if ('value' in outcome) {
      const isThere = found?.document === 'two' && found.revision === revisionOf(outcome.value, 'a write');
      expectThat(isThere, 'a write that an outage interrupts resolved, and a read does not find it');
    } else expectThat(found?.document === before || found?.document === 'two', 'an outage left another document');
  }
}

/** Whether a store reads, and finds a ring unless there need be none. */
async function readsAgain(store: RingStore, mayBeAbsent = false): Promise<boolean> {
  try {
    return (await store.read({ signal: AbortSignal.timeout(DEADLINE_MS) })) !== undefined || mayBeAbsent;
  } catch {
    return false;
  }
}

/** @returns the revision, or `undefined` while the store cannot write. */
async function writeAgain(store: RingStore, document: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  try {
    const found = await store.read({ signal });
    const { revision } = await store.write(document, { expected: found?.revision, signal });
    return revision;
  } catch (error) {
    if (isConflict(error) || isFailure(error, 'unavailable')) return undefined;
    throw new Finding(`a call after the outage rejected with ${describeThrown(error)}`);
  }
}

async function allUnavailable(
  trial: RingStoreTrial,
  deadlineMs: number,
  calls: readonly SignalledCall[],
): Promise<void> {
  const slackMs = Math.min(SLACK_MS, trial.patienceMs);
  for (const [what, outcome] of await outOfReach(trial, deadlineMs, slackMs, calls)) {
    expectThat(outcome !== undefined, `${what} had not ended ${slackMs} ms after its signal aborted`);
    if ('value' in outcome) {
      const says = outcome.value === undefined ? ': it says that the ring is absent' : '';
      throw new Finding(`${what} resolved${says}`);
    }
    expectUnavailable(outcome.error, what);
  }
}

export type SignalledCall = readonly [what: string, call: (signal: AbortSignal) => unknown];

/** Calls of a store that has been used, and of one that has not. */
export function callsOf(
  store: RingStore,
  unused: RingStore,
  document: string,
  expected: string,
): readonly SignalledCall[] {
  return [
    ['a read', (signal) => store.read({ signal })],
    ['a write', (signal) => store.write(document, { expected, signal })],
    ['a first read', (signal) => unused.read({ signal })],
    ['a first write', (signal) => unused.write(document, { expected, signal })],
  ];
}

/** How calls end while nobody answers; nothing where one has not ended soon after its deadline. */
export function outOfReach(
  trial: RingStoreTrial,
  deadlineMs: number,
  slackMs: number,
  calls: readonly SignalledCall[],
): Promise<readonly (readonly [what: string, outcome: Outcome | undefined])[]> {
  return trial.all(
    calls.map(async ([what, call]) => {
      const ended = trial.promised(() => call(AbortSignal.timeout(deadlineMs)), what);
      const outcome = await Promise.race([ended, pause(deadlineMs + slackMs, undefined, { ref: false })]);
      return [`${what} out of reach of the backend`, outcome] as const;
    }),
  );
}
