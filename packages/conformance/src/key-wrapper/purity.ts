import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expectThat, should } from '../requirement.ts';
import { watchTimers } from '../watch-timers.ts';
import { CONTRACT, type KeyWrapperRequirement, KIT } from './requirement.ts';

/** What ends soon is not left behind: it is looked at again and again. */
const LOOKS = 10;
const PAUSE_MS = 100;

/** What a key wrapper leaves behind in the process. */
export const PURITY_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  should('WRAP-NO-TIMERS', 'A key wrapper that was closed leaves no timers behind.', KIT, async (trial) => {
    const watched = watchTimers();
    try {
      await watched.run(async () => {
        for (const keyWrapper of [await trial.create(), await trial.createUnasked()]) {
          const made = await trial.make(await trial.create());
          for (const { name, start } of trial.calls(keyWrapper, made)) {
            const controller = new AbortController();
            const calls = [undefined, AbortSignal.abort(), controller.signal].map((signal) =>
              trial.settle(() => start(signal), name),
            );
            controller.abort();
            await Promise.all(calls);
          }
          await trial.settle(() => keyWrapper.close?.(), 'close');
        }
        await trial.close();
      });
      for (let look = 1; watched.left() > 0 && look < LOOKS; look++) await pause(PAUSE_MS);
      expectThat(watched.left() === 0, `${watched.left()} timers are left after close`);
    } finally {
      watched.stop();
    }
  }),
  should(
    'WRAP-SIGNAL-LEFT',
    'A call that has ended leaves no listener on its signal.',
    `${CONTRACT}, WrapOptions`,
    async (trial) => {
      const { keyWrapper, ...made } = await trial.createOpened();
      const { signal } = new AbortController();
      for (const { name, start } of trial.calls(keyWrapper, made)) {
        for (let i = 0; i < 3; i++) await trial.answer(() => start(signal), name);
        await pause(1);
        const { length } = getEventListeners(signal, 'abort');
        expectThat(length === 0, `after ${name}, ${length} listeners are left on its signal`);
      }
    },
  ),
];
