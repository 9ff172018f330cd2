import { setTimeout as pause } from 'node:timers/promises';
import { type CheckedRequirement, expectThat, must } from '../requirement.ts';
import type { SingleUseTrial } from './trial.ts';

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';
const CLAIMS = 40;
const STORES = 4;
const ROUNDS = 10;
/** What calls and a service's clock may take of a margin. Seconds. */
const SLACK_SECONDS = 5;

/** What every single-use store is held to, in the order in which it is tried. */
export const SINGLE_USE_CHECKS: readonly CheckedRequirement<SingleUseTrial>[] = [
  must('USE-ANSWER', 'claim returns a promise of true or false.', CONTRACT, async (trial) => {
    const store = await trial.open();
    expectThat(await trial.claim(store, trial.freshId(), 600), 'the first claim of an id was told false');
  }),
  must(
    'USE-ONE-WINNER',
    'Of many who claim an id at once, over several stores, one is told true.',
    CONTRACT,
    async (trial) => {
      const stores = await Promise.all(Array.from({ length: STORES }, () => trial.open()));
      for (let round = 0; round < ROUNDS; round++) {
        const id = trial.freshId();
        const claims = Array.from({ length: CLAIMS / STORES }, () =>
          stores.map((store) => trial.claim(store, id, 600)),
        );
        const won = (await Promise.all(claims.flat())).filter(Boolean).length;
        expectThat(won === 1, `of ${CLAIMS} who claimed at once, ${won} were told true`);
      }
    },
  ),
  must(
    'USE-ONCE',
    'A claimed id is refused on every store, whatever end the later claim names.',
    CONTRACT,
    async (trial) => {
      const [store, other] = [await trial.open(), await trial.open()];
      const id = trial.freshId();
      expectThat(await trial.claim(store, id, 600), 'the first claim of an id was told false');
      for (const seconds of [600, 60, 6_000]) {
        for (const again of [store, other]) {
          const won = await trial.claim(again, id, seconds);
          expectThat(!won, `an id that ends in 600 s was claimed again, as one that ends in ${seconds} s`);
        }
      }
    },
  ),
  must('USE-SEPARATE', 'Ids that differ are claimed apart, however alike they are.', CONTRACT, async (trial) => {
    const store = await trial.open();
    const id = `Aa${trial.freshId().slice(2)}`;
    const alike = [id, `aA${id.slice(2)}`, `${id.slice(0, -1)}${id.endsWith('-') ? '_' : '-'}`, id.slice(0, -1)];
    for (const [index, one] of alike.entries()) {
      expectThat(await trial.claim(store, one, 600), `an id was refused for ${index} others that are only alike`);
    }
  }),
  must(
    'USE-CLOCK-SKEW',
    'A claim is remembered beyond its end for as long as two clocks may differ.',
    `${CONTRACT}: the margin; F48`,
    async (trial) => {
      const { clockSkewSeconds } = trial;
      const [ahead, behind] = [await trial.open(), await trial.open()];
      const told: unknown = ahead.clockSkewSeconds;
      // A boundary believes it.
      expectThat(
        told === undefined || told === clockSkewSeconds,
        `the store tells another clockSkewSeconds than the ${clockSkewSeconds} it was given`,
      );
      // As a server whose clock is ahead redeems a token, and one whose clock is behind is sent it again.
      const claimAgain = async (seconds: number, waitMs: number): Promise<boolean> => {
        const id = trial.freshId();
        const when = seconds < 0 ? `ended ${-seconds} s ago` : `ends in ${seconds} s`;
        expectThat(await trial.claim(ahead, id, seconds), `the first claim of an id that ${when} was told false`);
        await pause(waitMs);
        // Claims may remove what has expired.
        await trial.claim(behind, trial.freshId(), clockSkewSeconds);
        return trial.claim(behind, id, clockSkewSeconds);
      };
      if (clockSkewSeconds > 2) {
        expectThat(!(await claimAgain(1, 2_100)), 'an id was claimed again 1 s after its end');
      }
      if (clockSkewSeconds > SLACK_SECONDS) {
        const most = clockSkewSeconds - SLACK_SECONDS;
        expectThat(!(await claimAgain(-most, 0)), `an id was claimed again ${most} s after its end`);
      }
    },
  ),
  must('USE-PAST-END', 'When end and margin have passed nobody is told true.', `${CONTRACT}; F48`, async (trial) => {
    const store = await trial.open();
    const past = -trial.clockSkewSeconds - SLACK_SECONDS;
    expectThat(!(await trial.claim(store, trial.freshId(), past)), `an id that ended ${-past} s ago was claimed`);
  }),
  must(
    'USE-UNREACHABLE',
    'A backend out of reach tells nobody true.',
    `${CONTRACT}: a store that cannot tell; F9`,
    async (trial) => {
      const store = await trial.open();
      await trial.claim(store, trial.freshId(), 600);
      await trial.breakConnection();
      const won: unknown = await store.claim(trial.freshId(), new Date(Date.now() + 600_000)).catch(() => false);
      expectThat(won !== true, 'a claim was told true while the backend was out of reach');
    },
  ),
];
