import type { KeyWrapper } from '@sealring/core';
import { type Check, Finding, NotApplicable } from '../requirement.ts';
import { CONTEXT, expectArgumentError, expectKind, isArgumentError, type KeyWrapperTrial, settle } from './trial.ts';

/** Calls that nobody should make, tried where asking the service would show. */
export const WRONG_ARGUMENT_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-KEY-LENGTH',
    async run(trial) {
      const keyWrapper = await trial.createUnasked();
      const lengths = [0, 16, 31, 33, keyWrapper.supports.context ? 64 : 65];
      for (const length of lengths) {
        const what = `wrap of ${length} bytes`;
        expectArgumentError(await trial.refusal(wrapOf(keyWrapper, trial.random.bytes(length)), what), what);
      }
    },
  },
  {
    id: 'WRAP-KEY-CONSTANT',
    async run(trial) {
      const keyWrapper = await trial.createUnasked();
      if (!keyWrapper.supports.context) {
        throw new NotApplicable('supports.context is false: the ring hands over more than a data key');
      }
      for (const byte of [0, 0xff]) {
        const what = `wrap of 32 times the byte ${byte}`;
        expectArgumentError(await trial.refusal(wrapOf(keyWrapper, new Uint8Array(32).fill(byte)), what), what);
      }
    },
  },
  {
    id: 'WRAP-ARGUMENTS',
    async run(trial) {
      const keyWrapper = await trial.createUnasked();
      const dataKey = trial.dataKey(keyWrapper);
      for (const [given, what] of [
        [undefined, 'nothing'],
        [null, 'null'],
        ['a'.repeat(dataKey.length), 'text'],
        [[...dataKey], 'an array of numbers'],
        [{ length: dataKey.length }, 'an object with a length'],
      ] as const) {
        expectArgumentError(await trial.refusal(wrapOf(keyWrapper, given), `wrap of ${what}`), `wrap of ${what}`);
      }
      for (const given of [undefined, null, 'text']) {
        const what = `unwrap of ${String(given)}`;
        const error = await trial.refusal(() => keyWrapper.unwrap(given as never, { context: CONTEXT }), what);
        // It may have come out of a store.
        if (!isArgumentError(error)) expectKind(error, 'corrupt', what);
      }
      if (!keyWrapper.supports.context) return;
      for (const options of [undefined, {}]) {
        const what = 'wrap without a context';
        expectArgumentError(await trial.refusal(() => keyWrapper.wrap(dataKey, options as never), what), what);
      }
    },
  },
  {
    id: 'WRAP-ARGUMENT-CONTEXT',
    async run(trial) {
      const keyWrapper = await trial.createUnasked();
      if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
      const dataKey = trial.dataKey(keyWrapper);
      for (const [context, what] of [
        [{ ...CONTEXT, number: 1 }, 'a number in it'],
        [{ ...CONTEXT, nothing: null }, 'null in it'],
        ['text', 'text for an object'],
      ] as const) {
        const words = `wrap under a context with ${what}`;
        expectArgumentError(await trial.refusal(() => keyWrapper.wrap(dataKey, { context } as never), words), words);
      }
    },
  },
  {
    id: 'WRAP-REJECTS',
    async run(trial) {
      const keyWrapper = await trial.createUnasked();
      const context = CONTEXT;
      const signal = AbortSignal.abort();
      const dataKey = trial.dataKey(keyWrapper);
      await expectRejection('wrap of nothing', () => keyWrapper.wrap(undefined as never, { context }));
      await expectRejection('unwrap of nothing', () => keyWrapper.unwrap(undefined as never, { context }));
      await expectRejection('an aborted wrap', () => keyWrapper.wrap(dataKey, { context, signal }));
      await expectRejection('generate without options', () => keyWrapper.generate?.(undefined as never));
      await expectRejection('sign of nothing', () => keyWrapper.sign?.(undefined as never));
      await expectRejection('sign with text for options', () => keyWrapper.sign?.(dataKey, 'text' as never));
    },
  },
];

function wrapOf(keyWrapper: KeyWrapper, dataKey: unknown): () => unknown {
  return () => keyWrapper.wrap(dataKey as Uint8Array, { context: CONTEXT });
}

async function expectRejection(what: string, start: () => unknown): Promise<void> {
  let call: unknown;
  try {
    call = start();
  } catch {
    throw new Finding(`${what} threw, before there was a promise`);
  }
  await settle(() => call);
}
