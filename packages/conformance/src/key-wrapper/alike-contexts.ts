import type { WrapOptions } from '@sealring/core';
import { CONTEXT, copyOf, type KeyWrapperTrial, kindOf, settle, wrappedKeyOf } from './trial.ts';

type Context = WrapOptions['context'];

/** Two contexts that a careless encoding takes for one: what each has besides {@link CONTEXT}. */
export interface Alike {
  readonly what: string;
  readonly one: Context;
  readonly other: Context;
}

/** What stands between names and values, and between members, where somebody joins a context by hand. */
const PRINTABLE = ['', '=', ':', ',', '&', ';', '"', '":"', '","', ' ', '|', '/'];
const CONTROL = ['\n', '\0'];

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

/** Characters that somebody normalizes, trims, or cuts to a byte. */
export const ALIKE_CHARACTERS: readonly Alike[] = [
  { what: 'with a space after a value', one: { c1: 'x' }, other: { c1: 'x ' } },
  { what: 'with a space before a value', one: { c2: 'x' }, other: { c2: ' x' } },
  { what: 'with a newline after a value', one: { c3: 'x' }, other: { c3: 'x\n' } },
  { what: 'with a space after a name', one: { c4: 'x' }, other: { 'c4 ': 'x' } },
  { what: 'with an é of two code points for one', one: { d1: '\u00e9' }, other: { d1: 'e\u0301' } },
  { what: 'with the two letters of a ligature', one: { d2: '\ufb01' }, other: { d2: 'fi' } },
  { what: 'with A (U+0041) for Ł (U+0141)', one: { d3: '\u0141' }, other: { d3: '\u0041' } },
  { what: 'with one letter beyond Latin-1 for another', one: { d4: '\u0141' }, other: { d4: '\u0143' } },
];

const LONG = 'x'.repeat(1_000);

/** Values that somebody cuts, or reads the beginning of. */
export const LONG_CONTEXTS: readonly Alike[] = [
  { what: 'with another last character of a long value', one: { long: `${LONG}1` }, other: { long: `${LONG}2` } },
];

/** What came of looking: what opened that should not have, in words, and what could not be tried. */
interface Looked {
  readonly found?: string;
  readonly leftOut: readonly string[];
}

/**
 * Looks for contexts that a key wrapper takes for one another, when it has opened its wrapped key and may remember that.
 * What a service does not take is left out: contexts of any text are more than a ring has.
 */
export async function lookAlike(trial: KeyWrapperTrial, pairs: readonly Alike[]): Promise<Looked> {
  const keyWrapper = await trial.create();
  const dataKey = trial.dataKey(keyWrapper);
  const context = contextOf(pairs.map(({ one }) => one));
  const outcome = await settle(() => keyWrapper.wrap(Uint8Array.from(dataKey), { context }));
  if ('error' in outcome) return lookOneByOne(trial, pairs);
  const made = wrappedKeyOf(outcome.value, 'wrap');
  await trial.expectOpens(keyWrapper, made, dataKey, undefined, { context });
  for (const pair of pairs) {
    const others = contextOf(pairs.map((each) => (each === pair ? each.other : each.one)));
    const opened = await settle(() => keyWrapper.unwrap(copyOf(made), { context: others }));
    // By whatever error: a service may refuse the context for what it is.
    if ('value' in opened) return { found: `${pair.what} was not refused: ${kindOf(opened.value)}`, leftOut: [] };
  }
  return { leftOut: [] };
}

async function lookOneByOne(trial: KeyWrapperTrial, pairs: readonly Alike[]): Promise<Looked> {
  if (pairs.length <= 1) return { leftOut: pairs.map(({ what }) => what) };
  const leftOut: string[] = [];
  for (const pair of pairs) {
    const looked = await lookAlike(trial, [pair]);
    if (looked.found !== undefined) return looked;
    leftOut.push(...looked.leftOut);
  }
  return { leftOut };
}

function contextOf(additions: readonly Context[]): Context {
  return Object.assign({ ...CONTEXT }, ...additions) as Context;
}
