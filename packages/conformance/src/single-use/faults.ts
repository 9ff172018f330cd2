import { setTimeout as pause } from 'node:timers/promises';
import { type Checks, expectThat } from '../requirement.ts';
import { expectDiscreet } from '../ring-store/answers.ts';
import { describeThrown } from '../thrown.ts';
import { CLOSE_MS, within } from '../trial.ts';
import type { SingleUseStoreLike } from './target.ts';
import { CLAIMS, LOOK_AGAIN_MS, type SingleUseTrial, soon } from './trial.ts';

const PATIENCE_MS = 20_000;
const KINDS: readonly unknown[] = ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'];

export const FAULT_CHECKS: Checks<SingleUseTrial> = {
  'USE-UNREACHABLE': async (trial) => {
    const [store, unused] = [await trial.open(), await trial.open()];
    const claimed = trial.freshId();
    await trial.claim(store, claimed, 600);
    await trial.breakConnection();
    // A store that counts failures may change its answer after a few of them.
    for (const ones of [[store], [store, unused]]) {
      const claims = ones.flatMap((one) =>
        [claimed, ...Array.from({ length: 7 }, () => trial.freshId())].map((id) =>
          trial.refused(one, id, soon(), 'a claim while the backend is unreachable'),
        ),
      );
      await trial.all(claims);
    }
  },
  'USE-RECOVERS': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const ids = Array.from({ length: 10 }, () => trial.freshId());
    await trial.claim(store, ids[0] ?? '', 600);
    const end = soon();
    const underWay = ids.slice(1).map((id) => trial.promised(() => store.claim(id, end), 'a claim'));
    await trial.breakConnection();
    const outcomes = await trial.all(underWay);
    await trial.refused(store, trial.freshId(), end, 'a claim during an outage');
    await trial.mend();
    const won = ids.filter((_, i) => i === 0 || outcomes.some((one, j) => j === i - 1 && 'value' in one && one.value));
    for (const one of [store, other]) {
      const deadline = performance.now() + PATIENCE_MS;
      const claimed = async (): Promise<boolean> => trial.claim(one, trial.freshId(), 600).catch(() => false);
      while (!(await claimed())) {
        expectThat(
          performance.now() < deadline,
          `nothing could be claimed within ${PATIENCE_MS / 1_000} s of an outage`,
        );
        await pause(LOOK_AGAIN_MS);
      }
      for (const id of won) {
        expectThat(!(await trial.claim(one, id, 600)), 'an id was claimed again after an outage');
      }
    }
  },
  'USE-ERROR': async (trial) => {
    const [store, closed] = [await trial.open(), await trial.open()];
    for (const one of [store, closed]) await trial.claim(one, trial.freshId(), 600);
    await trial.closeEarly(closed);
    await expectStoreError(trial, closed, 'a claim after close');
    await trial.breakConnection();
    await expectStoreError(trial, store, 'a claim while the backend is unreachable');
  },
  'USE-CLOSED': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const [id, fresh] = [trial.freshId(), trial.freshId()];
    const end = soon();
    await trial.claim(store, id, 600);
    const pending = Array.from({ length: CLAIMS }, () => trial.freshId());
    const calls = pending.map((one) => trial.promised(() => store.claim(one, end), 'a claim in progress at close'));
    const claimed = trial.refused(store, id, end, 'a second claim of an id, in progress at close,');
    await trial.closeEarly(store);
    const what = 'a claim after the store was closed';
    const all = [...calls, claimed, trial.promised(() => store.claim(fresh, end), what)];
    const again = trial.refused(store, id, end, what);
    const late = Symbol('late');
    const outcomes = await within(CLOSE_MS, trial.all([...all, again]), late);
    expectThat(outcomes !== late, `claims during and after close did not end within ${CLOSE_MS} ms`);
    const won = [...pending, '', fresh].filter((_, i) => Object(outcomes[i]).value === true);
    for (const one of [id, ...won]) {
      const isAgain = await trial.claim(other, one, 600);
      expectThat(!isAgain, 'an id was claimed again after the store that claimed it was closed');
    }
  },
  'USE-INSTANCE-CLOSES': async (trial) => {
    await trial.claim(await trial.open(), trial.freshId(), 600);
    await trial.expectCloses();
  },
};

/** @throws {Finding} if a claim with an unknown outcome rejects with an error that the contract does not define. */
async function expectStoreError(trial: SingleUseTrial, store: SingleUseStoreLike, what: string): Promise<void> {
  const id = trial.freshId();
  const outcome = await trial.promised(() => store.claim(id, soon()), what);
  if ('value' in outcome) return;
  const { error } = outcome;
  const isOurs = error instanceof Error && error.name === 'SingleUseStoreError';
  expectThat(isOurs, `${what} rejected with ${describeThrown(error)}, not SingleUseStoreError`);
  const kind: unknown = Reflect.get(error, 'kind');
  expectThat(
    KINDS.includes(kind),
    `${what} rejected with ${describeThrown(error)}: its kind is not one of the ${KINDS.length} in the contract`,
  );
  expectDiscreet(error, id, what);
}
