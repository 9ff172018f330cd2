import { show } from './options.ts';

/** Nesting at which a value is refused: far above any real request, far below a stack overflow. */
const MAX_DEPTH = 512;

/** How a value is printed. */
export interface CanonicalJsonOptions {
  /** Order the members of every object by code point. Default: false, insertion order. */
  readonly sortKeys?: boolean;
  /** Print ±Infinity, which `JSON.parse('1e400')` yields, as Python does, instead of refusing it. Default: false. */
  readonly allowInfinity?: boolean;
}

/**
 * Prints plain JSON values exactly as Python's `json.dumps(value, separators=(",", ":"), sort_keys=sortKeys)` does:
 * ASCII only, every code unit from 0x7f on as a lower-case `\uXXXX`, keys by code point, floats as Python prints them.
 * A safe integer prints as an integer, every other number as a float: what `JSON.parse` has lost (`1.0`, integers
 * beyond 2^53, the sign of `-0`) cannot be told apart, so such values do not match across languages.
 *
 * The value is serialised as it is, never rebuilt: rebuilding reorders integer-like keys and loses `__proto__`.
 *
 * @throws {TypeError} for anything that is no plain JSON value: undefined, NaN, a bigint, a function, a class instance.
 * @throws {RangeError} for nesting deeper than 512.
 */
export function canonicalJson(value: unknown, options: CanonicalJsonOptions = {}): string {
  return print(value, options, 0);
}

function print(value: unknown, options: CanonicalJsonOptions, depth: number): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'number') return printNumber(value, options);
  if (typeof value === 'string') return printString(value);
  if (typeof value !== 'object') throw new TypeError(`not a JSON value: ${show(value)}`);
  if (depth >= MAX_DEPTH) throw new RangeError(`JSON nested deeper than ${MAX_DEPTH}`);
  if (Array.isArray(value)) return printArray(value, options, depth + 1);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) throw new TypeError('not a JSON value: a class instance');
  return printObject(value, options, depth + 1);
}

function printArray(values: readonly unknown[], options: CanonicalJsonOptions, depth: number): string {
  let text = '[';
  // Holes are visited: join would print them as nothing.
  for (let i = 0; i < values.length; i++) text += (i === 0 ? '' : ',') + print(values[i], options, depth);
  return `${text}]`;
}

function printObject(value: object, options: CanonicalJsonOptions, depth: number): string {
  const keys = Object.keys(value);
  if (options.sortKeys === true && keys.length > 1) keys.sort(compareCodePoints);
  let text = '{';
  for (const key of keys) {
    if (text !== '{') text += ',';
    text += `${printString(key)}:${print(Reflect.get(value, key), options, depth)}`;
  }
  return `${text}}`;
}

/** Printable ASCII that is printed as it stands: no quotation mark, no backslash. */
const PLAIN = /^[ !#-[\]-~]*$/;

function printString(text: string): string {
  // Nearly every name and id.
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function printNumber(value: number, options: CanonicalJsonOptions): string {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  if (Number.isNaN(value)) throw new TypeError('not a JSON value: NaN');
  if (!Number.isFinite(value)) {
    if (options.allowInfinity !== true) throw new TypeError(`not a JSON value: ${value}`);
    return String(value);
  }
  return printFloat(value);
}

/** Python's repr of a float: shortest digits, an exponent of two digits or more below 1e-4 and from 1e16 on. */
export function printFloat(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) {
    // Both languages print the shortest digits that come back to the same float.
    const text = String(value);
    return text.includes('.') ? text : `${text}.0`;
  }
  const [mantissa = '', exponentText = ''] = value.toExponential().split('e');
  const exponent = Number(exponentText);
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

// UTF-16 order puts surrogates (astral characters) before U+E000..U+FFFF; code point order does not.
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Behind a high surrogate, which both have, a low one is the second half of a code point that begins there.
    const isHalf = i > 0 && isHighSurrogate(a.charCodeAt(i - 1)) && (isLowSurrogate(x) || isLowSurrogate(y));
    const start = isHalf ? i - 1 : i;
    return (a.codePointAt(start) ?? 0) - (b.codePointAt(start) ?? 0);
  }
  return a.length - b.length;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
