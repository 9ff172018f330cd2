import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore, StoredRing } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import { type Moment, moments } from './moments.ts';
import { callsOf, outOfReach, type SignalledCall } from './reach.ts';
import { expectDoneOrNot, expectOneOf, isConflict, isFailure, revisionOf } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

/** The caller's deadline, in milliseconds. A store may have a shorter one. */
const DEADLINE_MS = 8_000;
const SHORT_DEADLINE_MS = 500;
/** Several deadlines: if a store has its own deadline, that deadline cannot match all of them. */
const DEADLINES_MS: readonly number[] = [100, 200, 500];
/** Maximum time between a deadline and the end of its call, in milliseconds. */
const SLACK_MS = 10_000;
/** Number of consecutive failing calls of a store. */
const FAILURES = 4;
/** How long to wait until a retried write has arrived after an outage, in milliseconds. */
const SENT_AGAIN_MS = 1_000;
const LEAST_BRIEF = 16;
/** The shortest outage after which a store may retry, in milliseconds. */
const BRIEF_MS = 5;

export const OUTAGE_CHECKS: RingStoreChecks = {
  'RING-ABORT-ENDS': async (trial) => {
    const [store, unused, control, unusedControl] = await trial.openMany(4);
    const revision = await trial.write(store, 'one', undefined);
    const controls = callsOf(control, unusedControl, 'two', revision);
    await trial.breakConnection();
    const ignored = new Map<string, number>();
    for (const deadlineMs of DEADLINES_MS) {
      const calls = callsOf(store, unused, 'two', revision).map(([what, call], i): SignalledCall => {
        // A control call, whose signal never aborts, starts first. If it ends at the same time as this call, the store
        // ignored the signal of this call.
        const compared = (signal: AbortSignal): unknown => {
          let isOver = false;
          let wasOver = false;
          void trial.settle(() => controls[i]?.[1](new AbortController().signal), what).then(() => (isOver = true));
          signal.addEventListener('abort', () => (wasOver = isOver));
          return Promise.resolve(call(signal)).finally(() => {
            if (signal.aborted && isOver && !wasOver) ignored.set(what, (ignored.get(what) ?? 0) + 1);
          });
        };
        return [what, compared];
      });
      await allUnavailable(trial, deadlineMs, calls);
    }
    for (const [what, times] of ignored) {
      expectThat(times < DEADLINES_MS.length, `${what} with an aborted signal ended no earlier than one without`);
    }
  },
  'RING-UNREACHABLE': async (trial) => {
    const [store, unused, creator, loser] = await trial.openMany(4);
    // While the backend is unreachable, the store must return neither of these two documents.
    const revision = await trial.write(store, 'one', await trial.write(store, 'zero', undefined));
    const [absent, first, known] = await trial.openMany();
    // The store must not answer a read with data from a write conflict.
    await trial.expectConflict(loser, undefined, 'a write that would create the ring');
    // This read fills any cache, which the store must not use for answers while the backend is unreachable.
    await trial.expectStored(store, 'one', revision, 'a read before the outage');
    await trial.expectAbsent(known, 'a read of an absent ring before the outage');
    await trial.breakConnection();
    let dates = 0;
    const onServiceDate = (): void => void dates++;
    await allUnavailable(trial, DEADLINE_MS, [
      ['a read', (signal) => store.read({ signal, onServiceDate })],
      ['a second read', (signal) => store.read({ signal })],
      ['a first read', (signal) => unused.read({ signal })],
      ['a read after a write conflict', (signal) => loser.read({ signal })],
      ['a read of an absent ring', (signal) => absent.read({ signal })],
      ['a second read of an absent ring', (signal) => known.read({ signal })],
      ['a write', (signal) => store.write('two', { expected: revision, signal, onServiceDate })],
      ['a write that would create a ring', (signal) => first.write('two', { expected: undefined, signal })],
      ['a write that would create an existing ring', (signal) => creator.write('two', { expected: undefined, signal })],
    ]);
    expectThat(dates === 0, 'onServiceDate was called although the backend did not answer');
  },
  'RING-RECOVERS': async (trial) => {
    const [store, other, idle] = await trial.openMany();
    const creator = await trial.open();
    const revision = await trial.write(store, 'one', undefined);
    await trial.read(idle);
    await trial.breakConnection();
    const twos: SignalledCall = ['a write', (signal) => store.write('two', { expected: revision, signal })];
    // A store that gives up after several failures must become usable again.
    for (let i = 0; i < FAILURES; i++) {
      const reads: SignalledCall = ['a read', (signal) => other.read({ signal })];
      const creates: SignalledCall = ['the same', (signal) => creator.write('two', { expected: undefined, signal })];
      await allUnavailable(trial, i === 0 ? DEADLINE_MS : SHORT_DEADLINE_MS, [reads, twos, creates]);
    }
    await trial.mend();
    const stores = { 'the store that wrote': store, 'another store': other, 'a store that was not used': idle };
    for (const [what, one] of Object.entries(stores)) {
      const found = await readAgain(trial, one, what);
      // A write that ended as unavailable may have been applied; nothing else may have changed.
      expectDoneOrNot(found, { document: 'one', revision }, 'two', { error: undefined }, 'a write in an outage');
    }
    for (const [what, one] of Object.entries({ ...stores, 'a store that would create a ring': creator })) {
      const document = `${what} again`;
      const ring = { document, revision: await writeAgain(trial, one, document, what) };
      // The first write after a failure must also be stored whole.
      for (const reader of one === creator ? [one] : [one, store]) {
        expectOneOf(await readAgain(trial, reader, what), [ring], `a read after ${what} wrote again`);
      }
    }
  },
  'RING-OUTAGE-LATER': async (trial) => {
    const [store, other] = await trial.openPair();
    const [creator, afterwards] = await trial.openPair();
    const revision = await trial.write(store, 'one', undefined);
    await trial.breakConnection();
    await allUnavailable(trial, SHORT_DEADLINE_MS, [
      ['a write', (signal) => store.write('two', { expected: revision, signal })],
      ['a write that would create a ring', (signal) => creator.write('two', { expected: undefined, signal })],
    ]);
    await trial.mend();
    const later: (readonly [reader: RingStore, written: string])[] = [];
    for (const [writer, reader] of [
      [other, store],
      [afterwards, creator],
    ] as const) {
      const written = await writeAgain(trial, writer, 'three', 'another store');
      const found = await readAgain(trial, reader, 'the store that wrote');
      expectOneOf(found, [{ document: 'three', revision: written }], 'the first read after the outage');
      await trial.expectStored(reader, 'three', written, 'a read after the outage');
      later.push([reader, written]);
    }
    await pause(SENT_AGAIN_MS);
    for (const [reader, written] of later) {
      await trial.expectStored(reader, 'three', written, 'a later read after the outage');
    }
  },
  'RING-OUTAGE-UNDER-WAY': async (trial) => {
    const timed = await trial.open();
    let revision: string | undefined;
    let tookMs = 0;
    const measured = await moments(async () => {
      const began = performance.now();
      revision = await trial.write(timed, 'timed', revision);
      tookMs = performance.now() - began;
    });
    const every = (step: number): readonly Moment[] => measured.filter((_, i) => i % step === 0);
    for (const moment of every(5)) await interrupt(trial, moment, undefined, false);
    // The outage lasts at least as long as a call, so that it hits every call.
    const briefMs = Math.max(BRIEF_MS, tookMs);
    const brief = [every(5), every(2)].flat().flatMap((moment) => [true, false].map((is) => [moment, is] as const));
    for (const [moment, isContested] of trial.inTime(brief, LEAST_BRIEF)) {
      await interrupt(trial, moment, briefMs, isContested);
    }
  },
};

/**
 * Makes the backend unreachable during calls, and reads the ring afterwards.
 *
 * @param briefMs - Duration of the outage, in milliseconds; a store may retry during it. If undefined, the outage lasts
 * until the calls have ended.
 * @param isContested - Whether another store then writes with the same expectation.
 */
async function interrupt(
  trial: RingStoreTrial,
  moment: Moment,
  briefMs: number | undefined,
  isContested: boolean,
): Promise<void> {
  const [store, other] = await trial.openPair();
  const [absent, creator] = await trial.openPair();
  const one = { document: 'one', revision: await trial.write(store, 'one', undefined) };
  const signal = AbortSignal.timeout(briefMs === undefined ? SHORT_DEADLINE_MS : DEADLINE_MS);
  const begin = (by: RingStore, document: string, expected: string | undefined): Promise<Outcome> =>
    trial.promised(() => by.write(document, { expected, signal }), 'a write');
  const began = performance.now();
  const calls = trial.all([
    trial.promised(() => other.read({ signal }), 'a read'),
    begin(store, 'two', one.revision),
    begin(absent, 'two', undefined),
  ]);
  // This promise is awaited below. The handler prevents an unhandled rejection until then.
  calls.catch(() => undefined);
  await moment(began);
  await trial.breakConnection();
  if (briefMs !== undefined) {
    await pause(briefMs);
    await trial.mend();
  }
  const rivals = isContested
    ? await trial.all([begin(other, 'three', one.revision), begin(creator, 'three', undefined)])
    : [];
  const [read, write, create] = (await calls) as [Outcome, Outcome, Outcome];
  await trial.mend();
  const what = 'that an outage interrupts';
  if ('error' in read) trial.expectUnavailable(read.error, `a read ${what}`);
  else
    expectOneOf(
      read.value,
      [one, { document: 'two' }, ...(isContested ? [{ document: 'three' }] : [])],
      `a read ${what}`,
    );
  for (const [interrupted, outcome, before, rival] of [
    [store, write, one, rivals[0]],
    [absent, create, undefined, rivals[1]],
  ] as const) {
    const found = await readAgain(trial, interrupted, 'a store', before === undefined);
    const name = `a write ${what}`;
    const hasLost = rival !== undefined && ('value' in rival || !isConflict(rival.error));
    if ('error' in outcome && !(hasLost && isConflict(outcome.error))) trial.expectUnavailable(outcome.error, name);
    // A rival write that was reported as unavailable may have won anyway.
    if (rival === undefined || !hasLost) expectDoneOrNot(found, before, 'two', outcome, name);
    else if ('value' in rival) {
      expectThat('error' in outcome, `${name} won, and so did another write with the same expectation`);
      expectOneOf(found, [{ document: 'three', revision: revisionOf(rival.value, 'a write') }], `a read after ${name}`);
    }
  }
}

/** Reads until the backend is reachable again. A stored ring must never be reported as absent. */
async function readAgain(
  trial: RingStoreTrial,
  store: RingStore,
  what: string,
  mayBeAbsent = false,
): Promise<StoredRing | undefined> {
  const isThere = (ring: StoredRing | undefined): boolean => ring !== undefined || mayBeAbsent;
  return again(trial, `${what} did not read again after the outage`, async (signal) => {
    const found = await store.read({ signal });
    expectThat(isThere(found), `${what} reports the ring as absent after the outage`);
    return { found };
  }).then(({ found }) => found);
}

async function writeAgain(trial: RingStoreTrial, store: RingStore, document: string, what: string): Promise<string> {
  return again(trial, `${what} did not write again after the outage`, async (signal) => {
    const found = await store.read({ signal });
    return (await store.write(document, { expected: found?.revision, signal })).revision;
  });
}

/**
 * Repeats a call until it succeeds. While the backend recovers, calls may fail, and earlier writes of others may
 * arrive.
 */
async function again<T>(trial: RingStoreTrial, finding: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  let done: { readonly value: T } | undefined;
  await trial.until(async () => {
    try {
      done = { value: await call(AbortSignal.timeout(DEADLINE_MS)) };
    } catch (error) {
      if (error instanceof Finding) throw error;
      if (!isConflict(error) && !isFailure(error, 'unavailable')) {
        throw new Finding(`a call after the outage rejected with ${describeThrown(error)}`);
      }
    }
    return done !== undefined;
  }, finding);
  return (done as { readonly value: T }).value;
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
      const says = outcome.value === undefined ? ': it reports the ring as absent' : '';
      throw new Finding(`${what} resolved${says}`);
    }
    trial.expectUnavailable(outcome.error, what);
  }
}
