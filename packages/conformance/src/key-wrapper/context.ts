import type { KeyWrapper, WrapOptions } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import {
  CONTEXT,
  copyOf,
  expectFailure,
  expectKind,
  isKeyWrapperError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type MadeBy,
  wrappedKeyOf,
} from './trial.ts';

type Context = WrapOptions['context'];

/** Two contexts that an ambiguous encoding confuses: the members of each besides {@link CONTEXT}. */
type Alike = readonly [what: string, one: Context, other: Context];

/** Separators of names, values and members that an adapter may use to join a context. */
const PRINTABLE = ['', '=', ':', ',', '&', ';', '"', '":"', '","', ' ', '|', '/', '.', '-', '_'];
const CONTROL = ['\n', '\0', '\t', '\u001f'];

/** Text moved across a separator: from a name into its value, or from a value into the next name. */
const SHIFTED_CONTEXTS: readonly (readonly Alike[])[] = [PRINTABLE, CONTROL].map((separators) =>
  separators.flatMap((separator, i) => {
    // One separator, and every ordered pair.
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

/** Separators escaped by a backslash that is not escaped itself. */
const ESCAPED_CONTEXTS: readonly Alike[] = [
  ['=', ','],
  [':', ';'],
  ['=', '&'],
  [': ', '\n'],
].map(([after, between], i): Alike => {
  const [name, next] = [`y${i}`, `y${i}z`];
  const what = `with a backslash that looks like the escape of ${JSON.stringify(between)}`;
  return [what, { [`${name}${after}x${between}${next}`]: 'x' }, { [`${name}\\`]: 'x\\', [next]: 'x' }];
});

/** Characters that an adapter may normalize, trim or truncate to one byte. */
const ALIKE_VALUES: readonly Alike[] = [
  ['with a space after a value', { c1: 'x' }, { c1: 'x ' }],
  ['with a space before a value', { c2: 'x' }, { c2: ' x' }],
  ['with a newline after a value', { c3: 'x' }, { c3: 'x\n' }],
  ['with a space after a name', { c4: 'x' }, { 'c4 ': 'x' }],
  ['with a null character after a value', { c5: 'x' }, { c5: 'x\0' }],
  ['with two spaces instead of one', { c6: 'x y' }, { c6: 'x  y' }],
  ['with a value in upper case', { c7: 'value' }, { c7: 'VALUE' }],
  ['with 1.0 for 1', { c8: '1' }, { c8: '1.0' }],
  ['with 01 for 1', { c9: '1' }, { c9: '01' }],
  ['with an é of two code points instead of one', { d1: '\u00e9' }, { d1: 'e\u0301' }],
  ['with the two letters of a ligature', { d2: '\ufb01' }, { d2: 'fi' }],
  ['with A (U+0041) for Ł (U+0141)', { d3: '\u0141' }, { d3: '\u0041' }],
  ['with one letter beyond Latin-1 for another', { d4: '\u0141' }, { d4: '\u0143' }],
  ['with a Cyrillic letter for a Latin one', { d5: 'a' }, { d5: '\u0430' }],
  ['with one emoji for another', { d6: '\u{1f600}' }, { d6: '\u{1f601}' }],
  ['with a percent sign that is encoded', { e1: '%' }, { e1: '%25' }],
  ['with a plus sign for a space', { e2: 'x y' }, { e2: 'x+y' }],
  ['with a backslash that is doubled', { e3: '\\' }, { e3: '\\\\' }],
  ['with the text null instead of an empty text', { e4: '' }, { e4: 'null' }],
  ['with another line ending', { e5: 'x\ny' }, { e5: 'x\r\ny' }],
  ['with a zero-width space', { e6: 'x' }, { e6: 'x\u200b' }],
  ['with a no-break space for a space', { e7: 'x y' }, { e7: 'x\u00a0y' }],
  ['with an asterisk for a value', { e8: 'x' }, { e8: '*' }],
  ['with 1e0 for 1', { e9: '1' }, { e9: '1e0' }],
  ['with text in quotes', { f1: 'x' }, { f1: '"x"' }],
  ['with yes for true', { f2: 'true' }, { f2: 'yes' }],
  ['with a byte order mark before a value', { f3: 'x' }, { f3: '\ufeffx' }],
  ['with a JSON escape for its letter', { f4: 'A' }, { f4: '\\u0041' }],
  ['with a backslash and n for a newline', { f5: '\n' }, { f5: '\\n' }],
  ['with letters whose sum is equal', { f6: 'bb' }, { f6: 'ac' }],
  ['with letters in another order', { f7: 'ab' }, { f7: 'ba' }],
  ['with an ampersand that is encoded', { f8: '&' }, { f8: '&amp;' }],
  ...['.:', '._', '-_', '/.', '/-', '/:', ' _', '/\\'].map(
    ([one, other], i): Alike => [
      `with ${JSON.stringify(other)} for ${JSON.stringify(one)}`,
      { [`g${i}`]: `x${one}y` },
      { [`g${i}`]: `x${other}y` },
    ],
  ),
];

/** The values, and the same texts as names. */
const ALIKE_CHARACTERS: readonly Alike[] = [
  ...ALIKE_VALUES,
  ...ALIKE_VALUES.flatMap(([what, one, other]): readonly Alike[] => {
    const [[name, text] = ['', ''], [, otherText] = ['', '']] = [...Object.entries(one), ...Object.entries(other)];
    if (!(name in other)) return [];
    return [[`${what}, in a name`, { [`${name}-${text}`]: 'x' }, { [`${name}-${otherText}`]: 'x' }]];
  }),
];

const LONG = 1_000;

/** Values and names that an adapter may truncate. */
const CUT_CONTEXTS: readonly Alike[] = [
  ...[LONG - 1, LONG / 2, 300].map((place): Alike => {
    const valueOf = (char: string): string => 'x'.repeat(place) + char + 'x'.repeat(LONG - place - 1);
    const name = `at${place}`;
    const what = `with another character at position ${place + 1} of ${LONG} in a value`;
    return [what, { [name]: valueOf('1') }, { [name]: valueOf('2') }];
  }),
  ['with another last character of a long name', { [`${'n'.repeat(120)}1`]: 'x' }, { [`${'n'.repeat(120)}2`]: 'x' }],
  ['with a long value extended by one character', { l5: 'x'.repeat(300) }, { l5: 'x'.repeat(301) }],
  ['with a value shortened by one character', { l6: 'xy' }, { l6: 'x' }],
];

const many = (last: string): Context =>
  Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`m${String(i).padStart(2, '0')}`, i === 23 ? last : 'x']));

const MANY_MEMBERS: readonly Alike[] = [['with another value of the last of 24 members', many('1'), many('2')]];

/** A member with a name that every object has, created with JSON since an assignment would set the inherited member. */
function own(name: string, value: string): Context {
  return JSON.parse(JSON.stringify({ [`${name}.`]: value }).replace(`${name}.`, name)) as Context;
}

/** A length stored in one byte, so that the end of a long value looks like the next member. */
const [NAME, VALUE] = ['n'.repeat(127), 'v'.repeat(127)];
const WRAPPED_LENGTHS: readonly Alike[] = [
  ['whose lengths are equal modulo 256', { lm: `x\u007f${NAME}\u007f${VALUE}` }, { lm: 'x', [NAME]: VALUE }],
];

/** Names of members that every object has, and names that an adapter may omit. */
const ODD_NAMES: readonly Alike[] = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0', ''].map(
    (name): Alike => [`with another value of ${JSON.stringify(name)}`, own(name, 'x'), own(name, 'y')],
  ),
  ['with other times', { 'sealring:times': '1/2/3/4' }, { 'sealring:times': '1/2/3/5' }],
  ['without times', { 'sealring:times': '1/2/3/4' }, {}],
  ['with an extra member "__proto__"', {}, own('__proto__', 'x')],
  ['without its member "__proto__"', own('__proto__', 'x'), {}],
  ['without a member whose value is empty', { o1: '' }, {}],
  ['with another value of a name that begins with a dot', { '.o2': 'x' }, { '.o2': 'y' }],
  ['with another value of a name that begins with aws:', { 'aws:o3': 'x' }, { 'aws:o3': 'y' }],
];

/** Contexts other than that of the wrapped key. */
const { 'sealring:ring': ring = '', 'sealring:purpose': purpose = '' } = CONTEXT;
const [RING, PURPOSE] = [{ 'sealring:ring': ring }, { 'sealring:purpose': purpose }];
const OTHERS: readonly (readonly [what: string, context: Context])[] = [
  ['with another value', { ...CONTEXT, 'sealring:purpose': 'another' }],
  ['with a value in different letter case', { ...CONTEXT, 'sealring:purpose': 'Data-Key' }],
  ['with an extra member', { ...CONTEXT, more: '' }],
  ['with another name', { ...RING, 'sealring:purposes': purpose }],
  ['with a name in different letter case', { ...RING, 'Sealring:Purpose': purpose }],
  ['of another ring', { ...CONTEXT, 'sealring:ring': 'another' }],
  ['whose values are swapped', { 'sealring:ring': purpose, 'sealring:purpose': ring }],
];
/** Subsets of the context: an adapter may retry with fewer members, or compare only those of one side. */
const PARTS: readonly (readonly [what: string, context: Context])[] = [
  ['of both members', CONTEXT],
  ['of the first member only', RING],
  ['of the second member only', PURPOSE],
  ['of no members', {}],
];

export const CONTEXT_CHECKS: KeyWrapperChecks = {
  'WRAP-CONTEXT-BINDS': async (trial) => {
    const { supports } = await trial.create();
    if (!supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
    const expectBound = async (keyWrapper: KeyWrapper, made: MadeBy, others: typeof PARTS) => {
      for (const [words, context] of others) {
        const what = `the wrapped key of ${made.by} under a context ${words}`;
        const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(made.wrapped), { context }), what);
        // A policy may restrict the caller to one ring, and is evaluated first.
        const isDenied = context['sealring:ring'] !== ring && isKeyWrapperError(error) && error.kind === 'denied';
        if (!isDenied) expectKind(error, 'corrupt', what);
      }
    };
    // A cached unwrap must not be used for another context.
    for (const { keyWrapper, ...made } of await trial.createEach()) {
      await expectBound(keyWrapper, made, [...OTHERS, ...PARTS.slice(1)]);
    }
    for (const [words, context] of PARTS.slice(1)) {
      const keyWrapper = await trial.create();
      const others = PARTS.filter(([, other]) => other !== context);
      for (const made of await madeUnder(trial, keyWrapper, context)) {
        await expectBound(keyWrapper, { ...made, by: `${made.by}, made under a context ${words},` }, others);
      }
    }
    return expectApart(trial, CUT_CONTEXTS, MANY_MEMBERS, WRAPPED_LENGTHS, ODD_NAMES);
  },
  'WRAP-CONTEXT-BOUNDARIES': async (trial) => {
    const keyWrapper = await trial.create();
    if (!keyWrapper.supports.context) throw new NotApplicable('supports.context is false: the ring binds it');
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
    }
    return expectApart(trial, ...SHIFTED_CONTEXTS, ESCAPED_CONTEXTS, ALIKE_CHARACTERS);
  },
  'WRAP-CONTEXT-ORDER': async (trial) => {
    const keyWrapper = await trial.create();
    const numbered = Object.fromEntries(
      ['b', 'a', 'Z', '_', '~', 'é', 'aa', 'a1', 'B', 'e'].map((name) => [name, 'x']),
    );
    for (const given of [CONTEXT, { ...CONTEXT, ...numbered }]) {
      const context = Object.fromEntries(Object.entries(given).toReversed());
      const made = await madeUnder(trial, keyWrapper, given);
      for (const one of made) {
        const what = `a wrapped key of ${one.by}, under the same context in another order`;
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
 * Finds contexts that a key wrapper confuses, after it has unwrapped its wrapped key and may have cached
 * it. Resolves to the contexts that the service refuses, which are skipped: a ring does not need arbitrary contexts.
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
    for (const pair of pairs) {
      const other = contextOf(pairs.map((each) => (each === pair ? each[2] : each[1])));
      const what = `its wrapped key under the same context ${pair[0]}`;
      // Any error counts, since a service may refuse the context itself.
      const error = await trial.refusal(() => keyWrapper.unwrap(copyOf(wrapped), { context: other }), what);
      expectFailure(error, what);
    }
  };
  for (const pairs of groups.flatMap(withoutDoubles)) await look(pairs);
  if (leftOut.length === 0) return;
  return `not checked, since wrap refused the context: ${leftOut[0]}, and ${leftOut.length - 1} more`;
}

/** Groups pairs so that no two members of a group have the same name. */
function withoutDoubles(pairs: readonly Alike[]): readonly (readonly Alike[])[] {
  const namesOf = ([, one, other]: Alike): readonly string[] => Object.keys({ ...one, ...other });
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
