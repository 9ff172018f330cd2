import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import { ALIKE_CHARACTERS, type Alike, LONG_CONTEXTS, lookAlike, SHIFTED_CONTEXTS } from './alike-contexts.ts';
import { CONTEXT, copyOf, expectKind, isKeyWrapperError, type KeyWrapperTrial, settle } from './trial.ts';

/** What a wrap is bound to. */
export const CONTEXT_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-CONTEXT-BINDS',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      // What it opened before must not answer for another context.
      await trial.expectOpens(keyWrapper, made, dataKey);
      const { 'sealring:ring': ring = '', 'sealring:purpose': purpose = '', ...rest } = CONTEXT;
      const less = { ...rest, 'sealring:ring': ring };
      const others = [
        [{ ...CONTEXT, 'sealring:purpose': 'another' }, 'with another value'],
        [{ ...CONTEXT, 'sealring:purpose': 'Data-Key' }, 'with a value in other case'],
        [{ ...CONTEXT, more: '' }, 'with a member more'],
        [less, 'with a member less'],
        [{ ...less, 'sealring:purposes': purpose }, 'with another name'],
      ] as const;
      for (const [context, what] of others) {
        await trial.expectCorrupt(keyWrapper, made, `its wrapped key under a context ${what}`, { context });
      }
      for (const [context, what] of [
        [{ ...CONTEXT, 'sealring:ring': 'another' }, 'another ring’s context'],
        [{ 'sealring:ring': purpose, 'sealring:purpose': ring }, 'a context whose values are swapped'],
        [{}, 'an empty context'],
      ] as const) {
        const under = `its wrapped key under ${what}`;
        const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(made), { context }), under);
        // A policy may hold the caller to one ring, and comes first.
        if (!isKeyWrapperError(error) || error.kind !== 'denied') expectKind(error, 'corrupt', under);
      }
      return expectApart(trial, LONG_CONTEXTS);
    },
  },
  {
    id: 'WRAP-CONTEXT-BOUNDARIES',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper), { context: { ...CONTEXT, ab: 'cd' } });
      const context = { ...CONTEXT, abc: 'd' };
      await trial.expectCorrupt(keyWrapper, made, 'its wrapped key of ab: cd under abc: d', { context });
      return expectApart(trial, ...SHIFTED_CONTEXTS, ALIKE_CHARACTERS);
    },
  },
  {
    id: 'WRAP-CONTEXT-ORDER',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const context = Object.fromEntries(Object.entries(CONTEXT).toReversed());
      const made = await trial.wrap(keyWrapper, dataKey);
      await trial.expectOpens(keyWrapper, made, dataKey, 'its wrapped key under the same context in another order', {
        context,
      });
    },
  },
  {
    id: 'WRAP-CONTEXT-DECLARED',
    async run(trial) {
      const keyWrapper = await trial.create();
      if (keyWrapper.supports.context) throw new NotApplicable('supports.context is true: WRAP-CONTEXT-BINDS tells');
      const made = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      const context = { ...CONTEXT, 'sealring:purpose': 'another' };
      const outcome = await settle(() => keyWrapper.unwrap(copyOf(made), { context }));
      expectThat('value' in outcome, 'supports.context is false, but another context is refused');
    },
  },
];

/** Resolves to what the service does not take. @throws {Finding} when one context opens what another one was given for. */
async function expectApart(
  trial: KeyWrapperTrial,
  ...groups: readonly (readonly Alike[])[]
): Promise<string | undefined> {
  const notTaken: string[] = [];
  for (const group of groups) {
    const { found, leftOut } = await lookAlike(trial, group);
    if (found !== undefined) throw new Finding(`its wrapped key under the same context ${found}`);
    notTaken.push(...leftOut);
  }
  if (notTaken.length === 0) return undefined;
  return `not tried, since wrap refused the context: ${notTaken[0]}, and ${notTaken.length - 1} more`;
}
