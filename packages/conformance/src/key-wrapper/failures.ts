import { inspect, types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { type Check, expectThat } from '../requirement.ts';
import { contentsOf, printed, shows } from '../secrets.ts';
import {
  CONTEXT,
  copyOf,
  describeError,
  isArgumentError,
  isKeyWrapperError,
  type KeyWrapperTrial,
  settle,
} from './trial.ts';
import { watchOutput } from './watch-output.ts';

const OPERATIONS: readonly unknown[] = ['wrap', 'unwrap', 'generate', 'sign'];

interface Failure {
  readonly keyWrapper: KeyWrapper;
  readonly error: unknown;
  readonly what: string;
}

/** The one error that failures are, and what it may tell. */
export const FAILURE_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-ERROR-CLASS',
    async run(trial) {
      const { failures } = await failuresOf(trial);
      for (const { error, what } of failures) {
        expectThat(isKeyWrapperError(error), `${what}: expected a KeyWrapperError, got ${describeError(error)}`);
      }
    },
  },
  {
    id: 'WRAP-ERROR-SUMMARY',
    async run(trial) {
      const { failures } = await failuresOf(trial);
      for (const { error, keyWrapper, what } of failures) {
        if (!isKeyWrapperError(error)) continue;
        const { provider, operation } = Object(error.summary) as Record<string, unknown>;
        expectThat(provider === keyWrapper.provider, `${what}: the summary does not name the provider`);
        expectThat(OPERATIONS.includes(operation), `${what}: the summary does not name the operation`);
      }
    },
  },
  {
    id: 'WRAP-ERROR-SECRET',
    async run(trial) {
      const { failures, dataKey } = await failuresOf(trial);
      for (const { error, what } of [...failures, ...(await wrongArguments(trial, dataKey))]) {
        expectThat(!shows(contentsOf(error), dataKey), `the error of ${what} shows the data key`);
      }
    },
  },
  {
    id: 'WRAP-ERROR-CAUSE',
    async run(trial) {
      const { failures } = await failuresOf(trial);
      for (const { error, what } of failures) {
        const attached = attachedTo(error).find((one) => !isKeyWrapperError(one));
        expectThat(attached === undefined, `attached to the error of ${what} is ${describeError(attached)}`);
      }
    },
  },
  {
    id: 'WRAP-OUTPUT-SECRET',
    async run(trial) {
      const watched = watchOutput();
      let dataKey: Uint8Array;
      try {
        ({ dataKey } = await failuresOf(trial));
        const keyWrapper = await trial.create();
        await trial.unwrap(keyWrapper, await trial.wrap(keyWrapper, dataKey));
      } finally {
        watched.stop();
      }
      expectThat(!shows({ texts: [watched.printed()], bytes: [] }, dataKey), 'the data key was printed');
    },
  },
  {
    id: 'WRAP-INSPECT-SECRET',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      await trial.unwrap(keyWrapper, made);
      expectThat(
        !shows({ texts: [printed(keyWrapper, 4), inspect(keyWrapper)], bytes: [] }, dataKey),
        'a print of the key wrapper shows a data key that it has handled',
      );
    },
  },
];

/** Every failure that can be brought about, each of a call that has to do with one data key. */
async function failuresOf(
  trial: KeyWrapperTrial,
): Promise<{ readonly failures: readonly Failure[]; readonly dataKey: Uint8Array }> {
  const keyWrapper = await trial.create();
  const dataKey = trial.dataKey(keyWrapper);
  const made = await trial.wrap(keyWrapper, dataKey);
  const last = made.wrapped.length - 1;
  const changed = { ...made, wrapped: made.wrapped.map((byte, i) => (i === last ? byte ^ 1 : byte)) };
  const signal = AbortSignal.abort();
  const wrap = (asked: KeyWrapper) => () => asked.wrap(Uint8Array.from(dataKey), { context: CONTEXT });
  const unwrap = (asked: KeyWrapper) => () => asked.unwrap(copyOf(made), { context: CONTEXT });
  const failures: Failure[] = [];
  const note = async (asked: KeyWrapper, what: string, start: () => unknown): Promise<void> => {
    const outcome = await settle(start);
    // Whether it had to fail is for other requirements to say.
    if ('error' in outcome) failures.push({ keyWrapper: asked, error: outcome.error, what });
  };

  await note(keyWrapper, 'unwrap of a changed wrapped key', () => keyWrapper.unwrap(changed, { context: CONTEXT }));
  await note(keyWrapper, 'unwrap under another context', () => keyWrapper.unwrap(copyOf(made), { context: {} }));
  await note(keyWrapper, 'unwrap of another provider’s wrapped key', () =>
    keyWrapper.unwrap({ ...copyOf(made), provider: 'conformance-elsewhere' }, { context: CONTEXT }),
  );
  await note(keyWrapper, 'an aborted wrap', () =>
    keyWrapper.wrap(Uint8Array.from(dataKey), { context: CONTEXT, signal }),
  );
  if (trial.subject.createUnreachable !== undefined) {
    const unreachable = await trial.createUnreachable();
    await Promise.all([
      note(unreachable, 'wrap, with a service that cannot be reached,', wrap(unreachable)),
      note(unreachable, 'unwrap, with a service that cannot be reached,', unwrap(unreachable)),
    ]);
  }
  const { control } = trial.subject;
  for (const [change, undo, state] of [
    ['disable', 'enable', 'disabled'],
    ['deny', 'allow', 'denied'],
  ] as const) {
    if (control[change] === undefined) continue;
    await control[change]();
    try {
      await note(keyWrapper, `wrap, ${state},`, wrap(keyWrapper));
      await note(keyWrapper, `unwrap, ${state},`, unwrap(keyWrapper));
    } finally {
      await control[undo]?.();
    }
  }
  return { failures, dataKey };
}

/** Calls that go wrong before they begin, with the data key in their arguments. */
async function wrongArguments(trial: KeyWrapperTrial, dataKey: Uint8Array): Promise<readonly Failure[]> {
  const keyWrapper = await trial.createUnasked();
  const given: readonly (readonly [string, unknown, unknown])[] = [
    ['wrap of a data key with a byte more', Uint8Array.of(...dataKey, 1), { context: CONTEXT }],
    ['wrap of a data key as an array', [...dataKey], { context: CONTEXT }],
    ['wrap of a data key as text', Buffer.from(dataKey).toString('hex'), { context: CONTEXT }],
    ['wrap without options', Uint8Array.from(dataKey), undefined],
  ];
  const failures: Failure[] = [];
  for (const [what, key, options] of given) {
    const outcome = await settle(() =>
      keyWrapper.wrap(key as Uint8Array, options as { readonly context: object } as never),
    );
    if ('error' in outcome) failures.push({ keyWrapper, error: outcome.error, what });
  }
  return failures;
}

/** Errors that another one carries along. */
function attachedTo(error: unknown): readonly unknown[] {
  if (!types.isNativeError(error) || isArgumentError(error)) return [];
  return Reflect.ownKeys(error)
    .map((name) => Reflect.get(error, name))
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter((value) => types.isNativeError(value));
}
