import type { KeyWrapper, WrapOptions } from '@sealring/core';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import {
  CONTEXT,
  copyOf,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  wrappedKeyOf,
} from './trial.ts';

type Context = WrapOptions['context'];

/** Two contexts that a careless encoding takes for one: what each has besides {@link CONTEXT}. */
type Alike = readonly [what: string, one: Context, other: Context];

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
      [
        `with ${shown} moved from a name into its value`,
        { [`${name}${separator}b`]: 'x' },
        { [name]: `b${separator}x` },
      ],
      [
        `with ${shown} moved from a value into the next name`,
        { [first]: `x${separator}${second}`, [second]: 'y' },
        { [first]: 'x', [`${second}${separator}${second}`]: 'y' },
      ],
    ] satisfies Alike[];
  }),
);

/** Characters that an adapter may normalize, trim, or cut to a byte. */
const ALIKE_VALUES: readonly Alike[] = [
  ['with a space after a value', { c1: 'x' }, { c1: 'x ' }],
  ['with a space before a value', { c2: 'x' }, { c2: ' x' }],
  ['with a newline after a value', { c3: 'x' }, { c3: 'x\n' }],
  ['with a space after a name', { c4: 'x' }, { 'c4 ': 'x' }],
  ['with a null character after a value', { c5: 'x' }, { c5: 'x\0' }],
  ['with two spaces for one', { c6: 'x y' }, { c6: 'x  y' }],
  ['with a value in upper case', { c7: 'value' }, { c7: 'VALUE' }],
  ['with 1.0 for 1', { c8: '1' }, { c8: '1.0' }],
  ['with 01 for 1', { c9: '1' }, { c9: '01' }],
  ['with an é of two code points for one', { d1: '\u00e9' }, { d1: 'e\u0301' }],
  ['with the two letters of a ligature', { d2: '\ufb01' }, { d2: 'fi' }],
  ['with A (U+0041) for Ł (U+0141)', { d3: '\u0141' }, { d3: '\u0041' }],
  ['with one letter beyond Latin-1 for another', { d4: '\u0141' }, { d4: '\u0143' }],
  ['with a Cyrillic letter for a Latin one', { d5: 'a' }, { d5: '\u0430' }],
  ['with one emoji for another', { d6: '\u{1f600}' }, { d6: '\u{1f601}' }],
  ['with a percent sign that is encoded', { e1: '%' }, { e1: '%25' }],
  ['with a plus sign for a space', { e2: 'x y' }, { e2: 'x+y' }],
  ['with a backslash that is doubled', { e3: '\\' }, { e3: '\\\\' }],
  ['with null as text for no text', { e4: '' }, { e4: 'null' }],
  ['with another line ending', { e5: 'x\ny' }, { e5: 'x\r\ny' }],
  ['with a character that takes no room', { e6: 'x' }, { e6: 'x\u200b' }],
  ['with a no-break space for a space', { e7: 'x y' }, { e7: 'x\u00a0y' }],
  ['with an asterisk for a value', { e8: 'x' }, { e8: '*' }],
  ['with 1e0 for 1', { e9: '1' }, { e9: '1e0' }],
  ['with text in quotes', { f1: 'x' }, { f1: '"x"' }],
];

/** Values as they are, and the same texts as names. */
const ALIKE_CHARACTERS: readonly Alike[] = [
  ...ALIKE_VALUES,
  ...ALIKE_VALUES.flatMap(([what, one, other]): readonly Alike[] => {
    const [[name, text] = ['', ''], [, otherText] = ['', '']] = [...Object.entries(one), ...Object.entries(other)];
    if (!(name in other)) return [];
    return [[`${what}, in a name`, { [`${name}-${text}`]: 'x' }, { [`${name}-${otherText}`]: 'x' }]];
  }),
];

const LONG = 1_000;

/** Values and names that an adapter may cut, or of which it reads only the beginning. */
const CUT_CONTEXTS: readonly Alike[] = [
  ...[LONG - 1, LONG / 2, 300].map((place): Alike => {
    const valueOf = (char: string): string => 'x'.repeat(place) + char + 'x'.repeat(LONG - place - 1);
    const name = `at${place}`;
    const what = `with another character ${place + 1} of ${LONG} in a value`;
    return [what, { [name]: valueOf('1') }, { [name]: valueOf('2') }];
  }),
  ['with another last character of a long name', { [`${'n'.repeat(120)}1`]: 'x' }, { [`${'n'.repeat(120)}2`]: 'x' }],
  ['with a long value that is longer', { l5: 'x'.repeat(300) }, { l5: 'x'.repeat(301) }],
];

const many = (last: string): Context =>
  Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`m${String(i).padStart(2, '0')}`, i === 23 ? last : 'x']));

const MANY_MEMBERS: readonly Alike[] = [['with another value of the last of 24 members', many('1'), many('2')]];

/** A member by a name that every object has: as JSON makes it, and not as an assignment. */
function own(name: string, value: string): Context {
  return JSON.parse(JSON.stringify({ [`${name}.`]: value }).replace(`${name}.`, name)) as Context;
}

/** A length that is kept in one byte, of which what follows is made to look like the next member. */
const [NAME, VALUE] = ['n'.repeat(127), 'v'.repeat(127)];
const WRAPPED_LENGTHS: readonly Alike[] = [
  ['whose lengths are alike in their last byte', { lm: `x\u007f${NAME}\u007f${VALUE}` }, { lm: 'x', [NAME]: VALUE }],
];

/** Names of members that every object has, and names that an adapter may leave out. */
const ODD_NAMES: readonly Alike[] = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0', ''].map(
    (name): Alike => [`with another value of ${JSON.stringify(name)}`, own(name, 'x'), own(name, 'y')],
  ),
  ['with other times', { 'sealring:times': '1/2/3/4' }, { 'sealring:times': '1/2/3/5' }],
  ['without times', { 'sealring:times': '1/2/3/4' }, {}],
  ['with a member "__proto__" more', {}, own('__proto__', 'x')],
  ['with a member "__proto__" less', own('__proto__', 'x'), {}],
  ['with an empty value less', { o1: '' }, {}],
  ['with another value of a name that begins with a dot', { '.o2': 'x' }, { '.o2': 'y' }],
  ['with another value of a name that begins with aws:', { 'aws:o3': 'x' }, { 'aws:o3': 'y' }],
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
  const names = pairs.flatMap(([, one, other]) => [...new Set([...Object.keys(one), ...Object.keys(other)])]);
  const doubled = pairs.filter(([, one, other]) =>
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
  const context = contextOf(pairs.map(([, one]) => one));
  const outcome = await trial.settle(() => keyWrapper.wrap(Uint8Array.from(dataKey), { context }), 'wrap');
  if ('error' in outcome) {
    if (pairs.length === 1) return { leftOut: pairs.map(([what]) => what) };
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
    const others = contextOf(pairs.map((each) => (each === pair ? each[2] : each[1])));
    const start = (): unknown => keyWrapper.unwrap(copyOf(made.wrapped), { context: others });
    const opened = await trial.settle(start, `unwrap under a context ${pair[0]}`);
    // By whatever error: a service may refuse the context for what it is.
    if ('value' in opened) return { found: `${pair[0]} was not refused: ${kindOf(opened.value)}`, leftOut: [] };
  }
  return { leftOut: [] };
}

/** By definition, not by assignment: a member may be called `__proto__`. */
function contextOf(additions: readonly Context[]): Context {
  return Object.fromEntries([CONTEXT, ...additions].flatMap((one) => Object.entries(one)));
}

export const CONTEXT_CHECKS: KeyWrapperChecks = {
  'WRAP-CONTEXT-BINDS': async (trial) => {
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
    return expectApart(trial, CUT_CONTEXTS, MANY_MEMBERS, WRAPPED_LENGTHS, ODD_NAMES);
  },
  'WRAP-CONTEXT-BOUNDARIES': async (trial) => {
    const keyWrapper = await trial.create();
    if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
    const { wrapped } = await trial.make(keyWrapper, { context: { ...CONTEXT, ab: 'cd' } });
    const context = { ...CONTEXT, abc: 'd' };
    await trial.expectCorrupt(keyWrapper, wrapped, 'its wrapped key of ab: cd under abc: d', { context });
    return expectApart(trial, ...SHIFTED_CONTEXTS, ALIKE_CHARACTERS);
  },
  'WRAP-CONTEXT-ORDER': async (trial) => {
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
  },
  'WRAP-CONTEXT-DECLARED': async (trial) => {
    const keyWrapper = await trial.create();
    if (keyWrapper.supports.context) throw new NotApplicable('supports.context is true, see WRAP-CONTEXT-BINDS');
    const context = { ...CONTEXT, 'sealring:purpose': 'another' };
    for (const { wrapped } of await trial.makeEach(keyWrapper)) {
      const outcome = await trial.settle(() => keyWrapper.unwrap(copyOf(wrapped), { context }), 'unwrap');
      expectThat('value' in outcome, 'supports.context is false, but another context is refused');
    }
  },
};

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
