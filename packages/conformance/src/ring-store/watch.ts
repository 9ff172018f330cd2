import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import { THROUGH_PIPE } from '../run.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { labelled } from './sizes.ts';
import { isConflict, isFailure } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

/** Time for a subscription to start, with at most one initial call, in milliseconds. */
const SETTLING_MS = 500;
/** Milliseconds to wait for calls in progress after a watcher has ended. */
const LAST_WORDS_MS = 200;
/**
 * Delays between a write and the end of a watcher, in milliseconds. At these moments, a call is on its way or due soon.
 */
const BRIEF_MS: readonly number[] = [0, 5, 10, 20, 40, 80, 150];
/** Interval of the writes that a reconnecting watcher must notice, in milliseconds. */
const WRITE_AGAIN_MS = 250;
/** Time within which a store notices a lost connection, in milliseconds. */
const OUTAGE_MS = 1_000;

/** Time without a write, in milliseconds, and the number of calls in it that are too many even for a watch that polls. */
const IDLE_MS = 1_000;
const MOST_IDLE = 25;

/** Documents that are written after the first three. */
const MORE_WRITES = ['four', 'five', 'six', 'seven'];
/** Number of watchers that are started and ended first; they must make room for others. */
const ENDED_WATCHERS = 32;

export const WATCH_CHECKS: RingStoreChecks = {
  'RING-WATCH-HEARS': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const watchers = [watch(trial, store), watch(trial, store), watch(trial, await trial.open(name))];
    const seen = new Set<string | undefined>();
    const look = async (): Promise<void> => void seen.add((await store.read().catch(() => undefined))?.document);
    const reader = watch(trial, store, () => void look());
    let revision: string | undefined;
    let watchersBefore = 0;
    for (const document of ['one', 'two', labelled(trial.supports.maxDocumentBytes), ...MORE_WRITES]) {
      // Watchers that were started since the last write need time to subscribe.
      await pause(watchers.length === watchersBefore ? LAST_WORDS_MS / 2 : SETTLING_MS);
      watchersBefore = watchers.length;
      for (const watcher of watchers) watcher.heard = 0;
      revision = await trial.write(other, document, revision);
      await trial.expectStored(store, document, revision, 'a read by a store that watches');
      for (const [i, watcher] of watchers.entries()) {
        await trial.until(() => watcher.heard > 0, `watcher ${i + 1} was not called after another store wrote`);
      }
      const late = 'no read that a watcher started from its callback returned the written document';
      await trial.until(() => seen.has(document), late);
      // A losing write notifies no watcher and ends none.
      await trial.expectConflict(store, undefined, 'a write that would create the ring');
      if (document === 'one') watchers.push(watch(trial, await trial.open(name)));
    }
    for (const watcher of [...watchers, reader]) watcher.end();
  },
  'RING-WATCH-REMOVED': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    let revision = await trial.write(other, 'one', undefined);
    const watcher = watch(trial, store);
    await pause(SETTLING_MS);
    await trial.remove(name);
    await pause(SETTLING_MS);
    for (const document of ['two', 'three']) {
      watcher.heard = 0;
      revision = await trial.write(other, document, document === 'two' ? undefined : revision);
      const when = document === 'two' ? 'that created the ring again' : 'that followed its re-creation';
      await trial.until(() => watcher.heard > 0, `a watcher of a removed ring was not called after the write ${when}`);
      await pause(LAST_WORDS_MS);
    }
    watcher.end();
  },
  'RING-WATCH-ENDS': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const closing = await trial.open(name);
    for (let i = 0; i < ENDED_WATCHERS; i++) watch(trial, store).end();
    const failures: unknown[] = [];
    let once: Watcher | undefined;
    once = watch(trial, store, () => {
      const own = once;
      // Another requirement checks what happens when a watcher is ended twice.
      once = undefined;
      try {
        own?.end();
      } catch (error) {
        failures.push(error);
      }
    });
    const next = watch(trial, store);
    const [ended, going, alone] = [watch(trial, store), watch(trial, store), watch(trial, store)];
    // Passing one function twice creates two watchers.
    const again = watch(trial, store, going.changed);
    const elsewhere = watch(trial, await trial.open(name));
    watch(trial, closing);
    const brief = BRIEF_MS.map((ms) => ({ ms, watcher: watch(trial, store) }));
    await pause(SETTLING_MS);
    let revision = await trial.write(other, 'one', undefined);
    // A call that is due when its watcher ends must be dropped.
    const ending = brief.map(async ({ ms, watcher }) => {
      await pause(ms);
      watcher.end();
      watcher.heard = 0;
    });
    await Promise.all(ending);
    let hasEnded = false;
    const expectCalled = async (when: string): Promise<void> => {
      for (const [what, watcher] of Object.entries({
        'a watcher': going,
        'a watcher on another connection': elsewhere,
      })) {
        await trial.until(() => watcher.heard > 0, `${what} was not called ${when}`);
      }
      // If an ended watcher is called, it is called at about this time.
      await pause(LAST_WORDS_MS);
      expectThat(!hasEnded || ended.heard === 0, 'an ended watcher was called after a write');
      for (const watcher of [ended, going, elsewhere]) watcher.heard = 0;
    };
    const late = 'a watcher was not called when the previous one was ended from its own callback';
    await trial.until(() => next.heard > 0, late);
    next.end();
    await expectCalled('after another store wrote');
    for (const [when, act] of [
      ['after another watcher had ended', () => [ended.end(), again.end()]],
      ['after another store that watched was closed', () => trial.closeEarly(closing)],
    ] as const) {
      await act();
      hasEnded = true;
      await pause(LAST_WORDS_MS);
      ended.heard = 0;
      revision = await trial.write(other, when, revision);
      await expectCalled(when);
      await trial.expectStored(store, when, revision, `a read ${when}`);
    }
    // The protocol of a pipe cannot call a closed store.
    if (store.close !== undefined && !(THROUGH_PIPE in trial.target)) {
      await trial.closesAgain(store);
      await pause(LAST_WORDS_MS);
      for (const watcher of [going, alone]) watcher.heard = 0;
      // Another requirement checks that closing one store leaves other stores usable.
      const isWritten = 'value' in (await trial.promised(() => other.write('end', { expected: revision }), 'a write'));
      const missed = 'a watcher was not called after another store was closed';
      if (isWritten) await trial.until(() => elsewhere.heard > 0, missed);
      await pause(LAST_WORDS_MS);
      expectThat(going.heard + alone.heard === 0, 'a watcher was called after its store was closed');
      await trial.answer(() => going.end(), 'ending a watcher after its store was closed');
    } else for (const watcher of [going, alone]) watcher.end();
    elsewhere.end();
    // Through a pipe, the program can still report a change before it learns that the watcher has ended.
    const isLate = !(THROUGH_PIPE in trial.target) && brief.some(({ watcher }) => watcher.heard > 0);
    expectThat(!isLate, 'a watcher that ended right after a write was called later');
    const thrown = describeThrown(failures[0]);
    expectThat(failures.length === 0, `ending a watcher from its own callback threw ${thrown}`);
  },
  'RING-WATCH-RECOVERS': async (trial) => {
    const [store, other, used] = await trial.openMany();
    const watchers = [watch(trial, store), watch(trial, used)];
    const ended = watch(trial, store);
    const expectCalled = (when: string): Promise<void> =>
      trial.until(async () => {
        await writeOnce(other);
        await pause(WRITE_AGAIN_MS);
        return watchers.every(({ heard }) => heard > 0);
      }, `a watcher was not called ${when} the outage`);
    await trial.write(other, 'one', undefined);
    await expectCalled('before');
    ended.end();
    await pause(LAST_WORDS_MS);
    ended.heard = 0;
    await trial.breakConnection();
    const signal = AbortSignal.timeout(OUTAGE_MS);
    await Promise.all([trial.promised(() => used.read({ signal }), 'a read'), pause(OUTAGE_MS)]);
    await trial.mend();
    for (const watcher of watchers) watcher.heard = 0;
    await expectCalled('after');
    expectThat(ended.heard === 0, 'a watcher that had ended before the outage was called after it');
    for (const watcher of watchers) watcher.end();
  },
  'RING-WATCH-ENDS-TWICE': async (trial) => {
    const [store, other] = await trial.openPair();
    const [ended, going] = [watch(trial, store), watch(trial, store)];
    await pause(SETTLING_MS);
    for (let i = 0; i < 2; i++) ended.end();
    await pause(LAST_WORDS_MS);
    going.heard = 0;
    await trial.write(other, 'one', undefined);
    await trial.until(() => going.heard > 0, 'a watcher was not called after another one had been ended twice');
    going.end();
  },
  'RING-WATCH-QUIET': async (trial) => {
    const [store, other] = await trial.openPair();
    const watcher = watch(trial, store);
    await pause(SETTLING_MS);
    await trial.write(other, 'one', undefined);
    await trial.until(() => watcher.heard > 0, 'a watcher was not called after another store wrote');
    await pause(SETTLING_MS);
    watcher.heard = 0;
    await pause(IDLE_MS);
    watcher.end();
    const words = `a watcher was called ${watcher.heard} times in ${IDLE_MS / 1_000} s without a write`;
    expectThat(watcher.heard < MOST_IDLE, words);
  },
  'RING-WATCH-ARGUMENT': async (trial) => {
    const store = await trial.open();
    if (!hasPush(trial, store)) throw new NotApplicable('the store does not support push');
    for (const given of ['x', null, {}]) {
      const what = `watch with ${kindOf(given)}`;
      const untyped = store as unknown as { watch(changed: unknown): unknown };
      const outcome = await trial.settle(() => ({ end: untyped.watch(given) }), what);
      if ('error' in outcome) continue;
      const { end } = outcome.value as { readonly end: unknown };
      expectThat(typeof end === 'function', `${what} returned ${kindOf(end)}`);
      Reflect.apply(end, undefined, []);
    }
  },
  'RING-WATCH-DECLARED': async (trial) => {
    const { push } = trial.supports;
    if (push !== false) throw new NotApplicable('supports.push is not false');
    const store = await trial.open();
    expectThat(store.watch === undefined, 'supports.push is false, but the store has a method watch');
  },
};

/** Whether the target declares push; by default, whether the store has `watch`. */
function hasPush(trial: RingStoreTrial, store: RingStore): boolean {
  const { push = store.watch !== undefined } = trial.supports;
  if (push) expectThat(store.watch !== undefined, 'supports.push is true, but the store has no method watch');
  return push;
}

interface Watcher {
  heard: number;
  readonly changed: () => void;
  end(): void;
}

function watch(trial: RingStoreTrial, store: RingStore, changed?: () => void): Watcher {
  if (!hasPush(trial, store)) throw new NotApplicable('the store does not support push');
  const watcher: Watcher = { heard: 0, changed: changed ?? (() => void watcher.heard++), end: () => undefined };
  const end: unknown = store.watch?.(watcher.changed);
  expectThat(typeof end === 'function', `watch returned ${kindOf(end)}, not a function that ends the watch`);
  return Object.assign(watcher, { end: () => void Reflect.apply(end, undefined, []) });
}

/** Writes once. Ignores a failure, since the connection may still be recovering. */
async function writeOnce(store: RingStore): Promise<void> {
  try {
    const found = await store.read();
    await store.write(`${found?.document ?? ''}.`, { expected: found?.revision });
  } catch (error) {
    if (!isConflict(error) && !isFailure(error, 'unavailable')) throw error;
  }
}
