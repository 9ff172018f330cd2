import type { WrapOptions } from '@sealring/core';
import { kindOf } from '../thrown.ts';
import { CONTEXT, copyOf, type KeyWrapperTrial, wrappedKeyOf } from './trial.ts';

type Context = WrapOptions['context'];

/** Two contexts that a careless encoding takes for one: what each has besides {@link CONTEXT}. */
export interface Alike {
  readonly what: string;
  readonly one: Context;
  readonly other: Context;
}

/** Separators of names, values and members, where an adapter joins a context by hand. */
const PRINTABLE = ['', '=', ':', ',', '&', ';', '"', '":"', '","', ' ', '|', '/', '.', '-', '_'];
const CONTROL = ['\n', '\0', '\t', '\u001f'];

/** Text that moves over a separator that is text, too: from a name into its value, from a value into the next name. */
export const SHIFTED_CONTEXTS: readonly (readonly Alike[])[] = [PRINTABLE, CONTROL].map((separators) =>
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
export const ALIKE_CHARACTERS: readonly Alike[] = [
  ...ALIKE_VALUES,
  ...ALIKE_VALUES.flatMap(({ what, one, other }) => {
    const [[name, text] = ['', ''], [, otherText] = ['', '']] = [...Object.entries(one), ...Object.entries(other)];
    if (!(name in other)) return [];
    const words = `${what}, in a name`;
    return [{ what: words, one: { [`${name}-${text}`]: 'x' }, other: { [`${name}-${otherText}`]: 'x' } }];
  }),
];

const LONG = 1_000;
const at = (place: number, char: string): string => 'x'.repeat(place) + char + 'x'.repeat(LONG - place - 1);

/** Values and names that an adapter may cut, or of which it reads only the beginning. */
export const CUT_CONTEXTS: readonly Alike[] = [
  {
    what: 'with another last character of a long value',
    one: { l1: at(LONG - 1, '1') },
    other: { l1: at(LONG - 1, '2') },
  },
  {
    what: 'with another character in the middle of a long value',
    one: { l2: at(500, '1') },
    other: { l2: at(500, '2') },
  },
  { what: 'with another character 300 into a long value', one: { l3: at(300, '1') }, other: { l3: at(300, '2') } },
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
export const MANY_MEMBERS: readonly Alike[] = [
  { what: 'with another value of the last of 24 members', one: many('1'), other: many('2') },
];

/** A member by a name that every object has: as JSON makes it, and not as an assignment. */
function own(name: string, value: string): Context {
  return JSON.parse(JSON.stringify({ [`${name}.`]: value }).replace(`${name}.`, name)) as Context;
}

/** Names of members that every object has, and names that an adapter may leave out. */
export const ODD_NAMES: readonly Alike[] = [
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
export async function lookAlike(trial: KeyWrapperTrial, pairs: readonly Alike[]): Promise<Looked> {
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
