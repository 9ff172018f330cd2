import { setTimeout as pause } from 'node:timers/promises';
import { type Checks, expectThat } from '../requirement.ts';
import { LOOK_AGAIN_MS, type SingleUseTrial } from './trial.ts';

/** Part of a margin that calls and the clock of a service may use up, in seconds. */
const SLACK_SECONDS = 5;

export const END_CHECKS: Checks<SingleUseTrial> = {
  'USE-CLOCK-SKEW': async (trial) => {
    const { clockSkewSeconds } = trial;
    const [ahead, behind] = [await trial.open(), await trial.open()];
    const told: unknown = ahead.clockSkewSeconds;
    // A boundary relies on this value.
    expectThat(
      told === undefined || told === clockSkewSeconds,
      `the store reports a clockSkewSeconds other than its configured ${clockSkewSeconds}`,
    );
    // A server with a fast clock redeems a token, and a server with a slow clock then receives the same token.
    const claimAgain = async (seconds: number, waitMs: number): Promise<boolean> => {
      const id = trial.freshId();
      const when = seconds < 0 ? `expired ${-seconds} s ago` : `expires in ${seconds} s`;
      expectThat(await trial.claim(ahead, id, seconds), `the first claim of an id that ${when} resolved to false`);
      await pause(waitMs);
      // Claims may remove expired ids.
      await trial.claim(behind, trial.freshId(), clockSkewSeconds);
      return trial.claim(behind, id, clockSkewSeconds);
    };
    if (clockSkewSeconds > SLACK_SECONDS) {
      const most = clockSkewSeconds - SLACK_SECONDS;
      expectThat(!(await claimAgain(-most, 0)), `an id was claimed again ${most} s after it had expired`);
    }
    // Checks the last moment at which an id must still be remembered. A store that counts in seconds forgets the id
    // almost a second early.
    const lastMs = (Math.floor(Date.now() / 1_000) + 3) * 1_000 - 50;
    const short = new Date(lastMs - clockSkewSeconds * 1_000);
    const toTheLast = async (): Promise<void> => {
      const id = trial.freshId();
      await trial.promised(() => ahead.claim(id, short), 'a claim');
      for (; Date.now() < lastMs; await pause(LOOK_AGAIN_MS)) {
        const outcome = await trial.promised(() => behind.claim(id, short), 'a claim');
        // A claim that is in progress at that moment may reach the store later.
        const leftMs = lastMs - Date.now();
        const isWon = 'value' in outcome && outcome.value === true && leftMs > 0;
        expectThat(!isWon, `an id was claimed again ${leftMs} ms before the end of the margin after its expiry`);
      }
    };
    // When the claims with this date expire, the store must remove neither other ids nor an id that was first claimed
    // with a later date.
    const alone = async (): Promise<void> => {
      const [id, other] = [trial.freshId(), trial.freshId()];
      for (const one of [id, other]) await trial.claim(ahead, one, 600);
      for (const one of [id, trial.freshId()]) await trial.promised(() => behind.claim(one, short), 'a claim');
      await pause(Math.max(0, lastMs - Date.now()) + LOOK_AGAIN_MS);
      await trial.claim(ahead, trial.freshId(), 600);
      expectThat(
        !(await trial.claim(ahead, id, 600)),
        'an id was claimed again after a second claim with an earlier date had expired',
      );
      expectThat(!(await trial.claim(ahead, other, 600)), 'an id was claimed again after another id had expired');
    };
    const afterEnd = async (): Promise<void> => {
      if (clockSkewSeconds <= 2) return;
      expectThat(!(await claimAgain(1, 2_100)), 'an id was claimed again 1 s after it had expired');
    };
    await trial.all([toTheLast(), alone(), afterEnd()]);
  },
  'USE-PAST-END': async (trial) => {
    const store = await trial.open();
    const past = -trial.clockSkewSeconds - SLACK_SECONDS;
    const id = trial.freshId();
    await trial.claim(store, id, 600);
    for (const seconds of [past, past - 86_400, new Date(0), new Date(-1)]) {
      const when = typeof seconds === 'number' ? `${-seconds} s ago` : 'in 1970 or before';
      expectThat(!(await trial.claim(store, trial.freshId(), seconds)), `an id that expired ${when} was claimed`);
    }
    expectThat(!(await trial.claim(store, id, 600)), 'an id was claimed again after claims of expired ids');
  },
  'USE-CALLERS-DATE': async (trial) => {
    const store = await trial.open();
    const id = trial.freshId();
    const endMs = Date.now() + 600_000;
    const [date, early] = [new Date(endMs), new Date(endMs)];
    await trial.promised(() => store.claim(trial.freshId(), date), 'a claim');
    expectThat(date.getTime() === endMs, 'claim modified its date');
    const claim = store.claim(id, early);
    early.setTime(0);
    const isKept = (await claim) && !(await trial.claim(store, id, 600));
    expectThat(isKept, 'claim read the date after it had returned its promise');
  },
};
