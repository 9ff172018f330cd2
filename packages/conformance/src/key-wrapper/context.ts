import type { KeyWrapper } from '@sealring/core';
import { expectThat, Finding, must, NotApplicable, should } from '../requirement.ts';
import {
  ALIKE_CHARACTERS,
  type Alike,
  CUT_CONTEXTS,
  lookAlike,
  MANY_MEMBERS,
  ODD_NAMES,
  SHIFTED_CONTEXTS,
} from './alike-contexts.ts';
import { expectKind, isKeyWrapperError } from './errors.ts';
import { CONTRACT, clause, type KeyWrapperRequirement, KIT } from './requirement.ts';
import { CONTEXT, copyOf, type KeyWrapperTrial, type Made } from './trial.ts';

/** What a wrap is bound to. */
export const CONTEXT_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must('WRAP-CONTEXT-BINDS', 'A wrapped key under another context is refused as corrupt.', clause(2), async (trial) => {
    const { supports } = await trial.create();
    if (!supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
    const { 'sealring:ring': ring = '', 'sealring:purpose': purpose = '', ...rest } = CONTEXT;
    const less = { ...rest, 'sealring:ring': ring };
    // What it opened before must not answer for another context.
    for (const { keyWrapper, ...made } of await trial.createEach()) {
      const its = made.by === 'wrap' ? 'its wrapped key' : 'the wrapped key of generate';
      for (const [context, what] of [
        [{ ...CONTEXT, 'sealring:purpose': 'another' }, 'with another value'],
        [{ ...CONTEXT, 'sealring:purpose': 'Data-Key' }, 'with a value in other case'],
        [{ ...CONTEXT, more: '' }, 'with a member more'],
        [less, 'with a member less'],
        [{ ...less, 'sealring:purposes': purpose }, 'with another name'],
        [{ ...less, 'Sealring:Purpose': purpose }, 'with a name in other case'],
      ] as const) {
        await trial.expectCorrupt(keyWrapper, made.wrapped, `${its} under a context ${what}`, { context });
      }
      for (const [context, what] of [
        [{ ...CONTEXT, 'sealring:ring': 'another' }, 'another ring’s context'],
        [{ 'sealring:ring': purpose, 'sealring:purpose': ring }, 'a context whose values are swapped'],
        [{}, 'an empty context'],
      ] as const) {
        const under = `${its} under ${what}`;
        const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(made.wrapped), { context }), under);
        // A policy may hold the caller to one ring, and comes first.
        if (!isKeyWrapperError(error) || error.kind !== 'denied') expectKind(error, 'corrupt', under);
      }
    }
    await opensUnderNone(trial);
    return expectApart(trial, CUT_CONTEXTS, MANY_MEMBERS, ODD_NAMES);
  }),
  must(
    'WRAP-CONTEXT-BOUNDARIES',
    'A context whose names and values only read alike is another one.',
    clause(2),
    async (trial) => {
      const keyWrapper = await trial.create();
      if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
      const { wrapped } = await trial.make(keyWrapper, { context: { ...CONTEXT, ab: 'cd' } });
      const context = { ...CONTEXT, abc: 'd' };
      await trial.expectCorrupt(keyWrapper, wrapped, 'its wrapped key of ab: cd under abc: d', { context });
      return expectApart(trial, ...SHIFTED_CONTEXTS, ALIKE_CHARACTERS);
    },
  ),
  should('WRAP-CONTEXT-ORDER', 'The order of a context’s members does not matter.', KIT, async (trial) => {
    const keyWrapper = await trial.create();
    const numbered = Object.fromEntries(['b', 'a', 'Z', '_', '~', 'é', 'aa', 'a1'].map((name) => [name, 'x']));
    for (const given of [CONTEXT, { ...CONTEXT, ...numbered }]) {
      const context = Object.fromEntries(Object.entries(given).toReversed());
      const made = await madeUnder(trial, keyWrapper, given);
      for (const one of made) {
        const what = `what ${one.by} made under the same context in another order`;
        await trial.expectOpens(keyWrapper, one, what, { context });
      }
    }
  }),
  should(
    'WRAP-CONTEXT-DECLARED',
    'What says that it binds no context binds none.',
    `${CONTRACT}, supports`,
    async (trial) => {
      const keyWrapper = await trial.create();
      if (keyWrapper.supports.context) throw new NotApplicable('supports.context is true: WRAP-CONTEXT-BINDS tells');
      const context = { ...CONTEXT, 'sealring:purpose': 'another' };
      for (const { wrapped } of await trial.makeEach(keyWrapper)) {
        const outcome = await trial.settle(() => keyWrapper.unwrap(copyOf(wrapped), { context }), 'unwrap');
        expectThat('value' in outcome, 'supports.context is false, but another context is refused');
      }
    },
  ),
];

/** What was wrapped under an empty context opens under no other: somebody tries without one when a context fails. */
async function opensUnderNone(trial: KeyWrapperTrial): Promise<void> {
  const keyWrapper = await trial.create();
  for (const made of await madeUnder(trial, keyWrapper, {})) {
    const context = { 'sealring:purpose': CONTEXT['sealring:purpose'] ?? '' };
    for (const other of [CONTEXT, context]) {
      const what = `what ${made.by} made under an empty context`;
      await trial.expectCorrupt(keyWrapper, made.wrapped, `${what}, under another one`, { context: other });
    }
  }
}

/** Wrapped keys under a context that a service may not take: none then, since contexts of any text are more than a ring has. */
async function madeUnder(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  context: Readonly<Record<string, string>>,
): Promise<readonly (Made & { by: string })[]> {
  try {
    return await trial.makeEach(keyWrapper, { context });
  } catch (error) {
    if (context === CONTEXT) throw error;
    return [];
  }
}

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
