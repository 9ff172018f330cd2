import { expectThat, must } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import { expectKind } from './errors.ts';
import { clause, type KeyWrapperRequirement } from './requirement.ts';
import { type Call, type KeyWrapperTrial, type Outcome, promptly } from './trial.ts';

const NOWHERE = 'with a service that cannot be reached';
/** When a call is aborted: after so many turns of the event loop. At 0 no answer of a service can have come. */
const TURNS = [0, 1, 3];

/** How calls end that cannot succeed, or are given up. */
export const ENDING_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must(
    'WRAP-UNREACHABLE',
    'A service that cannot be reached is unavailable, in bounded time.',
    clause(5),
    async (trial) => {
      const unreachable = await trial.createUnreachable();
      const made = await trial.make(await trial.create());
      for (let round = 0; round < 2; round++) {
        const calls = trial.calls(unreachable, made).map(async ({ name, start }) => {
          const what = `${name}, ${NOWHERE}`;
          expectKind(await trial.refusal(() => start(), what), 'unavailable', what);
        });
        await Promise.all(calls);
      }
    },
  ),
  must(
    'WRAP-ABORT',
    'A call under way ends at once, as unavailable, when its signal aborts.',
    clause(5),
    async (trial) => {
      const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
      const made = await trial.make(keyWrapper);
      for (const [asked, where] of [
        [keyWrapper, ''],
        [unasked, `, ${NOWHERE}`],
      ] as const) {
        for (const call of trial.calls(asked, made)) {
          for (const [i, turns] of TURNS.entries()) {
            const what = `${call.name}, aborted under way${where}`;
            const outcome = await promptly(abortedUnderWay(trial, call, turns, REASONS[i]), what);
            // An answer may come before the abort, and what wraps within the process is always done before.
            if (outcome === undefined) continue;
            if ('value' in outcome) {
              expectThat(turns > 0 || !trial.subject.supports.remote, `${what}, went on and succeeded`);
            } else expectKind(outcome.error, 'unavailable', what);
          }
        }
      }
    },
  ),
  must('WRAP-ABORT-ALONE', 'Aborting one call ends no other.', clause(5), async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      for (const isFirst of [true, false]) {
        const controller = new AbortController();
        const other = new AbortController();
        const signals = isFirst ? [controller, other] : [other, controller];
        const calls = signals.map(({ signal }) => trial.settle(() => start(signal), name));
        controller.abort();
        const kept = (await Promise.all(calls))[isFirst ? 1 : 0] as Outcome;
        const failed = 'error' in kept ? describeThrown(kept.error) : '';
        expectThat(failed === '', `a ${name} that was not aborted failed beside one that was: ${failed}`);
      }
    }
  }),
  must('WRAP-ABORTED', 'A call with a signal that has aborted is unavailable.', clause(5), async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    for (const asked of [keyWrapper, await trial.createUnasked()]) {
      for (const { name, start } of trial.calls(asked, made)) {
        for (const reason of REASONS) {
          const what = `${name} with a signal that has aborted`;
          const refused = trial.refusal(() => start(AbortSignal.abort(reason)), what);
          expectKind(await promptly(refused, what), 'unavailable', what);
        }
      }
    }
  }),
];

/** What a signal may give as its reason: whatever that is, the call is `unavailable`. */
const REASONS: readonly unknown[] = [
  undefined,
  new Error('the caller’s own'),
  'text',
  Object.assign(new Error('the caller’s own'), { name: 'KeyWrapperError', kind: 'corrupt' }),
];

/** How it ends; undefined for what ended before anybody could have waited for an answer. */
async function abortedUnderWay(
  trial: KeyWrapperTrial,
  { name, start }: Call,
  turns: number,
  reason: unknown,
): Promise<Outcome | undefined> {
  const controller = new AbortController();
  let hasEnded = false;
  const call = trial
    .settle(() => start(controller.signal), name)
    .finally(() => {
      hasEnded = true;
    });
  // No answer of a service comes without a turn of the event loop, and this leaves it none.
  for (let i = 0; i < 20; i++) await Promise.resolve();
  if (hasEnded) return undefined;
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
  controller.abort(reason);
  return call;
}
