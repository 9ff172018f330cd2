import { sameBytes } from '../bytes.ts';
import { expectThat, must, NotApplicable, should } from '../requirement.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import { expectKind, isKeyWrapperError } from './errors.ts';
import { CONTRACT, clause, type KeyWrapperRequirement, KIT } from './requirement.ts';
import { type Outcome, promptly } from './trial.ts';

/** What close ends, and what it leaves alone. Tried last: who closes what others share spoils all that comes after it. */
export const CLOSING_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must(
    'WRAP-CLOSE-ALONE',
    'close ends no other instance: a client that was given stays open.',
    `${CONTRACT}, close`,
    async (trial) => {
      const [keyWrapper, before] = [await trial.create(), await trial.create()];
      if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
      const made = await trial.make(keyWrapper);
      await trial.closeKeyWrapper(keyWrapper);
      for (const other of [before, await trial.create()]) {
        for (const { name, start } of trial.calls(other, made)) {
          const outcome = await trial.settle(() => start(), name);
          const failed = 'error' in outcome ? describeThrown(outcome.error) : '';
          expectThat(failed === '', `${name} of one instance failed after another one was closed: ${failed}`);
        }
      }
    },
  ),
  must(
    'WRAP-CLOSE',
    'close returns a promise that ends, and so does every call under way and after it.',
    clause(5),
    async (trial) => {
      const made = await trial.make(await trial.create());
      for (const asked of [await trial.create(), await trial.createUnasked(), await trial.create()]) {
        if (asked.close === undefined) throw new NotApplicable('the key wrapper has no close');
        const calls = trial.calls(asked, made);
        const underWay = calls.map(({ name, start }) => [name, trial.settle(() => start(), name)] as const);
        await trial.closeKeyWrapper(asked);
        for (const [name, call] of underWay) {
          expectEnd(
            await promptly(call, `a ${name} under way when it was closed`),
            made.dataKey,
            `a ${name} under way`,
          );
        }
        for (const { name, start } of calls) {
          const late = trial.settle(() => start(), `${name} after close`);
          expectEnd(await promptly(late, `${name} after close`), made.dataKey, `${name} after close`);
        }
      }
      const unused = await trial.create();
      let closing: unknown;
      const call = trial.settle(() => {
        closing = unused.close?.();
        return closing;
      }, 'close');
      await promptly(call, 'close of an instance that was never used');
      expectThat(isThenable(closing), `close returned ${kindOf(closing)}, not a promise`);
    },
  ),
  should('WRAP-CLOSED', 'After close, calls are unavailable, and a second close does nothing.', KIT, async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    await trial.closeKeyWrapper(keyWrapper);
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      const what = `${name} after close`;
      expectKind(
        await promptly(
          trial.refusal(() => start(), what),
          what,
        ),
        'unavailable',
        what,
      );
    }
    await Promise.all([trial.closeKeyWrapper(keyWrapper), trial.closeKeyWrapper(keyWrapper)]);
  }),
  must('WRAP-INSTANCE-CLOSES', 'The target’s close of an instance ends.', KIT, async (trial) => {
    await trial.createOpened();
    // The kit closes it, here as after every requirement.
  }),
];

/** It may still succeed, or fail as every call may. */
function expectEnd(outcome: Outcome, dataKey: Uint8Array, what: string): void {
  if ('error' in outcome) {
    expectThat(isKeyWrapperError(outcome.error), `${what} failed with ${describeThrown(outcome.error)}`);
  } else if (what.includes('unwrap')) {
    expectThat(sameBytes(outcome.value as Uint8Array, dataKey), `${what} gave other bytes than the data key`);
  }
}
