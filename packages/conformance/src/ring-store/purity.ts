import { expectNoPatches } from '../observe.ts';
import { expectNoListeners, expectNoTimers, expectQuiet } from '../watch.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

export const PURITY_CHECKS: RingStoreChecks = {
  'RING-NO-TIMERS': async (trial) => {
    await expectNoTimers(async () => {
      await useEach(trial);
      await trial.close();
    });
    await expectNoListeners(() => useEach(trial).then(() => trial.close()));
  },
  'RING-QUIET': (trial) => expectQuiet(() => useEach(trial)),
  'RING-NO-GLOBALS': (trial) => expectNoPatches(trial.target, () => useEach(trial)),
};

/** Makes every call on two stores, and ends some with an error. */
async function useEach(trial: RingStoreTrial): Promise<void> {
  const signal = AbortSignal.abort();
  for (const store of await trial.openPair()) {
    // Another requirement checks whether a watch is called.
    if (trial.supports.push !== false) store.watch?.(() => undefined);
    const found = await trial.read(store);
    const revision = await trial.write(store, 'one', found?.revision);
    await trial.expectStored(store, 'one', revision);
    await trial.expectConflict(store, undefined, 'a write that would create a ring again');
    await trial.promised(() => store.read({ signal }), 'an aborted read');
    await trial.promised(() => store.write('two', { expected: revision, signal }), 'an aborted write');
  }
}
