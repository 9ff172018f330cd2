import type { WrapOptions } from '@sealring/core';

export type Context = WrapOptions['context'];

/** Two contexts that an ambiguous encoding confuses: the members of each besides {@link CONTEXT}. */
export type Alike = readonly [what: string, one: Context, other: Context];

/** Separators of names, values and members that an adapter may use to join a context. */
const PRINTABLE = ['', '=', ':', ',', '&', ';', '"', '":"', '","', ' ', '|', '/', '.', '-', '_'];
const CONTROL = ['\n', '\0', '\t', '\u001f'];

/** Text moved across a separator: from a name into its value, or from a value into the next name. */
export const SHIFTED_CONTEXTS: readonly (readonly Alike[])[] = [PRINTABLE, CONTROL].map((separators) =>
  separators.flatMap((separator, i) => {
    // Names that are unique for each separator, so that many pairs fit into one context.
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

/** Contexts that an adapter confuses if it escapes separators with a backslash, but not the backslash itself. */
export const ESCAPED_CONTEXTS: readonly Alike[] = [
  ['=', ','],
  [':', ';'],
  ['=', '&'],
  [': ', '\n'],
].map(([after, between], i): Alike => {
  const [name, next] = [`y${i}`, `y${i}z`];
  const what = `with a backslash that looks like the escape of ${JSON.stringify(between)}`;
  return [what, { [`${name}${after}x${between}${next}`]: 'x' }, { [`${name}\\`]: 'x\\', [next]: 'x' }];
});

/** Contexts that an adapter confuses if it escapes only the first of two separators in a value. */
export const TWICE_SEPARATED: readonly Alike[] = [
  [';', '='],
  [',', ':'],
  ['&', '='],
].map(([between, after], i): Alike => {
  const [name, next] = [`z${i}`, `z${i}z`];
  const what = `with a second ${JSON.stringify(between)} in a value that looks like the end of its member`;
  return [what, { [name]: `1${between}2${between}${next}${after}3` }, { [name]: `1${between}2`, [next]: '3' }];
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
  ['with 1.0 instead of 1', { c8: '1' }, { c8: '1.0' }],
  ['with 01 instead of 1', { c9: '1' }, { c9: '01' }],
  ['with an é of two code points instead of one', { d1: '\u00e9' }, { d1: 'e\u0301' }],
  ['with the two letters of a ligature', { d2: '\ufb01' }, { d2: 'fi' }],
  ['with A (U+0041) instead of Ł (U+0141)', { d3: '\u0141' }, { d3: '\u0041' }],
  ['with another letter outside Latin-1', { d4: '\u0141' }, { d4: '\u0143' }],
  ['with a Cyrillic letter instead of a Latin one', { d5: 'a' }, { d5: '\u0430' }],
  ['with the character of an emoji’s last 16 bits instead of the emoji', { d7: '\u{1f600}' }, { d7: '\uf600' }],
  ['with a different emoji', { d6: '\u{1f600}' }, { d6: '\u{1f601}' }],
  ['with a percent sign that is encoded', { e1: '%' }, { e1: '%25' }],
  ['with a plus sign instead of a space', { e2: 'x y' }, { e2: 'x+y' }],
  ['with a backslash that is doubled', { e3: '\\' }, { e3: '\\\\' }],
  ['with the text null instead of an empty value', { e4: '' }, { e4: 'null' }],
  ['with a different line ending', { e5: 'x\ny' }, { e5: 'x\r\ny' }],
  ['with a zero-width space', { e6: 'x' }, { e6: 'x\u200b' }],
  ['with a no-break space instead of a space', { e7: 'x y' }, { e7: 'x\u00a0y' }],
  ['with an asterisk instead of a value', { e8: 'x' }, { e8: '*' }],
  ['with 1e0 instead of 1', { e9: '1' }, { e9: '1e0' }],
  ['with text in quotes', { f1: 'x' }, { f1: '"x"' }],
  ['with yes instead of true', { f2: 'true' }, { f2: 'yes' }],
  ['with a byte order mark before a value', { f3: 'x' }, { f3: '\ufeffx' }],
  ['with a JSON escape instead of its letter', { f4: 'A' }, { f4: '\\u0041' }],
  ['with a backslash and n instead of a newline', { f5: '\n' }, { f5: '\\n' }],
  ['with letters whose sum is equal', { f6: 'bb' }, { f6: 'ac' }],
  ['with letters in a different order', { f7: 'ab' }, { f7: 'ba' }],
  ['with a date in a different form', { f9: '2026-01-02T03:04:05Z' }, { f9: '2026-01-02T03:04:05.000Z' }],
  ['without the control characters of a value', { h1: 'x\u0001\u0008\u001b\u007f' }, { h1: 'x' }],
  ['without a tab in a value', { h2: 'x\ty' }, { h2: 'xy' }],
  ['with an encoded ampersand', { f8: '&' }, { f8: '&amp;' }],
  ...['.:', '._', '-_', '/.', '/-', '/:', ' _', '/\\'].map(
    ([one, other], i): Alike => [
      `with ${JSON.stringify(other)} instead of ${JSON.stringify(one)}`,
      { [`g${i}`]: `x${one}y` },
      { [`g${i}`]: `x${other}y` },
    ],
  ),
];

/** Pairs of contexts that differ in a value, and pairs that differ in the same way in a name. */
export const ALIKE_CHARACTERS: readonly Alike[] = [
  ...ALIKE_VALUES,
  ...ALIKE_VALUES.flatMap(([what, one, other]): readonly Alike[] => {
    const [[name, text] = ['', ''], [, otherText] = ['', '']] = [...Object.entries(one), ...Object.entries(other)];
    if (!(name in other)) return [];
    return [[`${what}, in a name`, { [`${name}-${text}`]: 'x' }, { [`${name}-${otherText}`]: 'x' }]];
  }),
];

const LONG = 1_000;

/** Values and names that an adapter may truncate. */
export const CUT_CONTEXTS: readonly Alike[] = [
  [
    'with a different character in the middle of 3 000',
    { l7: `${'x'.repeat(1_500)}1${'x'.repeat(1_499)}` },
    { l7: `${'x'.repeat(1_500)}2${'x'.repeat(1_499)}` },
  ],
  ...[LONG - 1, LONG / 2, 300].map((place): Alike => {
    const valueOf = (char: string): string => 'x'.repeat(place) + char + 'x'.repeat(LONG - place - 1);
    const name = `at${place}`;
    const what = `with a different character at position ${place + 1} of ${LONG} in a value`;
    return [what, { [name]: valueOf('1') }, { [name]: valueOf('2') }];
  }),
  [
    'with a different last character in a long name',
    { [`${'n'.repeat(120)}1`]: 'x' },
    { [`${'n'.repeat(120)}2`]: 'x' },
  ],
  ['with a long value extended by one character', { l5: 'x'.repeat(300) }, { l5: 'x'.repeat(301) }],
  ['with a value shortened by one character', { l6: 'xy' }, { l6: 'x' }],
];

const many = (last: string): Context =>
  Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`m${String(i).padStart(2, '0')}`, i === 23 ? last : 'x']));

export const MANY_MEMBERS: readonly Alike[] = [
  ['with a different value for the last of 24 members', many('1'), many('2')],
];

/** A member with a name that every object has, created with JSON since an assignment would set the inherited member. */
function own(name: string, value: string): Context {
  return JSON.parse(JSON.stringify({ [`${name}.`]: value }).replace(`${name}.`, name)) as Context;
}

/** A name and its value. If an adapter stores lengths in one byte, the end of a long value looks like this member. */
const [NAME, VALUE] = ['n'.repeat(127), 'v'.repeat(127)];

export const WRAPPED_LENGTHS: readonly Alike[] = [
  ['whose lengths are equal modulo 256', { lm: `x\u007f${NAME}\u007f${VALUE}` }, { lm: 'x', [NAME]: VALUE }],
];

/** Names that an adapter may use for members which it adds. */
const OWN_NAMES = 'version alg kid key keyId provider aad nonce ring type v'.split(' ');

/** Names of members that every object has, and names that an adapter may omit. */
export const ODD_NAMES: readonly Alike[] = [
  ...OWN_NAMES.map(
    (name): Alike => [`with another value of ${JSON.stringify(name)}`, { [name]: 'x' }, { [name]: 'y' }],
  ),
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0', ''].map(
    (name): Alike => [`with another value of ${JSON.stringify(name)}`, own(name, 'x'), own(name, 'y')],
  ),
  ['with other times', { 'sealring:times': '1/2/3/4' }, { 'sealring:times': '1/2/3/5' }],
  ['without times', { 'sealring:times': '1/2/3/4' }, {}],
  ['with an extra member "__proto__"', {}, own('__proto__', 'x')],
  ['without its member "__proto__"', own('__proto__', 'x'), {}],
  ['with a name and its value exchanged', { s1: 's2' }, { s2: 's1' }],
  ['with the values of two members exchanged', { s3: 'x', s4: 'y' }, { s3: 'y', s4: 'x' }],
  ['without a member whose name and value are equal', { s5: 's5' }, {}],
  ['without two members that have the same value', { s6: 'x', s7: 'x' }, {}],
  ['with a numeric name in a different form', { 1: 'x' }, { '01': 'x' }],
  ['with a name that writes the same path differently', { 'p.0': 'x' }, { 'p[0]': 'x' }],
  ['without a member whose value is empty', { o1: '' }, {}],
  ['with another value of a name that begins with a dot', { '.o2': 'x' }, { '.o2': 'y' }],
  ['with another value of a name that begins with aws:', { 'aws:o3': 'x' }, { 'aws:o3': 'y' }],
];
