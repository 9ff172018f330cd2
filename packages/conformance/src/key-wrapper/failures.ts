import { setTimeout as pause } from 'node:timers/promises';
import { inspect, types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { flipped } from '../bytes.ts';
import { expectThat } from '../requirement.ts';
import { contentsOf, printed, shows } from '../secrets.ts';
import { describeThrown, difference } from '../thrown.ts';
import { watchOutput } from '../watch.ts';
import {
  copyOf,
  isArgumentError,
  isKeyWrapperError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
} from './trial.ts';

/** What is printed of a call by then is seen: milliseconds. */
const LATER_MS = 50;

/** A call that failed, and the data key it had to do with. */
interface Failure {
  readonly keyWrapper: KeyWrapper;
  readonly operation: string;
  readonly error: unknown;
  readonly what: string;
}

export const FAILURE_CHECKS: KeyWrapperChecks = {
  'WRAP-ERROR-CLASS': async (trial) => {
    for (const { error, what } of (await failuresOf(trial)).failures) {
      expectThat(isKeyWrapperError(error), `${what}: expected a KeyWrapperError, got ${describeThrown(error)}`);
    }
  },
  'WRAP-ERROR-SUMMARY': async (trial) => {
    for (const { error, keyWrapper, operation, what } of (await failuresOf(trial)).failures) {
      if (!isKeyWrapperError(error)) continue;
      const summary = Object(error.summary) as Record<string, unknown>;
      for (const [name, expected] of Object.entries({ provider: keyWrapper.provider, operation })) {
        const named = String(summary[name]);
        // What generates by a wrap of its own may say so.
        const isRight = named === expected || (expected === 'generate' && named === 'wrap');
        expectThat(isRight, `${what}: the summary’s ${name} is wrong: ${difference(named, expected)}`);
      }
    }
  },
  'WRAP-ERROR-SECRET': async (trial) => {
    const { failures, dataKey } = await failuresOf(trial);
    for (const { error, what } of [...failures, ...(await wrongArguments(trial, dataKey))]) {
      expectThat(!shows(contentsOf(error), dataKey), `the error of ${what} shows the data key`);
    }
  },
  'WRAP-ERROR-CAUSE': async (trial) => {
    for (const { error, what } of (await failuresOf(trial)).failures) {
      const attached = attachedTo(error).find((one) => !isKeyWrapperError(one));
      expectThat(attached === undefined, `attached to the error of ${what} is ${describeThrown(attached)}`);
    }
  },
  'WRAP-OUTPUT-SECRET': async (trial) => {
    const watched = watchOutput(true);
    const keys: Uint8Array[] = [];
    try {
      keys.push((await failuresOf(trial)).dataKey);
      const keyWrapper = await trial.create();
      for (const made of await trial.makeEach(keyWrapper)) {
        await trial.unwrap(keyWrapper, made.wrapped);
        keys.push(made.dataKey);
      }
      await wrongArguments(trial, keys[0] ?? new Uint8Array(32));
      await pause(LATER_MS);
    } finally {
      watched.stop();
    }
    const seen = { texts: [watched.printed()], bytes: watched.bytes() };
    for (const key of keys) expectThat(!shows(seen, key), 'the data key was printed');
  },
  'WRAP-INSPECT-SECRET': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.makeEach(keyWrapper);
    for (const { wrapped, by } of made) {
      await trial.unwrap(keyWrapper, wrapped);
      const aborted = { ...OPTIONS, signal: AbortSignal.abort() };
      await trial.settle(() => keyWrapper.wrap(made[0]?.dataKey ?? wrapped.wrapped, aborted), by);
      for (const { dataKey } of made) {
        expectThat(
          !shows({ texts: [printed(keyWrapper, 4), inspect(keyWrapper)], bytes: [] }, dataKey),
          'a print of the key wrapper shows a data key that it has handled',
        );
      }
    }
  },
};

/** Every failure that can be brought about, each of a call that has to do with one data key. */
async function failuresOf(
  trial: KeyWrapperTrial,
): Promise<{ readonly failures: readonly Failure[]; readonly dataKey: Uint8Array }> {
  const { keyWrapper, dataKey, wrapped } = await trial.createOpened();
  const made: Made = { dataKey, wrapped };
  const changed = { ...wrapped, wrapped: flipped(wrapped.wrapped, wrapped.wrapped.length - 1) };
  const failures: Failure[] = [];
  const note = async (asked: KeyWrapper, operation: string, what: string, start: () => unknown): Promise<void> => {
    const outcome = await trial.settle(start, `${operation}, ${what}`);
    // Whether it had to fail is for other requirements to say.
    if ('value' in outcome) return;
    failures.push({ keyWrapper: asked, operation, error: outcome.error, what: `${operation}, ${what},` });
  };
  const each = async (asked: KeyWrapper, what: string, signal?: AbortSignal): Promise<void> => {
    const calls = trial.calls(asked, made);
    await Promise.all(calls.map(({ name, start }) => note(asked, name, what, () => start(signal))));
  };

  await note(keyWrapper, 'unwrap', 'of a changed wrapped key', () => keyWrapper.unwrap(copyOf(changed), OPTIONS));
  await note(keyWrapper, 'unwrap', 'under another context', () => keyWrapper.unwrap(copyOf(wrapped), { context: {} }));
  await note(keyWrapper, 'unwrap', 'of another provider’s wrapped key', () =>
    keyWrapper.unwrap({ ...copyOf(wrapped), provider: 'conformance-elsewhere' }, OPTIONS),
  );
  await each(keyWrapper, 'aborted', AbortSignal.abort());
  const controller = new AbortController();
  const underWay = each(keyWrapper, 'aborted under way', controller.signal);
  controller.abort();
  await underWay;
  if (trial.target.createUnreachable !== undefined) {
    await each(await trial.createUnreachable(), 'with a service that cannot be reached');
  }
  const { control = {} } = trial.target;
  for (const [change, undo, state] of [
    ['disable', 'enable', 'disabled'],
    ['deny', 'allow', 'denied'],
  ] as const) {
    if (control[change] === undefined) continue;
    const steps = trial.control(change, undo);
    await steps[change]();
    try {
      await each(keyWrapper, state);
    } finally {
      await steps[undo]();
    }
  }
  return { failures, dataKey };
}

/** Calls that go wrong before they begin, with the data key in their arguments. */
async function wrongArguments(trial: KeyWrapperTrial, dataKey: Uint8Array): Promise<readonly Failure[]> {
  const keyWrapper = await trial.createUnasked();
  const hex = Buffer.from(dataKey).toString('hex');
  const base64 = Buffer.from(dataKey).toString('base64');
  const { provider, keyId } = keyWrapper;
  const given: readonly (readonly [operation: string, what: string, start: () => unknown])[] = [
    ['wrap', 'of a data key with a byte more', () => keyWrapper.wrap(Uint8Array.of(...dataKey, 1), OPTIONS)],
    ['wrap', 'of a data key with a byte less', () => keyWrapper.wrap(dataKey.slice(1), OPTIONS)],
    ['wrap', 'of a data key as an array', () => keyWrapper.wrap([...dataKey] as never, OPTIONS)],
    ['wrap', 'of a data key as hexadecimal text', () => keyWrapper.wrap(hex as never, OPTIONS)],
    ['wrap', 'of a data key as base64', () => keyWrapper.wrap(base64 as never, OPTIONS)],
    ['wrap', 'without options', () => keyWrapper.wrap(Uint8Array.from(dataKey), undefined as never)],
    [
      'wrap',
      'under a context of numbers',
      () => keyWrapper.wrap(Uint8Array.from(dataKey), { context: { a: 1 } } as never),
    ],
    ['unwrap', 'of text', () => keyWrapper.unwrap({ provider, keyId, wrapped: hex } as never, OPTIONS)],
    ['sign', 'of hexadecimal text', () => keyWrapper.sign?.(hex as never)],
  ];
  const failures: Failure[] = [];
  for (const [operation, words, start] of given) {
    const what = `${operation} ${words}`;
    const outcome = await trial.settle(start, what);
    if ('error' in outcome) failures.push({ keyWrapper, operation, error: outcome.error, what });
  }
  return failures;
}

function attachedTo(error: unknown): readonly unknown[] {
  if (!types.isNativeError(error) || isArgumentError(error)) return [];
  return Reflect.ownKeys(error)
    .map((name) => Reflect.get(error, name))
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter((value) => types.isNativeError(value));
}
