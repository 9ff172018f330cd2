import type { KeyWrapper, WrapOptions } from '@sealring/core';
import { expectThat, Finding, must, NotApplicable, should } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import {
  CONTEXT,
  CONTRACT,
  clause,
  copyOf,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperRequirement,
  type KeyWrapperTrial,
  KIT,
  type Made,
  wrappedKeyOf,
} from './trial.ts';

type Context = WrapOptions['context'];

/** Two contexts that a careless encoding takes for one: what each has besides {@link CONTEXT}. */
interface Alike {
  readonly what: string;
  readonly one: Context;
  readonly other: Context;
}

/** Separators of names, values and members, where an adapter joins a context by hand. */
const PRINTABLE = ['', '=', ':', ',', '&', ';', '"', '":"', '","', ' ', '|', '/', '.', '-', '_'];
const CONTROL = ['\n', '\0', '\t', '\u001f'];

/** Text that moves over a separator that is text, too: from a name into its value, from a value into the next name. */
const SHIFTED_CONTEXTS: readonly (readonly Alike[])[] = [PRINTABLE, CONTROL].map((separators) =>
  separators.flatMap((separator, i) => {
    // Of one separator, and next to each other in every order.
    const letter = String.fromCharCode(0x61 + i);
    const [name, first, second] = [`b${letter}`, `a${letter}a`, `a${letter}b`];
    const shown = separator === '' ? 'the boundary' : JSON.stringify(separator);
    return [
      {
        what: `with ${shown} moved from a name into its value`,
        one: { [`${name}${separator}b`]: 'x' },
        other: { [name]: `b${separator}x` },
      },
      {
        what: `with ${shown} moved from a value into the next name`,
        one: { [first]: `x${separator}${second}`, [second]: 'y' },
        other: { [first]: 'x', [`${second}${separator}${second}`]: 'y' },
      },
    ];
  }),
);

/** Characters that an adapter may normalize, trim, or cut to a byte. */
const ALIKE_VALUES: readonly Alike[] = [
  { what: 'with a space after a value', one: { c1: 'x' }, other: { c1: 'x ' } },
  { what: 'with a space before a value', one: { c2: 'x' }, other: { c2: ' x' } },
  { what: 'with a newline after a value', one: { c3: 'x' }, other: { c3: 'x\n' } },
  { what: 'with a space after a name', one: { c4: 'x' }, other: { 'c4 ': 'x' } },
  { what: 'with a null character after a value', one: { c5: 'x' }, other: { c5: 'x\0' } },
  { what: 'with two spaces for one', one: { c6: 'x y' }, other: { c6: 'x  y' } },
  { what: 'with a value in upper case', one: { c7: 'value' }, other: { c7: 'VALUE' } },
  { what: 'with 1.0 for 1', one: { c8: '1' }, other: { c8: '1.0' } },
  { what: 'with 01 for 1', one: { c9: '1' }, other: { c9: '01' } },
  { what: 'with an é of two code points for one', one: { d1: '\u00e9' }, other: { d1: 'e\u0301' } },
  { what: 'with the two letters of a ligature', one: { d2: '\ufb01' }, other: { d2: 'fi' } },
  { what: 'with A (U+0041) for Ł (U+0141)', one: { d3: '\u0141' }, other: { d3: '\u0041' } },
  { what: 'with one letter beyond Latin-1 for another', one: { d4: '\u0141' }, other: { d4: '\u0143' } },
  { what: 'with a Cyrillic letter for a Latin one', one: { d5: 'a' }, other: { d5: '\u0430' } },
  { what: 'with one emoji for another', one: { d6: '\u{1f600}' }, other: { d6: '\u{1f601}' } },
  { what: 'with a percent sign that is encoded', one: { e1: '%' }, other: { e1: '%25' } },
  { what: 'with a plus sign for a space', one: { e2: 'x y' }, other: { e2: 'x+y' } },
  { what: 'with a backslash that is doubled', one: { e3: '\\' }, other: { e3: '\\\\' } },
  { what: 'with null as text for no text', one: { e4: '' }, other: { e4: 'null' } },
];

/** Values as they are, and the same texts as names. */
const ALIKE_CHARACTERS: readonly Alike[] = [
  ...ALIKE_VALUES,
  ...ALIKE_VALUES.flatMap(({ what, one, other }) => {
    const [[name, text] = ['', ''], [, otherText] = ['', '']] = [...Object.entries(one), ...Object.entries(other)];
    if (!(name in other)) return [];
    const words = `${what}, in a name`;
    return [{ what: words, one: { [`${name}-${text}`]: 'x' }, other: { [`${name}-${otherText}`]: 'x' } }];
  }),
];

const LONG = 1_000;

/** Values and names that an adapter may cut, or of which it reads only the beginning. */
const CUT_CONTEXTS: readonly Alike[] = [
  ...[LONG - 1, LONG / 2, 300].map((place) => {
    const valueOf = (char: string): string => 'x'.repeat(place) + char + 'x'.repeat(LONG - place - 1);
    const name = `at${place}`;
    const what = `with another character ${place + 1} of ${LONG} in a value`;
    return { what, one: { [name]: valueOf('1') }, other: { [name]: valueOf('2') } };
  }),
  {
    what: 'with another last character of a long name',
    one: { [`${'n'.repeat(120)}1`]: 'x' },
    other: { [`${'n'.repeat(120)}2`]: 'x' },
  },
  { what: 'with a long value that is longer', one: { l5: 'x'.repeat(300) }, other: { l5: 'x'.repeat(301) } },
];

const many = (last: string): Context =>
  Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`m${String(i).padStart(2, '0')}`, i === 23 ? last : 'x']));

/** More members than an adapter may read. */
const MANY_MEMBERS: readonly Alike[] = [
  { what: 'with another value of the last of 24 members', one: many('1'), other: many('2') },
];

/** A member by a name that every object has: as JSON makes it, and not as an assignment. */
function own(name: string, value: string): Context {
  return JSON.parse(JSON.stringify({ [`${name}.`]: value }).replace(`${name}.`, name)) as Context;
}

/** Names of members that every object has, and names that an adapter may leave out. */
const ODD_NAMES: readonly Alike[] = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0', ''].flatMap((name) => [
    { what: `with another value of ${JSON.stringify(name)}`, one: own(name, 'x'), other: own(name, 'y') },
  ]),
  { what: 'with a member "__proto__" more', one: {}, other: own('__proto__', 'x') },
  { what: 'with a member "__proto__" less', one: own('__proto__', 'x'), other: {} },
  { what: 'with an empty value less', one: { o1: '' }, other: {} },
  { what: 'with another value of a name that begins with a dot', one: { '.o2': 'x' }, other: { '.o2': 'y' } },
  { what: 'with another value of a name that begins with aws:', one: { 'aws:o3': 'x' }, other: { 'aws:o3': 'y' } },
];

/** The result of a search: what was unwrapped and should not have been, in words, and what could not be tried. */
interface Looked {
  readonly found?: string;
  readonly leftOut: readonly string[];
}

/**
 * Looks for contexts that a key wrapper takes for one another, when it has unwrapped its wrapped key and may remember
 * that. What a service does not take is left out: contexts of any text are more than a ring has.
 */
async function lookAlike(trial: KeyWrapperTrial, pairs: readonly Alike[]): Promise<Looked> {
  // Members with one name stand in one another's way.
  const names = pairs.flatMap(({ one, other }) => [...new Set([...Object.keys(one), ...Object.keys(other)])]);
  const doubled = pairs.filter(({ one, other }) =>
    [...Object.keys(one), ...Object.keys(other)].some((name) => names.indexOf(name) !== names.lastIndexOf(name)),
  );
  const together = pairs.filter((pair) => !doubled.includes(pair));
  const groups = [...(together.length > 0 ? [together] : []), ...doubled.map((pair) => [pair])];
  const leftOut: string[] = [];
  for (const group of groups) {
    const looked = await lookTogether(trial, group);
    if (looked.found !== undefined) return looked;
    leftOut.push(...looked.leftOut);
  }
  return { leftOut };
}

async function lookTogether(trial: KeyWrapperTrial, pairs: readonly Alike[]): Promise<Looked> {
  const keyWrapper = await trial.create();
  const dataKey = trial.dataKey(keyWrapper);
  const context = contextOf(pairs.map(({ one }) => one));
  const outcome = await trial.settle(() => keyWrapper.wrap(Uint8Array.from(dataKey), { context }), 'wrap');
  if ('error' in outcome) {
    if (pairs.length === 1) return { leftOut: pairs.map(({ what }) => what) };
    // Half of them at a time: what the service takes is found in few calls.
    const middle = pairs.length >> 1;
    const first = await lookTogether(trial, pairs.slice(0, middle));
    if (first.found !== undefined) return first;
    const second = await lookTogether(trial, pairs.slice(middle));
    return { ...second, leftOut: [...first.leftOut, ...second.leftOut] };
  }
  const made = { dataKey, wrapped: wrappedKeyOf(outcome.value, 'wrap') };
  await trial.expectOpens(keyWrapper, made, undefined, { context });
  for (const pair of pairs) {
    const others = contextOf(pairs.map((each) => (each === pair ? each.other : each.one)));
    const start = (): unknown => keyWrapper.unwrap(copyOf(made.wrapped), { context: others });
    const opened = await trial.settle(start, `unwrap under a context ${pair.what}`);
    // By whatever error: a service may refuse the context for what it is.
    if ('value' in opened) return { found: `${pair.what} was not refused: ${kindOf(opened.value)}`, leftOut: [] };
  }
  return { leftOut: [] };
}

/** By definition, not by assignment: a member may be called `__proto__`. */
function contextOf(additions: readonly Context[]): Context {
  return Object.fromEntries([CONTEXT, ...additions].flatMap((one) => Object.entries(one)));
}

/** What a wrap is bound to. */
export const CONTEXT_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  must('WRAP-CONTEXT-BINDS', 'A wrapped key under another context is refused as corrupt.', clause(2), async (trial) => {
    const { supports } = await trial.create();
    if (!supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
    const { 'sealring:ring': ring = '', 'sealring:purpose': purpose = '', ...rest } = CONTEXT;
    const less = { ...rest, 'sealring:ring': ring };
    // An earlier unwrap must not answer for another context.
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
    'A key wrapper with supports.context false binds no context.',
    `${CONTRACT}, supports`,
    async (trial) => {
      const keyWrapper = await trial.create();
      if (keyWrapper.supports.context) throw new NotApplicable('supports.context is true, see WRAP-CONTEXT-BINDS');
      const context = { ...CONTEXT, 'sealring:purpose': 'another' };
      for (const { wrapped } of await trial.makeEach(keyWrapper)) {
        const outcome = await trial.settle(() => keyWrapper.unwrap(copyOf(wrapped), { context }), 'unwrap');
        expectThat('value' in outcome, 'supports.context is false, but another context is refused');
      }
    },
  ),
];

/**
 * A key that was wrapped under an empty context unwraps under no other: an adapter may try without one when a context
 * fails.
 */
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

/**
 * Resolves to what the service does not take. @throws {Finding} when one context unwraps what was wrapped under
 * another.
 */
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
