import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { KeyWrapper, WrapOptions } from '@sealring/core';
import { sameBytes } from '../bytes.ts';
import { expectNoPatches } from '../observe.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import { expectNoListeners, expectNoTimers, expectQuiet } from '../watch.ts';
import { expectKind, isKeyWrapperError } from './errors.ts';
import {
  altered,
  type Call,
  copyOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  NOWHERE,
  OPTIONS,
  promptly,
  wrappedKeyOf,
} from './trial.ts';

/** Longest wait for the answer to an aborted call, in milliseconds. */
const LATE_MS = 500;

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
};

const BESIDE = ' of one instance, in progress while another one was closed,';

/** Checks of the effects of close. They run last, since a wrapper that closes a shared client breaks later checks. */
export const CLOSING_CHECKS: KeyWrapperChecks = {
  'WRAP-CLOSE-ALONE': async (trial) => {
    const [keyWrapper, before] = [await trial.create(), await trial.create()];
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    const made = await trial.make(keyWrapper);
    const underWay = trial.calls(before, made).map(({ name, start }) => trial.answer(start, `${name}${BESIDE}`));
    await trial.closeKeyWrapper(keyWrapper);
    // A second close must not count as that of another instance.
    await trial.settle(() => keyWrapper.close?.(), 'close');
    await trial.all(underWay);
    const expectWorks = async (other: KeyWrapper): Promise<void> => {
      for (const { name, start } of trial.calls(other, made)) {
        await trial.answer(start, `${name} of one instance, after another one was closed,`);
      }
    };
    await expectWorks(before);
    // Creates this instance only now, since a new instance may reconnect a client that the closed instance shared.
    await expectWorks(await trial.create());
  },
  'WRAP-CLOSE': async (trial) => {
    const opener = await trial.create();
    const made = await trial.make(opener);
    const bad = altered(made);
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
          await trial.expectOpens(opener, { ...made, wrapped }, 'a wrapped key made during a close');
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
    const outcome = await promptly(call, 'close of an instance that was never used');
    const failed = 'error' in outcome ? describeThrown(outcome.error) : '';
    expectThat(failed === '', `close of an instance that was never used failed with ${failed}`);
    expectThat(isThenable(closing), `close returned ${kindOf(closing)}, not a promise`);
  },
  'WRAP-CLOSED': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
    await trial.closeKeyWrapper(keyWrapper);
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      const what = `${name} after close`;
      const outcome = await promptly(trial.promised(start, what), what);
      // A key wrapper that holds no resources has nothing to close, so its calls may still succeed.
      if ('error' in outcome) expectKind(outcome.error, 'unavailable', what);
    }
    await Promise.all([trial.closeKeyWrapper(keyWrapper), trial.closeKeyWrapper(keyWrapper)]);
  },
  'WRAP-INSTANCE-CLOSES': async (trial) => {
    await trial.createOpened();
    await trial.expectCloses();
  },
};

/** Expects a call to succeed or to fail with a KeyWrapperError. */
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
    const use = async (keyWrapper: KeyWrapper): Promise<void> => {
      const made = await trial.make(await trial.create());
      for (const { name, start } of trial.calls(keyWrapper, made)) {
        const controller = new AbortController();
        const signals = [undefined, AbortSignal.abort(), controller.signal];
        const calls = signals.map((signal) => trial.settle(() => start(signal), name));
        controller.abort();
        await Promise.all(calls);
      }
      await trial.settle(() => keyWrapper.close?.(), 'close');
    };
    await expectNoTimers(async () => {
      for (const keyWrapper of [await trial.create(), await trial.createUnasked()]) await use(keyWrapper);
      await trial.close();
    });
    // A key wrapper's own close must end everything that its calls started; the target's close must not be needed.
    const closable = await trial.create();
    if (closable.close !== undefined) await expectNoTimers(() => use(closable));
    await expectNoListeners(async () => {
      const keyWrapper = await trial.create();
      await trial.make(keyWrapper);
      await trial.settle(() => keyWrapper.close?.(), 'close');
      if (keyWrapper.close === undefined) await trial.close();
    });
  },
  'WRAP-QUIET': (trial) => expectQuiet(() => useEach(trial)),
  'WRAP-NO-GLOBALS': (trial) => expectNoPatches(trial.target, () => useEach(trial)),
  'WRAP-SIGNAL-LEFT': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const expectNone = async (calls: readonly Call[], when = ''): Promise<void> => {
      for (const { name, start } of calls) {
        const { signal } = new AbortController();
        for (let i = 0; i < 2; i++) await trial.settle(() => start(signal), name);
        await pause(1);
        const left = getEventListeners(signal, 'abort').length + (signal.onabort === null ? 0 : 1);
        expectThat(left === 0, `after ${name}${when}, ${left} listeners are left on its signal`);
      }
    };
    await expectNone(trial.calls(keyWrapper, made));
    for (const place of [0, made.wrapped.wrapped.length - 1]) {
      await expectNone(trial.calls(keyWrapper, altered(made, place)), ' of an altered wrapped key');
    }
    if (trial.target.control?.disable !== undefined) {
      const asked = await trial.create();
      const work = (): Promise<void> => expectNone(trial.calls(asked, made), ' while disabled');
      await trial.whileChanged(['disable', 'enable'], work);
    }
    await expectNoLateDates(trial, keyWrapper, made);
  },
};

/** Makes every call, and causes refusals. */
async function useEach(trial: KeyWrapperTrial): Promise<void> {
  const keyWrapper = await trial.create();
  const made = await trial.make(keyWrapper);
  for (const { name, start } of [made, altered(made)].flatMap((one) => trial.calls(keyWrapper, one))) {
    await Promise.all([undefined, AbortSignal.abort()].map((signal) => trial.settle(() => start(signal), name)));
  }
  await trial.settle(() => keyWrapper.close?.(), 'close');
}

/** Expects that an aborted call reports no date after it has rejected. */
async function expectNoLateDates(trial: KeyWrapperTrial, keyWrapper: KeyWrapper, made: Made): Promise<void> {
  const began = performance.now();
  await trial.expectOpens(keyWrapper, made);
  const answerMs = Math.min(LATE_MS, 2 * (performance.now() - began)) + LATE_MS / 10;
  for (const [name, start] of [
    ['wrap', (options: WrapOptions) => keyWrapper.wrap(Uint8Array.from(made.dataKey), options)],
    ['unwrap', (options: WrapOptions) => keyWrapper.unwrap(copyOf(made.wrapped), options)],
    ['generate', (options: WrapOptions) => keyWrapper.generate?.(options)],
  ] as const) {
    let hasEnded = false;
    let late = 0;
    const onServiceDate = (): void => void (late += Number(hasEnded));
    const controller = new AbortController();
    const options = { ...OPTIONS, signal: controller.signal, onServiceDate };
    const call = trial.settle(() => start(options), name);
    await pause(1);
    controller.abort();
    await call;
    hasEnded = true;
    await pause(answerMs);
    expectThat(late === 0, `an aborted ${name} reported a date after it had ended`);
  }
}
