import { show } from './options.ts';

/* One file, because the printer is fast only if text, escapes and numbers all go into one buffer. */

/** Depth of nesting at which a value is refused: far beyond any real request, but far from a stack overflow. */
const MAX_DEPTH = 512;
/** How many bytes are printed before they are passed to {@link CanonicalJsonOptions.write}. */
const PIECE = 65_536;
/** How many code units of a text are printed at a time, so that the output stays in the processor's cache. */
const PART = 8_192;
/** Bytes of the longest escape, `\uXXXX`. */
const LONGEST_ESCAPE = 6;

/** How a value is printed. */
export interface CanonicalJsonOptions {
  /** Order the members of every object by code point. Default: false, insertion order. */
  readonly sortKeys?: boolean;
  /** Print ±Infinity, which `JSON.parse('1e400')` yields, as Python does, instead of refusing it. Default: false. */
  readonly allowInfinity?: boolean;
  /** Print a bigint as an integer, instead of refusing it. Default: false. */
  readonly allowBigInt?: boolean;
  /**
   * Receives long text in pieces while it is printed. A piece is ASCII, and is overwritten as soon as this function
   * returns. The result of {@link canonicalJson} is then only the text after the last piece. An error that this function
   * throws ends the printing. Default: none, so the result is the whole text.
   */
  readonly write?: (piece: Uint8Array) => void;
}

/**
 * Prints plain JSON values exactly as Python's `json.dumps(value, separators=(",", ":"), sort_keys=sortKeys)` does:
 * ASCII only, every code unit from 0x7f on as a lower-case `\uXXXX`, keys in the order of their code points, floats as
 * Python prints them. A safe integer prints as an integer, every other number as a float. Details that
 * `JSON.parse` has lost (the `.0` of `1.0` and `-0.0`, digits of integers beyond 2^53) cannot be recovered, so such
 * values do not match across languages.
 *
 * The value is serialized as it is, never rebuilt: rebuilding reorders integer-like keys and loses `__proto__`.
 *
 * @throws {TypeError} for anything but a plain JSON value: undefined, NaN, a bigint unless allowed, a function, a class instance.
 * @throws {RangeError} for nesting deeper than 512.
 */
export function canonicalJson(value: unknown, options: CanonicalJsonOptions = {}): string {
  if (typeof value === 'string' && value.length < SHORT) {
    // Nearly every name and id is printed this way.
    if (PLAIN.test(value)) return `"${value}"`;
    // The engine escapes ASCII in the same way, except for U+007F.
    if (!BEYOND_ASCII.test(value)) return JSON.stringify(value);
  }
  const printer = new Printer(options);
  printer.print(value, 0);
  return printer.rest();
}

/** A string that is the whole value, and has fewer code units than this, can bypass {@link Printer}. */
const SHORT = 4_096;
const BEYOND_ASCII = /[\u007f-\uffff]/;
/** Printable ASCII that is printed as it stands: no quotation mark, no backslash. */
const PLAIN = /^[ !#-[\]-~]*$/;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** From this length on, calling the engine's function is faster. */
const LONG = 48;
/** How many numbers of an array the engine prints at a time. */
const RUN = 1_024;
/** The numbers of a shorter array are printed one by one. */
const SHORT_ARRAY = 8;

/**
 * Indexed by code unit: 0 if it is printed as it is, else the character after the backslash; `u` for a hexadecimal
 * escape.
 */
const ESCAPES = Uint8Array.from({ length: 0x80 }, (_, unit) => {
  if (unit === 0x7f) return LETTER_U;
  // If there is no second character, the result is NaN, which the array stores as 0.
  return JSON.stringify(String.fromCharCode(unit)).slice(1, -1).charCodeAt(1);
});

/** Indexed by byte: its two hexadecimal digits, written at once. */
const HEX = Uint16Array.from({ length: 0x100 }, (_, byte) => (hexDigit(byte >> 4) << 8) | hexDigit(byte & 15));

function escapeOf(unit: number): number {
  return unit < 0x80 ? (ESCAPES[unit] ?? 0) : LETTER_U;
}

/** Writes a code unit whose escape is not 0, and returns the position of the next one. */
function writeEscape(to: DataView, at: number, unit: number, escape: number): number {
  to.setUint16(at, (BACKSLASH << 8) | escape);
  if (escape !== LETTER_U) return at + 2;
  to.setUint16(at + 2, HEX[unit >> 8] ?? 0);
  to.setUint16(at + 4, HEX[unit & 0xff] ?? 0);
  return at + LONGEST_ESCAPE;
}

/**
 * Prints into bytes, without joining strings. Numbers that the engine prints in the same way as Python are left to the
 * engine, many at a time.
 */
class Printer {
  readonly #o: CanonicalJsonOptions;
  #bytes = Buffer.allocUnsafe(512);
  /** A view of these bytes, created when the first character must be escaped. */
  #view: DataView | undefined;
  #at = 0;

  constructor(options: CanonicalJsonOptions) {
    this.#o = options;
  }

  /** The output that has not been passed on yet. */
  rest(): string {
    return this.#bytes.toString('latin1', 0, this.#at);
  }

  print(value: unknown, depth: number): void {
    if (typeof value === 'string') return this.#string(value);
    if (typeof value === 'number') return this.#number(value);
    if (value === null) return this.#ascii('null');
    if (typeof value === 'boolean') return this.#ascii(value ? 'true' : 'false');
    if (typeof value === 'bigint' && this.#o.allowBigInt === true) return this.#ascii(String(value));
    if (typeof value !== 'object') throw new TypeError(`not a JSON value: ${show(value)}`);
    if (depth >= MAX_DEPTH) throw new RangeError(`the JSON is nested deeper than ${MAX_DEPTH} levels`);
    if (Array.isArray(value)) return this.#array(value, depth + 1);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) throw new TypeError('not a JSON value: a class instance');
    this.#object(value, depth + 1);
  }

  #array(values: readonly unknown[], depth: number): void {
    this.#ascii('[');
    // Also visits holes, so that they are refused, because they are not JSON.
    for (let i = 0; i < values.length; ) {
      if (i > 0) this.#byte(COMMA);
      const value = values[i];
      i += 1;
      if (typeof value === 'number' && values.length >= SHORT_ARRAY) i += this.#numbers(value, values, i, depth);
      else this.print(value, depth);
    }
    this.#ascii(']');
  }

  /**
   * Prints `first`, then the run of values from index `from` on that the engine prints in the same way as Python, and
   * then the value that ends this run. Every value is read once.
   * @returns how many of `values` were printed.
   */
  #numbers(first: number, values: readonly unknown[], from: number, depth: number): number {
    if (!isPlainNumber(first)) {
      this.#number(first);
      return 0;
    }
    const run = [first];
    const end = Math.min(values.length, from + RUN);
    let next: unknown;
    let i = from;
    let isStopped = false;
    while (i < end && !isStopped) {
      next = values[i];
      i += 1;
      if (typeof next === 'number' && isPlainNumber(next)) run.push(next);
      else isStopped = true;
    }
    // Some libraries put a toJSON on every array.
    this.#ascii('toJSON' in run ? run.join(',') : JSON.stringify(run).slice(1, -1));
    if (isStopped) {
      this.#byte(COMMA);
      this.print(next, depth);
    }
    return i - from;
  }

  #object(value: object, depth: number): void {
    const keys = Object.keys(value);
    if (this.#o.sortKeys === true) sortByCodePoint(keys);
    this.#ascii('{');
    for (const key of keys) {
      if (key !== keys[0]) this.#byte(COMMA);
      this.#string(key);
      this.#byte(COLON);
      this.print(Reflect.get(value, key), depth);
    }
    this.#ascii('}');
  }

  #string(text: string): void {
    this.#byte(QUOTE);
    const isPlain = PLAIN.test(text);
    for (let from = 0; from < text.length; from += PART) {
      const part = text.slice(from, from + PART);
      if (isPlain) this.#ascii(part);
      else this.#escaped(part);
    }
    this.#byte(QUOTE);
  }

  #escaped(text: string): void {
    this.#reserve(text.length * LONGEST_ESCAPE);
    if (text.length > LONG) return this.#longEscaped(text);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      const escape = escapeOf(unit);
      if (escape === 0) bytes[at++] = unit;
      else at = writeEscape(this.#viewed(), at, unit, escape);
    }
    this.#at = at;
  }

  /**
   * Copies the text out as a whole first, as bytes for ASCII and otherwise as code units: reading is then several times
   * faster.
   */
  #longEscaped(text: string): void {
    const bytes = this.#bytes;
    const view = this.#viewed();
    let at = this.#at;
    if (Buffer.byteLength(text) === text.length) {
      const units = Buffer.from(text, 'latin1');
      for (let i = 0; i < units.length; i++) {
        const unit = units[i] ?? 0;
        const escape = escapeOf(unit);
        if (escape === 0) bytes[at++] = unit;
        else at = writeEscape(view, at, unit, escape);
      }
    } else {
      const copy = Buffer.from(text, 'utf16le');
      const units = new DataView(copy.buffer, copy.byteOffset, copy.length);
      for (let i = 0; i < copy.length; i += 2) {
        const unit = units.getUint16(i, true);
        const escape = escapeOf(unit);
        if (escape === 0) bytes[at++] = unit;
        else at = writeEscape(view, at, unit, escape);
      }
    }
    this.#at = at;
  }

  #viewed(): DataView {
    this.#view ??= new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    return this.#view;
  }

  #number(value: number): void {
    this.#ascii(numberText(value, this.#o.allowInfinity));
  }

  #ascii(text: string): void {
    this.#reserve(text.length);
    const bytes = this.#bytes;
    let at = this.#at;
    if (text.length > LONG) at += bytes.write(text, at, 'latin1');
    else for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
    this.#at = at;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = byte;
  }

  /** Makes room for this number of further bytes. */
  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    if (this.#o.write !== undefined && this.#at >= PIECE) {
      this.#o.write(this.#bytes.subarray(0, this.#at));
      this.#at = 0;
      return this.#reserve(count);
    }
    const grown = Buffer.allocUnsafe(2 * (this.#at + count));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
    this.#view = undefined;
  }
}

function hexDigit(value: number): number {
  return value + (value < 10 ? 0x30 : 0x57);
}

/** If no key contains any of these, the engine's order, by code unit, is the same as the order by code point. */
const SURROGATE_OR_ABOVE = /[\ud800-\uffff]/;
/** Up to this many keys are sorted by insertion, because a call to `sort` would take longer. */
const FEW = 12;

function sortByCodePoint(keys: string[]): void {
  if (keys.length <= FEW) return sortFew(keys);
  keys.sort(keys.some((key) => SURROGATE_OR_ABOVE.test(key)) ? compareCodePoints : undefined);
}

function sortFew(keys: string[]): void {
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string;
    let to = i;
    for (; to > 0 && compareCodePoints(keys[to - 1] as string, key) > 0; to--) keys[to] = keys[to - 1] as string;
    keys[to] = key;
  }
}

function numberText(value: number, allowInfinity: boolean | undefined): string {
  if (isPlainNumber(value)) return String(value);
  if (Number.isNaN(value)) throw new TypeError('not a JSON value: NaN');
  if (Number.isFinite(value)) return printFloat(value);
  if (allowInfinity !== true) throw new TypeError(`not a JSON value: ${value}`);
  return String(value);
}

/**
 * Whether the engine and Python print the value in the same way. This is true of a safe integer, and of a fraction that
 * neither prints with an exponent.
 */
function isPlainNumber(value: number): boolean {
  if (Number.isInteger(value)) return Number.isSafeInteger(value) && (value !== 0 || !Object.is(value, -0));
  const size = Math.abs(value);
  return size >= SMALLEST_PLAIN && size < Number.POSITIVE_INFINITY;
}

/** Between these bounds, Python prints a float without an exponent. */
const [SMALLEST_PLAIN, LARGEST_PLAIN] = [1e-4, 1e16];

/** Python's repr of any other float: shortest digits, and an exponent of two digits or more. */
function printFloat(value: number): string {
  if (value === 0) return '-0.0';
  if (Number.isInteger(value) && Math.abs(value) < LARGEST_PLAIN) return `${value}.0`;
  return value.toExponential().replace(/(?<=[+-])\d$/, '0$&');
}

// UTF-16 order puts surrogates (astral characters) before U+E000..U+FFFF; code point order does not.
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Both texts have the same preceding unit. If it is a high surrogate, a low one here completes its code point.
    const isHalf = isHighSurrogate(a.charCodeAt(i - 1)) && (isLowSurrogate(x) || isLowSurrogate(y));
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
