import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { describeError, type KeyWrapperTrial, kindOf } from './trial.ts';

/** A name that no key wrapper has. */
const ELSEWHERE = 'conformance-elsewhere';

/** Wrapped keys of other providers and of other KMS keys. */
export const OTHER_KEY_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-OTHER-KEY',
    async run(trial) {
      const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const { wrapped } = await trial.wrap(other, trial.dataKey(other));
      await trial.expectCorrupt(keyWrapper, { ...made, wrapped }, 'another KMS key’s bytes under our key’s name');
    },
  },
  {
    id: 'WRAP-OTHER-KEY-NAMED',
    async run(trial) {
      const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      const theirs = await trial.wrap(other, trial.dataKey(other));
      // What it opened before does not open under another name.
      await trial.expectOpens(keyWrapper, made, dataKey);
      await trial.expectCorrupt(keyWrapper, theirs, 'another KMS key’s wrapped key');
      const relabelled = { ...made, keyId: theirs.keyId };
      await trial.expectCorrupt(keyWrapper, relabelled, 'our wrapped key under another KMS key’s name');
    },
  },
  {
    id: 'WRAP-FOREIGN-PROVIDER',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      await trial.expectOpens(keyWrapper, made, dataKey);
      for (const provider of [ELSEWHERE, keyWrapper.provider.toUpperCase()]) {
        await trial.expectCorrupt(keyWrapper, { ...made, provider }, `our wrapped key under the provider ${provider}`);
      }
    },
  },
  {
    id: 'WRAP-BEFORE-CALL',
    async run(trial) {
      const unreachable = await trial.createUnreachable();
      const [keyWrapper, other] = [await trial.create(), await trial.createOtherKey()];
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const theirs = await trial.wrap(other, trial.dataKey(other));
      const foreign = { ...made, provider: ELSEWHERE };
      await trial.expectCorrupt(unreachable, foreign, 'another provider’s, with a service that cannot be reached');
      await trial.expectCorrupt(unreachable, theirs, 'another KMS key’s, with a service that cannot be reached');
    },
  },
  {
    id: 'WRAP-OWNS',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (keyWrapper.owns === undefined) throw new NotApplicable('the key wrapper has no owns');
      const other = await trial.createOtherKey();
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const theirs = await trial.wrap(other, trial.dataKey(other));
      // The one that cannot reach its service is to say the same.
      for (const asked of [keyWrapper, await trial.createUnasked()]) {
        for (const [wrapped, expected, what] of [
          [made, true, 'its own wrapped key'],
          [{ ...made, provider: ELSEWHERE }, false, 'another provider’s wrapped key'],
          [theirs, false, 'another KMS key’s wrapped key'],
        ] as const) {
          expectThat(sayOf(() => asked.owns?.(wrapped)) === expected, `owns did not say ${expected} of ${what}`);
        }
      }
    },
  },
];

function sayOf(ask: () => unknown): boolean {
  let answer: unknown;
  try {
    answer = ask();
  } catch (error) {
    throw new Finding(`owns threw ${describeError(error)}`);
  }
  expectThat(typeof answer === 'boolean', `owns returned ${kindOf(answer)}, not true or false`);
  return answer;
}
