import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import {
  ALIKE_CHARACTERS,
  type Alike,
  type Context,
  CUT_CONTEXTS,
  ESCAPED_CONTEXTS,
  MANY_MEMBERS,
  ODD_NAMES,
  SHIFTED_CONTEXTS,
  TWICE_SEPARATED,
  WRAPPED_LENGTHS,
} from './alike-contexts.ts';
import { expectFailure, expectKind, isKeyWrapperError } from './errors.ts';
import { CONTEXT, copyOf, type KeyWrapperChecks, type KeyWrapperTrial, type MadeBy, wrappedKeyOf } from './trial.ts';

const { 'sealring:ring': ring = '', 'sealring:purpose': purpose = '' } = CONTEXT;
const [RING, PURPOSE] = [{ 'sealring:ring': ring }, { 'sealring:purpose': purpose }];

/** Contexts that differ from the context of the wrapped key. */
const OTHERS: readonly (readonly [what: string, context: Context])[] = [
  ['with another value', { ...CONTEXT, 'sealring:purpose': 'another' }],
  ['with a value in different letter case', { ...CONTEXT, 'sealring:purpose': 'Data-Key' }],
  ['with an extra member', { ...CONTEXT, more: '' }],
  ['with another name', { ...RING, 'sealring:purposes': purpose }],
  ['with a name in different letter case', { ...RING, 'Sealring:Purpose': purpose }],
  ['of another ring', { ...CONTEXT, 'sealring:ring': 'another' }],
  ['whose values are swapped', { 'sealring:ring': purpose, 'sealring:purpose': ring }],
];

/** Subsets of the context: an adapter may retry with fewer members, or compare only the members on one side. */
const PARTS: readonly (readonly [what: string, context: Context])[] = [
  ['of both members', CONTEXT],
  ['of the first member only', RING],
  ['of the second member only', PURPOSE],
  ['of no members', {}],
];

export const CONTEXT_CHECKS: KeyWrapperChecks = {
  'WRAP-CONTEXT-BINDS': async (trial) => {
    const { supports } = await trial.create();
    if (!supports.context) throw new NotApplicable('supports.context is false, so the ring binds the context');
    const expectBound = (keyWrapper: KeyWrapper, made: MadeBy, others: typeof PARTS): Promise<void> =>
      trial.each(others, async ([words, context]) => {
        const what = `the wrapped key of ${made.by} under a context ${words}`;
        const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(made.wrapped), { context }), what);
        // A policy may restrict the caller to one ring, and is evaluated first.
        const isDenied = context['sealring:ring'] !== ring && isKeyWrapperError(error) && error.kind === 'denied';
        if (!isDenied) expectKind(error, 'corrupt', what);
      });
    await expectRead(trial);
    await expectEachRead(trial);
    // A cached unwrap must not be used for another context.
    for (const { keyWrapper, ...made } of await trial.createEach()) {
      await expectBound(keyWrapper, made, [...OTHERS, ...PARTS.slice(1)]);
    }
    await trial.each(PARTS.slice(1), async ([words, context]) => {
      const keyWrapper = await trial.create();
      const others = PARTS.filter(([, other]) => other !== context);
      for (const made of await madeUnder(trial, keyWrapper, context)) {
        await expectBound(keyWrapper, { ...made, by: `${made.by}, made under a context ${words},` }, others);
      }
    });
    return expectApart(trial, CUT_CONTEXTS, MANY_MEMBERS, WRAPPED_LENGTHS, ODD_NAMES, await ownNames(trial));
  },
  'WRAP-CONTEXT-BOUNDARIES': async (trial) => {
    const keyWrapper = await trial.create();
    if (!keyWrapper.supports.context) {
      throw new NotApplicable('supports.context is false, so the ring binds the context');
    }
    const { wrapped } = await trial.make(keyWrapper, { context: { ...CONTEXT, ab: 'cd' } });
    const context = { ...CONTEXT, abc: 'd' };
    await trial.expectCorrupt(keyWrapper, wrapped, 'its wrapped key for the context ab: cd, under abc: d', { context });
    for (const half of [{ a: '\ud800' }, { '\udc00': 'a' }]) {
      const what = 'wrap under a context with a lone surrogate';
      const outcome = await trial.settle(
        () => keyWrapper.wrap(trial.dataKey(keyWrapper), { context: { ...CONTEXT, ...half } }),
        what,
      );
      if ('error' in outcome) expectFailure(outcome.error, what);
      else await expectHalvesApart(trial, keyWrapper, wrappedKeyOf(outcome.value, what), half);
    }
    return expectApart(trial, ...SHIFTED_CONTEXTS, ESCAPED_CONTEXTS, TWICE_SEPARATED, ALIKE_CHARACTERS);
  },
  'WRAP-CONTEXT-ORDER': async (trial) => {
    const keyWrapper = await trial.create();
    const numbered = Object.fromEntries(
      ['b', 'a', 'Z', '_', '~', 'é', 'aa', 'a1', 'B', 'e'].map((name) => [name, 'x']),
    );
    // Equal by Unicode’s canonical equivalence, so a comparison by locale leaves them in the given order.
    const equivalent = { '\u00e9': 'x', 'e\u0301': 'y', '\u212b': 'z', '\u00c5': 'x', 'A\u030a': 'y' };
    await trial.each([CONTEXT, { ...CONTEXT, ...numbered }, { ...CONTEXT, ...equivalent }], async (given) => {
      const context = Object.fromEntries(Object.entries(given).toReversed());
      const made = await madeUnder(trial, keyWrapper, given);
      for (const one of made) {
        const what = `a wrapped key of ${one.by}, under the same context in a different order`;
        await trial.expectOpens(keyWrapper, one, what, { context });
      }
    });
  },
  'WRAP-CONTEXT-DECLARED': async (trial) => {
    const keyWrapper = await trial.create();
    if (keyWrapper.supports.context) throw new NotApplicable('supports.context is true, see WRAP-CONTEXT-BINDS');
    const context = { ...CONTEXT, 'sealring:purpose': 'another' };
    for (const { wrapped } of await trial.makeEach(keyWrapper)) {
      const outcome = await trial.settle(() => keyWrapper.unwrap(copyOf(wrapped), { context }), 'unwrap');
      expectThat('value' in outcome, 'supports.context is false, but a different context is refused');
    }
  },
};

/** Contexts with the names and values that a key wrapper may add to the context itself. */
async function ownNames(trial: KeyWrapperTrial): Promise<readonly Alike[]> {
  const { keyWrapper, wrapped } = await trial.createOpened();
  const keyIds = [...new Set([keyWrapper.keyId, wrapped.keyId])];
  return [
    ['without the name of the provider', { provider: keyWrapper.provider }, {}],
    ...keyIds.map((keyId): Alike => ['without the name of the KMS key', { keyId }, {}]),
  ];
}

/** Expects that a lone surrogate that wrap accepted is not confused with another one, or with U+FFFD. */
async function expectHalvesApart(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  wrapped: WrappedKey,
  half: Context,
): Promise<void> {
  for (const other of ['\ud801', '\udc01', '\ufffd', '?', '']) {
    const swapped = Object.entries(half).map((pair) => pair.map((text) => text.replace(/\p{Surrogate}/u, other)));
    const context = { ...CONTEXT, ...Object.fromEntries(swapped) };
    const what = 'its wrapped key under a context with a different character in place of a lone surrogate';
    expectFailure(await trial.refusal(() => keyWrapper.unwrap(copyOf(wrapped), { context }), what), what);
  }
}

/** Expects a context object that its owner changes between calls to count as another context. */
async function expectRead(trial: KeyWrapperTrial): Promise<void> {
  const { keyWrapper, ...made } = await trial.createOpened();
  const context = { ...CONTEXT };
  for (const wrapped of [made.wrapped, await trial.wrap(keyWrapper, made.dataKey, { context })]) {
    await trial.expectOpens(keyWrapper, { ...made, wrapped }, undefined, { context });
    context['sealring:purpose'] = 'another';
    const what = 'its wrapped key under a context object that was changed after an earlier call';
    await trial.expectCorrupt(keyWrapper, wrapped, what, { context });
    context['sealring:purpose'] = purpose;
  }
}

/** Each call must bind the values of its own context, even if an earlier call had the same names. */
async function expectEachRead(trial: KeyWrapperTrial): Promise<void> {
  const keyWrapper = await trial.create();
  for (const value of [purpose, 'another', purpose]) {
    const context = { ...CONTEXT, 'sealring:purpose': value };
    const other = { ...CONTEXT, 'sealring:purpose': 'third' };
    for (const made of await madeUnder(trial, keyWrapper, context)) {
      const what = `a wrapped key of ${made.by}, after calls under other values,`;
      await trial.expectOpens(keyWrapper, made, what, { context });
      await trial.expectCorrupt(keyWrapper, made.wrapped, `${what} under another value`, { context: other });
    }
  }
}

/** Wrapped keys under a context, or none if the service refuses it, since a ring does not need arbitrary contexts. */
async function madeUnder(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  context: Readonly<Record<string, string>>,
): Promise<readonly MadeBy[]> {
  try {
    return await trial.makeEach(keyWrapper, { context });
  } catch (error) {
    if (context === CONTEXT) throw error;
    return [];
  }
}

/**
 * Expects a key wrapper not to confuse contexts, even after it has unwrapped its wrapped key and may have cached it.
 * Skips contexts that wrap refuses, since a ring does not need arbitrary contexts; resolves to a note about them.
 */
async function expectApart(trial: KeyWrapperTrial, ...groups: readonly (readonly Alike[])[]): Promise<string | void> {
  const leftOut: string[] = [];
  const look = async (pairs: readonly Alike[]): Promise<void> => {
    const keyWrapper = await trial.create();
    const dataKey = trial.dataKey(keyWrapper);
    const context = contextOf(pairs.map(([, one]) => one));
    const start = (): unknown => keyWrapper.wrap(Uint8Array.from(dataKey), { context });
    const outcome = await trial.settle(start, 'wrap');
    if ('error' in outcome) {
      expectFailure(outcome.error, 'wrap under a context that was refused');
      // Bisection finds the accepted contexts in few calls.
      const middle = pairs.length >> 1;
      if (middle === 0) return void leftOut.push(...pairs.map(([what]) => what));
      await look(pairs.slice(0, middle));
      return look(pairs.slice(middle));
    }
    const wrapped = wrappedKeyOf(outcome.value, 'wrap');
    await trial.expectOpens(keyWrapper, { dataKey, wrapped }, undefined, { context });
    await trial.each(pairs, async (pair) => {
      const other = contextOf(pairs.map((each) => (each === pair ? each[2] : each[1])));
      const what = `its wrapped key under the same context ${pair[0]}`;
      // Any error counts, since a service may refuse the context itself.
      const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(wrapped), { context: other }), what);
      expectFailure(error, what);
    });
  };
  await trial.each(groups.flatMap(withoutDoubles), look);
  if (leftOut.length === 0) return;
  return `not checked, since wrap refused the context: ${leftOut[0]}, and ${leftOut.length - 1} more`;
}

const namesOf = ([, one, other]: Alike): readonly string[] => Object.keys({ ...one, ...other });

/** Groups pairs of contexts so that no two pairs of a group share the name of a member. */
function withoutDoubles(pairs: readonly Alike[]): readonly (readonly Alike[])[] {
  const groups: Alike[][] = [];
  for (const pair of pairs) {
    const names = new Set(namesOf(pair));
    const group = groups.find((all) => !all.flatMap(namesOf).some((name) => names.has(name)));
    if (group === undefined) groups.push([pair]);
    else group.push(pair);
  }
  return groups;
}

/** Defines members instead of assigning them, since a name may be `__proto__`. */
function contextOf(additions: readonly Context[]): Context {
  return Object.fromEntries([CONTEXT, ...additions].flatMap((one) => Object.entries(one)));
}
