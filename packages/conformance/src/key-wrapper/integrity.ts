import type { WrappedKey } from '@sealring/core';
import { type Check, expectThat } from '../requirement.ts';
import {
  CONTEXT,
  copyOf,
  describeError,
  expectKind,
  isArgumentError,
  isKeyWrapperError,
  type KeyWrapperTrial,
} from './trial.ts';

/** Bits that are flipped: the first, the last, and some between them. Each is a call. */
const FLIPS = 10;

/** Wrapped keys that were changed since they were made. */
export const INTEGRITY_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  alterations('WRAP-BIT-FLIP', ({ wrapped }, trial) => {
    const positions = Array.from({ length: FLIPS }, (_, i) => Math.floor((i * (wrapped.length - 1)) / (FLIPS - 1)));
    return [...new Set(positions)].map((at) => {
      const bit = trial.random.below(8);
      const bytes = wrapped.map((byte, i) => (i === at ? byte ^ (1 << bit) : byte));
      return [bytes, `with bit ${bit} of byte ${at + 1} of ${wrapped.length} flipped`];
    });
  }),
  alterations('WRAP-TRUNCATION', ({ wrapped }) => [
    [wrapped.slice(0, -1), 'without its last byte'],
    // Of RSA a wrapped key is a number, and with a zero at its head it may be the same one without.
    ...(wrapped[0] === 0 ? [] : [[wrapped.slice(1), 'without its first byte'] as const]),
    [wrapped.slice(0, wrapped.length >> 1), 'cut in half'],
    [wrapped.slice(0, 1), 'cut to one byte'],
  ]),
  alterations('WRAP-EXTENSION', ({ wrapped }) => [
    [Uint8Array.of(...wrapped, 0), 'with a zero after it'],
    [Uint8Array.of(...wrapped, 0x0a), 'with a newline after it'],
    [Uint8Array.of(1, ...wrapped), 'with a byte before it'],
    [Uint8Array.of(...wrapped, ...wrapped), 'twice over'],
  ]),
  {
    id: 'WRAP-EMPTY',
    async run(trial) {
      const keyWrapper = await trial.create();
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const what = 'a wrapped key of no bytes';
      const empty = { ...made, wrapped: new Uint8Array(0) };
      const error = await trial.refusal(() => keyWrapper.unwrap(empty, { context: CONTEXT }), what);
      // Whoever calls that a wrong argument is right, too.
      if (!isArgumentError(error)) expectKind(error, 'corrupt', what);
    },
  },
  {
    id: 'WRAP-SPLICE',
    async run(trial) {
      const keyWrapper = await trial.create();
      const one = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const other = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const middle = one.wrapped.length >> 1;
      for (const [head, tail] of [
        [one, other],
        [other, one],
      ] as const) {
        const wrapped = Uint8Array.of(...head.wrapped.subarray(0, middle), ...tail.wrapped.subarray(middle));
        await trial.expectCorrupt(keyWrapper, { ...one, wrapped }, 'a wrapped key of two halves');
      }
    },
  },
  {
    id: 'WRAP-AFTER-REFUSAL',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      const last = made.wrapped.length - 1;
      const changed = { ...made, wrapped: made.wrapped.map((byte, i) => (i === last ? byte ^ 1 : byte)) };
      const refuse = (): Promise<unknown> =>
        trial.refusal(() => keyWrapper.unwrap(copyOf(changed), { context: CONTEXT }), 'a changed wrapped key');
      for (let i = 0; i < 3; i++) {
        const error = await refuse();
        expectThat(isKeyWrapperError(error), `a changed wrapped key: got ${describeError(error)}`);
      }
      await trial.expectOpens(keyWrapper, made, dataKey, 'a good wrapped key, after three bad ones,');
      // And back: what was opened just now makes no bad one good.
      await refuse();
    },
  },
];

/** Wraps and opens once, and holds each altered form to be corrupt. */
function alterations(
  id: string,
  alter: (made: WrappedKey, trial: KeyWrapperTrial) => readonly (readonly [Uint8Array, string])[],
): Check<KeyWrapperTrial> {
  return {
    id,
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      // What it opened before makes nothing like it good.
      await trial.expectOpens(keyWrapper, made, dataKey);
      for (const [wrapped, what] of alter(made, trial)) {
        await trial.expectCorrupt(keyWrapper, { ...made, wrapped }, `a wrapped key ${what}`);
      }
    },
  };
}
