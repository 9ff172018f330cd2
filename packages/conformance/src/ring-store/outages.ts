import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';
import { type Check, expectThat, Finding } from '../requirement.ts';
import { isFailure, nameOf, type RingStoreTrial } from './trial.ts';

/** The caller's deadline, milliseconds; a store may have a shorter one of its own. */
const DEADLINE_MS = 8_000;
const SHORT_DEADLINE_MS = 500;
/** Longest time between a deadline and the end of its call, milliseconds. */
const SLACK_MS = 10_000;

/** A backend that cannot be reached, and one that comes back. */
export const OUTAGE_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-ABORT-ENDS',
    async run(trial) {
      trial.expectBreakable();
      const store = await trial.open();
      const revision = await trial.write(store, 'one', undefined);
      await trial.breakConnection();
      await expectUnavailable(trial, SHORT_DEADLINE_MS, [
        ['a read', (signal) => store.read({ signal })],
        ['a write', (signal) => store.write('two', { expected: revision, signal })],
      ]);
    },
  },
  {
    id: 'RING-UNREACHABLE',
    async run(trial) {
      trial.expectBreakable();
      const name = trial.freshName();
      const store = await trial.open(name);
      const revision = await trial.write(store, 'one', undefined);
      const [unused, absent] = [await trial.open(name), await trial.open()];
      // What was read before is no answer while nobody can be asked.
      await trial.expectStored(store, 'one', revision, 'a read before the outage');
      await trial.breakConnection();
      await expectUnavailable(trial, DEADLINE_MS, [
        ['a read', (signal) => store.read({ signal })],
        ['a first read', (signal) => unused.read({ signal })],
        ['a read of an absent ring', (signal) => absent.read({ signal })],
        ['a write', (signal) => store.write('two', { expected: revision, signal })],
        ['a foundation', (signal) => absent.write('two', { expected: undefined, signal })],
        ['a foundation where a ring is', (signal) => unused.write('two', { expected: undefined, signal })],
      ]);
    },
  },
  {
    id: 'RING-RECOVERS',
    async run(trial) {
      trial.expectBreakable();
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const revision = await trial.write(store, 'one', undefined);
      await trial.breakConnection();
      await expectUnavailable(trial, DEADLINE_MS, [
        ['a read', (signal) => other.read({ signal })],
        ['a write', (signal) => store.write('two', { expected: revision, signal })],
      ]);
      await trial.mend();
      for (const [what, one] of Object.entries({ 'the store that wrote': store, 'another store': other })) {
        await trial.until(() => readsAgain(one), `${what} did not read again after the outage`);
        const found = await trial.read(one, 'a read after an outage');
        // A write that ended as unavailable may have been done all the same; nothing else may have happened.
        const isOld = found?.document === 'one' && found.revision === revision;
        const isNew = found?.document === 'two' && found.revision !== revision;
        expectThat(
          isOld || isNew,
          `after an outage ${what} finds neither what was there nor what was written meanwhile`,
        );
      }
      await trial.until(() => writesAgain(other), 'nothing could be written after the outage');
    },
  },
];

async function readsAgain(store: RingStore): Promise<boolean> {
  try {
    return (await store.read({ signal: AbortSignal.timeout(DEADLINE_MS) })) !== undefined;
  } catch {
    return false;
  }
}

async function writesAgain(store: RingStore): Promise<boolean> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  try {
    const found = await store.read({ signal });
    await store.write('three', { expected: found?.revision, signal });
    return true;
  } catch {
    return false;
  }
}

/** All at once: each waits for its deadline. */
async function expectUnavailable(
  trial: RingStoreTrial,
  deadlineMs: number,
  calls: readonly (readonly [string, (signal: AbortSignal) => unknown])[],
): Promise<void> {
  const slackMs = Math.min(SLACK_MS, trial.patienceMs);
  const ended = await Promise.allSettled(
    calls.map(async ([what, call]) => {
      const outcome = await Promise.race([
        trial.outcome(() => call(AbortSignal.timeout(deadlineMs)), what),
        pause(deadlineMs + slackMs, undefined, { ref: false }),
      ]);
      if (outcome === undefined) {
        throw new Finding(`${what} out of reach of the backend had not ended ${slackMs} ms after its signal aborted`);
      }
      if (outcome.status === 'resolved') {
        const says = outcome.value === undefined ? ': it says that the ring is absent' : '';
        throw new Finding(`${what} out of reach of the backend resolved${says}`);
      }
      const { error } = outcome;
      expectThat(isFailure(error, 'unavailable'), `${what} out of reach of the backend rejected with ${nameOf(error)}`);
    }),
  );
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}
