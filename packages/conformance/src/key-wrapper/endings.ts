import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { sameBytes } from '../codec/trial.ts';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import {
  CONTEXT,
  copyOf,
  describeError,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperTrial,
  type Outcome,
  promptly,
  settle,
} from './trial.ts';

type Operation = readonly [name: string, start: (signal?: AbortSignal) => unknown];

/** How calls end that cannot succeed, are given up, or outlive their key wrapper. */
export const ENDING_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-UNREACHABLE',
    async run(trial) {
      const unreachable = await trial.createUnreachable();
      const keyWrapper = await trial.create();
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const calls = operations(unreachable, trial.dataKey(unreachable), made).map(([name, start]) =>
        trial.refusal(start, `${name}, with a service that cannot be reached,`).then((error) => [name, error] as const),
      );
      for (const [name, error] of await Promise.all(calls)) {
        expectKind(error, 'unavailable', `${name}, with a service that cannot be reached`);
      }
    },
  },
  {
    id: 'WRAP-ABORT',
    async run(trial) {
      const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      for (const [asked, where] of [
        [keyWrapper, ''],
        [unasked, ', with a service that cannot be reached'],
      ] as const) {
        for (const [name, start] of operations(asked, dataKey, made)) {
          const what = `${name}, aborted under way${where}`;
          const outcome = await promptly(abortedUnderWay(start), what);
          // What wraps within the process may be done before anybody can abort it.
          if (outcome === undefined || ('value' in outcome && !trial.subject.supports.remote)) continue;
          expectThat('error' in outcome, `${what}, went on and succeeded`);
          expectKind(outcome.error, 'unavailable', what);
        }
      }
    },
  },
  {
    id: 'WRAP-ABORTED',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      // What it opened before is no answer either.
      await trial.expectOpens(keyWrapper, made, dataKey);
      for (const [name, start] of operations(keyWrapper, dataKey, made)) {
        const what = `${name} with a signal that has aborted`;
        const error = await promptly(
          trial.refusal(() => start(AbortSignal.abort()), what),
          what,
        );
        expectKind(error, 'unavailable', what);
      }
    },
  },
  {
    id: 'WRAP-CLOSE',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      const underWay = settle(() => keyWrapper.unwrap(copyOf(made), { context: CONTEXT }));
      await trial.closeKeyWrapper(keyWrapper);
      expectEnd(await promptly(underWay, 'a call under way when it was closed'), dataKey, 'a call under way');
      const late = settle(() => keyWrapper.unwrap(copyOf(made), { context: CONTEXT }));
      expectEnd(await promptly(late, 'a call after close'), dataKey, 'a call after close');
    },
  },
  {
    id: 'WRAP-CLOSED',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (keyWrapper.close === undefined) throw new NotApplicable('the key wrapper has no close');
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      await trial.expectOpens(keyWrapper, made, dataKey);
      await trial.closeKeyWrapper(keyWrapper);
      for (const [name, start] of operations(keyWrapper, dataKey, made)) {
        const what = `${name} after close`;
        expectKind(await promptly(trial.refusal(start, what), what), 'unavailable', what);
      }
      await trial.closeKeyWrapper(keyWrapper);
    },
  },
];

/** Every call of the key wrapper that may go to its service. */
function operations(keyWrapper: KeyWrapper, dataKey: Uint8Array, made: WrappedKey): readonly Operation[] {
  const all: readonly Operation[] = [
    ['wrap', (signal) => keyWrapper.wrap(Uint8Array.from(dataKey), optionsOf(signal))],
    ['unwrap', (signal) => keyWrapper.unwrap(copyOf(made), optionsOf(signal))],
    ['generate', (signal) => keyWrapper.generate?.(optionsOf(signal))],
    ['sign', (signal) => keyWrapper.sign?.(dataKey, signal === undefined ? {} : { signal })],
  ];
  return all.filter(([name]) => Reflect.get(keyWrapper, name) !== undefined);
}

/** How it ends; undefined for what ended before anybody could have waited for an answer. */
async function abortedUnderWay(start: (signal: AbortSignal) => unknown): Promise<Outcome | undefined> {
  const controller = new AbortController();
  let hasEnded = false;
  const call = settle(() => start(controller.signal)).finally(() => {
    hasEnded = true;
  });
  // No answer of a service comes without a turn of the event loop, and this leaves it none.
  for (let i = 0; i < 20; i++) await Promise.resolve();
  if (hasEnded) return undefined;
  controller.abort();
  return call;
}

/** It may still succeed, or fail as every call may. */
function expectEnd(outcome: Outcome, dataKey: Uint8Array, what: string): void {
  if ('error' in outcome) {
    expectThat(isKeyWrapperError(outcome.error), `${what} failed with ${describeError(outcome.error)}`);
  } else {
    expectThat(sameBytes(outcome.value as Uint8Array, dataKey), `${what} gave other bytes than the data key`);
  }
}

function optionsOf(signal: AbortSignal | undefined): WrapOptions {
  return { context: CONTEXT, ...(signal !== undefined && { signal }) };
}
