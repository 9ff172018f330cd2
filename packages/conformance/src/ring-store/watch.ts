import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';
import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { kindOf, nameOf, type RingStoreTrial } from './trial.ts';

/** A subscription takes a moment, and may tell of itself; milliseconds. */
const SETTLING_MS = 500;
/** After its end, what was on its way has come; milliseconds. */
const LAST_WORDS_MS = 200;

/** Push: an optimisation, which still has to tell the truth. */
export const WATCH_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-WATCH-HEARS',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const watchers = [watch(trial, store), watch(trial, store)];
      let revision: string | undefined;
      for (const document of ['one', 'two']) {
        await pause(SETTLING_MS);
        for (const watcher of watchers) watcher.heard = 0;
        revision = await trial.write(other, document, revision);
        for (const [i, watcher] of watchers.entries()) {
          await trial.until(() => watcher.heard > 0, `watcher ${i + 1} did not hear of what another store wrote`);
        }
      }
      for (const watcher of watchers) watcher.end();
    },
  },
  {
    id: 'RING-WATCH-ENDS',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const [ended, going] = [watch(trial, store), watch(trial, store)];
      await pause(SETTLING_MS);
      const revision = await trial.write(other, 'one', undefined);
      await trial.until(() => going.heard > 0, 'a watcher did not hear of what another store wrote');
      ended.end();
      await pause(LAST_WORDS_MS);
      ended.heard = 0;
      going.heard = 0;
      await trial.write(other, 'two', revision);
      await trial.until(() => going.heard > 0, 'a watcher hears nothing since another one unsubscribed');
      // Whoever is told, is told about now.
      await pause(LAST_WORDS_MS);
      expectThat(ended.heard === 0, 'a watcher that unsubscribed was told of a write');
      ended.end();
      going.end();
    },
  },
  {
    id: 'RING-WATCH-ARGUMENT',
    async run(trial) {
      const store = await trial.open();
      if (!hasPush(trial, store)) throw new NotApplicable('the store has no push');
      for (const given of ['x', null, {}]) {
        const what = `watch with ${kindOf(given)}`;
        let end: unknown;
        try {
          end = (store.watch as unknown as (changed: unknown) => unknown).call(store, given);
        } catch (error) {
          expectThat(error instanceof Error && error.name === 'TypeError', `${what} threw ${nameOf(error)}`);
          continue;
        }
        if (typeof end === 'function') Reflect.apply(end, undefined, []);
        throw new Finding(`${what} was taken`);
      }
    },
  },
  {
    id: 'RING-WATCH-DECLARED',
    async run(trial) {
      const { push } = trial.subject.supports;
      if (push !== false) throw new NotApplicable('supports.push is not denied');
      const store = await trial.open();
      expectThat(store.watch === undefined, 'supports.push is false, and the store has watch');
    },
  },
];

/** Whether watch is claimed: where the target says nothing, a store that has it claims it. */
function hasPush(trial: RingStoreTrial, store: RingStore): boolean {
  const { push = store.watch !== undefined } = trial.subject.supports;
  if (push) expectThat(store.watch !== undefined, 'supports.push is true, and the store has no watch');
  return push;
}

/** Counts what it hears. */
interface Watcher {
  heard: number;
  end(): void;
}

function watch(trial: RingStoreTrial, store: RingStore): Watcher {
  if (!hasPush(trial, store)) throw new NotApplicable('the store has no push');
  const watcher = { heard: 0, end: () => undefined };
  const end: unknown = store.watch?.(() => void watcher.heard++);
  expectThat(typeof end === 'function', `watch returned ${kindOf(end)}, not what ends it`);
  return Object.assign(watcher, { end: () => void Reflect.apply(end, undefined, []) });
}
