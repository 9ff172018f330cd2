import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { KeyWrapper } from '@sealring/core';
import { flipped, sameBytes } from '../bytes.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { THROUGH_PIPE } from '../run.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import { expectNoTimers } from '../watch.ts';
import {
  type Call,
  copyOf,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
  promptly,
  wrappedKeyOf,
} from './trial.ts';

const NOWHERE = 'with an unreachable service';
/** Moments of an abort, in turns of the event loop. At 0, no response of a service can have arrived. */
const TURNS = [0, 1, 3];

export const ENDING_CHECKS: KeyWrapperChecks = {
  'WRAP-UNREACHABLE': async (trial) => {
    const unreachable = await trial.create('createUnreachable');
    const made = await trial.make(await trial.create());
    // A signal does not replace the wrapper's own deadline.
    for (const signal of [undefined, new AbortController().signal]) {
      const calls = trial.calls(unreachable, made).map(async ({ name, start }) => {
        const what = `${name}${signal ? ' with a signal' : ''}, ${NOWHERE}`;
        expectKind(await trial.refusal(() => start(signal), what), 'unavailable', what);
      });
      await Promise.all(calls);
    }
  },
  'WRAP-ABORT': async (trial) => {
    const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
    const made = await trial.make(keyWrapper);
    const reasons = await reasonsOf(trial, keyWrapper, made);
    const isPipe = THROUGH_PIPE in trial.target;
    for (const [asked, where] of [
      [keyWrapper, ''],
      [unasked, `, ${NOWHERE}`],
    ] as const) {
      for (const call of trial.calls(asked, made)) {
        for (const [i, turns] of TURNS.entries()) {
          const what = `${call.name}, aborted in progress${where}`;
          // A program may have answered before it reads the abort. Several tries avoid that.
          let isRight = false;
          for (let tries = isPipe ? 5 : 1; tries > 0 && !isRight; tries--) {
            const outcome = await promptly(abortedUnderWay(trial, call, turns, reasons[i]), what);
            if (outcome !== undefined && 'error' in outcome) expectKind(outcome.error, 'unavailable', what);
            // An answer may arrive before the abort, as it always does for a wrapper within the process.
            const maySucceed = turns > 0 || !trial.supports.remote || (isPipe && (outcome?.afterMs ?? 0) <= 20);
            isRight = outcome === undefined || 'error' in outcome || maySucceed;
          }
          expectThat(isRight, `${what}, succeeded nevertheless`);
        }
        await expectAtOnce(trial, call, `${call.name}, aborted beside another call${where}`);
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
        expectThat(failed === '', `a ${name} that was not aborted failed when a concurrent one was aborted: ${failed}`);
      }
    }
  },
  'WRAP-ABORTED': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const reasons = await reasonsOf(trial, keyWrapper, made);
    for (const asked of [keyWrapper, await trial.createUnasked()]) {
      for (const { name, start } of trial.calls(asked, made)) {
        for (const reason of reasons) {
          const what = `${name} with a signal that has aborted`;
          await trial.expectUnavailable(() => start(AbortSignal.abort(reason)), what);
        }
      }
    }
  },
};

/** Reasons of a signal, including an error of the key wrapper’s own class. The call must be `unavailable` for all. */
async function reasonsOf(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  { wrapped }: Made,
): Promise<readonly unknown[]> {
  const foreign = { ...copyOf(wrapped), provider: 'conformance-elsewhere' };
  const own = await trial.settle(() => keyWrapper.unwrap(foreign, OPTIONS), 'unwrap of another provider’s');
  return [undefined, 'error' in own ? own.error : undefined, 'text', new Error('the caller’s own')];
}

/** The outcome, and the time since the abort; undefined for a call that ended before the abort. */
async function abortedUnderWay(
  trial: KeyWrapperTrial,
  { name, start }: Call,
  turns: number,
  reason: unknown,
): Promise<(Outcome & { readonly afterMs: number }) | undefined> {
  const controller = new AbortController();
  let hasEnded = false;
  const call = trial
    .settle(() => start(controller.signal), name)
    .finally(() => {
      hasEnded = true;
    });
  // Microtasks only: no response of a service arrives without a turn of the event loop.
  for (let i = 0; i < 20; i++) await Promise.resolve();
  if (hasEnded) return undefined;
  for (let i = 0; i < turns; i++) await nextTurn();
  const abortedAt = performance.now();
  controller.abort(reason);
  return { ...(await call), afterMs: performance.now() - abortedAt };
}

/** Number of tries, and number of turns of the event loop that count as immediate. */
const TRIES = 3;
const AT_ONCE_TURNS = 200;

/** An aborted call must end before an earlier call that waits for its service, whichever call that is. */
async function expectAtOnce(trial: KeyWrapperTrial, { name, start }: Call, what: string): Promise<void> {
  if (THROUGH_PIPE in trial.target) return;
  for (let tries = 0; tries < TRIES; tries++) {
    const [aborted, other] = [new AbortController(), new AbortController()];
    const ended: string[] = [];
    const calls = [other, aborted].map((controller, i) =>
      trial.settle(() => start(controller.signal), name).finally(() => ended.push(i === 0 ? 'other' : 'aborted')),
    );
    aborted.abort();
    for (let turn = 0; turn < AT_ONCE_TURNS && !ended.includes('aborted'); turn++) await nextTurn();
    const isAtOnce = ended.includes('aborted');
    await Promise.race(calls);
    other.abort();
    await Promise.all(calls);
    if (isAtOnce || ended[0] === 'aborted') return;
  }
  throw new Finding(`${what}, ended after the other call`);
}

const BESIDE = ' of one instance, in progress while another one was closed,';

/** Effects of close. Checked last, since a wrapper that closes a shared client breaks all later checks. */
export const CLOSING_CHECKS: KeyWrapperChecks = {
  'WRAP-CLOSE-ALONE': async (trial) => {
    const [keyWrapper, before] = [await trial.create(), await trial.create()];
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    const made = await trial.make(keyWrapper);
    const underWay = trial.calls(before, made).map(({ name, start }) => trial.answer(start, `${name}${BESIDE}`));
    await trial.closeKeyWrapper(keyWrapper);
    await trial.all(underWay);
    for (const other of [before, await trial.create()]) {
      for (const { name, start } of trial.calls(other, made)) {
        await trial.answer(start, `${name} of one instance, after another one was closed,`);
      }
    }
  },
  'WRAP-CLOSE': async (trial) => {
    const opener = await trial.create();
    const made = await trial.make(opener);
    const bad = { ...made, wrapped: { ...made.wrapped, wrapped: flipped(made.wrapped.wrapped, 0) } };
    for (const [asked, hasFailed] of [
      [await trial.create(), false],
      [await trial.createUnasked(), false],
      [await trial.create(), true],
      [await trial.createUnasked(), true],
    ] as const) {
      if (asked.close === undefined) throw new NotApplicable('the key wrapper has no close');
      for (const signal of hasFailed ? [undefined, AbortSignal.abort()] : []) {
        await Promise.all(trial.calls(asked, bad).map(({ name, start }) => trial.settle(() => start(signal), name)));
      }
      const calls = trial.calls(asked, made);
      const underWay = calls.map(({ name, start }) => [name, trial.settle(start, name)] as const);
      await trial.closeKeyWrapper(asked);
      for (const [name, call] of underWay) {
        const outcome = await promptly(call, `a ${name} in progress at close`);
        expectEnd(outcome, made.dataKey, `a ${name} in progress`);
        if (name === 'wrap' && 'value' in outcome) {
          const wrapped = wrappedKeyOf(outcome.value, name);
          await trial.expectOpens(opener, { ...made, wrapped }, 'a wrapped key from during a close');
        }
      }
      for (const { name, start } of calls) {
        const what = `${name} after close`;
        expectEnd(await promptly(trial.settle(start, what), what), made.dataKey, what);
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
      const outcome = await promptly(trial.promised(start, what), what);
      // A key wrapper that created nothing has nothing to close, and may answer.
      if ('error' in outcome) expectKind(outcome.error, 'unavailable', what);
    }
    await Promise.all([trial.closeKeyWrapper(keyWrapper), trial.closeKeyWrapper(keyWrapper)]);
  },
  'WRAP-INSTANCE-CLOSES': async (trial) => {
    await trial.createOpened();
    await trial.expectCloses();
  },
};

/** The call may succeed, or fail with a KeyWrapperError. */
function expectEnd(outcome: Outcome, dataKey: Uint8Array, what: string): void {
  if ('error' in outcome) {
    expectThat(isKeyWrapperError(outcome.error), `${what} failed with ${describeThrown(outcome.error)}`);
    expectThat(!shows(contentsOf(outcome.error), dataKey), `the error of a ${what} shows the data key`);
  } else if (what.includes('unwrap')) {
    expectThat(sameBytes(outcome.value as Uint8Array, dataKey), `${what} returned bytes other than the data key`);
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
    const counts: number[] = [];
    for (let i = 0; i < 3; i++) {
      const keyWrapper = await trial.create();
      await trial.make(keyWrapper);
      await trial.settle(() => keyWrapper.close?.(), 'close');
      await trial.close();
      counts.push(process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0));
    }
    const [first = 0, second = 0, third = 0] = counts;
    expectThat(first >= second || second >= third, 'every key wrapper leaves listeners on the process');
  },
  'WRAP-SIGNAL-LEFT': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const { signal } = new AbortController();
    const bad = { ...made, wrapped: { ...made.wrapped, wrapped: flipped(made.wrapped.wrapped, 0) } };
    for (const { name, start } of [...trial.calls(keyWrapper, made), ...trial.calls(keyWrapper, bad)]) {
      for (let i = 0; i < 2; i++) await trial.settle(() => start(signal), name);
      await pause(1);
      const left = getEventListeners(signal, 'abort').length + (signal.onabort === null ? 0 : 1);
      expectThat(left === 0, `after ${name}, ${left} listeners are left on its signal`);
    }
  },
};
