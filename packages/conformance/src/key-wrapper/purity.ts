import { setTimeout as pause } from 'node:timers/promises';
import { type Check, expectThat } from '../requirement.ts';
import { CONTEXT, type KeyWrapperTrial, settle } from './trial.ts';

/** A timer of somebody else's may come between: what stays is looked at again and again. */
const LOOKS = 10;
const PAUSE_MS = 100;

/** What a key wrapper leaves behind in the process. */
export const PURITY_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-NO-TIMERS',
    async run(trial) {
      const before = timers();
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      await trial.unwrap(keyWrapper, await trial.wrap(keyWrapper, dataKey));
      await settle(() => keyWrapper.wrap(dataKey, { context: CONTEXT, signal: AbortSignal.abort() }));
      await settle(() => keyWrapper.close?.());
      await trial.close();
      let left = timers() - before;
      for (let look = 1; left > 0 && look < LOOKS; look++) {
        await pause(PAUSE_MS);
        left = timers() - before;
      }
      expectThat(left <= 0, `${left} timers are left after close`);
    },
  },
];

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'Immediate').length;
}
