import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { flipped, sameBytes } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { THROUGH_PIPE } from '../run.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import { expectNoTimers } from '../watch.ts';
import {
  type Call,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  OPTIONS,
  promptly,
  wrappedKeyOf,
} from './trial.ts';

const NOWHERE = 'with a service that cannot be reached';
/** When a call is aborted: after so many turns of the event loop. At 0 no answer of a service can have come. */
const TURNS = [0, 1, 3];

export const ENDING_CHECKS: KeyWrapperChecks = {
  'WRAP-UNREACHABLE': async (trial) => {
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
  'WRAP-ABORT': async (trial) => {
    const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
    const made = await trial.make(keyWrapper);
    for (const [asked, where] of [
      [keyWrapper, ''],
      [unasked, `, ${NOWHERE}`],
    ] as const) {
      for (const call of trial.calls(asked, made)) {
        for (const [i, turns] of TURNS.entries()) {
          const what = `${call.name}, aborted under way${where}`;
          const abort = (): Promise<Aborted | undefined> => abortedUnderWay(trial, call, turns, REASONS[i]);
          let outcome = await promptly(abort(), what);
          // A program may have answered before it reads that the call was aborted. Then no answer is late every time.
          for (let tries = 1; tries < 5 && THROUGH_PIPE in trial.target && isLate(outcome); tries++) {
            outcome = await promptly(abort(), what);
          }
          // An answer may come before the abort, and what wraps within the process is always done before.
          if (outcome === undefined) continue;
          if ('value' in outcome) {
            const maySucceed =
              turns > 0 || !trial.supports.remote || (THROUGH_PIPE in trial.target && !isLate(outcome));
            expectThat(maySucceed, `${what}, continued and succeeded`);
          } else expectKind(outcome.error, 'unavailable', what);
        }
      }
    }
  },
  'WRAP-ABORT-ALONE': async (trial) => {
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
  },
  'WRAP-ABORTED': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    for (const asked of [keyWrapper, await trial.createUnasked()]) {
      for (const { name, start } of trial.calls(asked, made)) {
        for (const reason of REASONS) {
          const what = `${name} with a signal that has aborted`;
          await trial.expectUnavailable(() => start(AbortSignal.abort(reason)), what);
        }
      }
    }
  },
};

/** What a signal may give as its reason: whatever that is, the call is `unavailable`. */
const REASONS: readonly unknown[] = [
  undefined,
  new Error('the caller’s own'),
  'text',
  Object.assign(new Error('the caller’s own'), { name: 'KeyWrapperError', kind: 'corrupt' }),
];

type Aborted = Outcome & { readonly afterMs: number };

/** Whether a call succeeded so long after its abort that a program must have read of it. */
function isLate(outcome: Aborted | undefined): boolean {
  return outcome !== undefined && 'value' in outcome && outcome.afterMs > 20;
}

/** How it ends, and how long after the abort; undefined for a call that ended before an answer could have been awaited. */
async function abortedUnderWay(
  trial: KeyWrapperTrial,
  { name, start }: Call,
  turns: number,
  reason: unknown,
): Promise<Aborted | undefined> {
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
  const abortedAt = performance.now();
  controller.abort(reason);
  return { ...(await call), afterMs: performance.now() - abortedAt };
}

const BESIDE = ' of one instance, under way while another one was closed,';

/** What close ends, and what it leaves alone. Tried last: who closes what others share spoils all that comes after it. */
export const CLOSING_CHECKS: KeyWrapperChecks = {
  'WRAP-CLOSE-ALONE': async (trial) => {
    const [keyWrapper, before] = [await trial.create(), await trial.create()];
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    const made = await trial.make(keyWrapper);
    const underWay = trial
      .calls(before, made)
      .map(({ name, start }) => trial.answer(() => start(), `${name}${BESIDE}`));
    await trial.closeKeyWrapper(keyWrapper);
    await trial.all(underWay);
    for (const other of [before, await trial.create()]) {
      for (const { name, start } of trial.calls(other, made)) {
        await trial.answer(() => start(), `${name} of one instance, after another one was closed,`);
      }
    }
  },
  'WRAP-CLOSE': async (trial) => {
    const opener = await trial.create();
    const made = await trial.make(opener);
    for (const asked of [await trial.create(), await trial.createUnasked(), await trial.create()]) {
      if (asked.close === undefined) throw new NotApplicable('the key wrapper has no close');
      const calls = trial.calls(asked, made);
      const underWay = calls.map(({ name, start }) => [name, trial.settle(() => start(), name)] as const);
      await trial.closeKeyWrapper(asked);
      for (const [name, call] of underWay) {
        const outcome = await promptly(call, `a ${name} under way when it was closed`);
        expectEnd(outcome, made.dataKey, `a ${name} under way`);
        if (name === 'wrap' && 'value' in outcome) {
          const wrapped = wrappedKeyOf(outcome.value, name);
          await trial.expectOpens(opener, { ...made, wrapped }, 'what was wrapped during a close');
        }
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
  'WRAP-CLOSED': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    await trial.closeKeyWrapper(keyWrapper);
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      const what = `${name} after close`;
      await trial.expectUnavailable(() => start(), what);
    }
    await Promise.all([trial.closeKeyWrapper(keyWrapper), trial.closeKeyWrapper(keyWrapper)]);
  },
  'WRAP-INSTANCE-CLOSES': async (trial) => {
    await trial.createOpened();
    await trial.expectCloses();
  },
};

/** It may still succeed, or fail as every call may. */
function expectEnd(outcome: Outcome, dataKey: Uint8Array, what: string): void {
  if ('error' in outcome) {
    expectThat(isKeyWrapperError(outcome.error), `${what} failed with ${describeThrown(outcome.error)}`);
    expectThat(!shows(contentsOf(outcome.error), dataKey), `the error of a ${what} shows the data key`);
  } else if (what.includes('unwrap')) {
    expectThat(sameBytes(outcome.value as Uint8Array, dataKey), `${what} gave other bytes than the data key`);
  }
}

export const PURITY_CHECKS: KeyWrapperChecks = {
  'WRAP-NO-TIMERS': async (trial) => {
    await expectNoTimers(async () => {
      for (const keyWrapper of [await trial.create(), await trial.createUnasked()]) {
        const made = await trial.make(await trial.create());
        for (const { name, start } of trial.calls(keyWrapper, made)) {
          const controller = new AbortController();
          const signals = [undefined, AbortSignal.abort(), controller.signal];
          const calls = signals.map((signal) => trial.settle(() => start(signal), name));
          controller.abort();
          await Promise.all(calls);
        }
        await trial.settle(() => keyWrapper.close?.(), 'close');
      }
      await trial.close();
    });
  },
  'WRAP-SIGNAL-LEFT': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const { signal } = new AbortController();
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      for (let i = 0; i < 3; i++) await trial.answer(() => start(signal), name);
      await pause(1);
      const { length } = getEventListeners(signal, 'abort');
      expectThat(length === 0, `after ${name}, ${length} listeners are left on its signal`);
    }
    const changed = { ...made.wrapped, wrapped: flipped(made.wrapped.wrapped, made.wrapped.wrapped.length - 1) };
    await trial.settle(() => keyWrapper.unwrap(changed, { ...OPTIONS, signal }), 'unwrap of a changed wrapped key');
    await pause(1);
    const { length } = getEventListeners(signal, 'abort');
    expectThat(length === 0, `after an unwrap that was refused, ${length} listeners are left on its signal`);
  },
};
