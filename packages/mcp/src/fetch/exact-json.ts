import { randomBytes } from 'node:crypto';

/**
 * Parses JSON. Integers that a double cannot represent become bigints, because a handler that reads 64-bit integers
 * must get the number that the client sent. The integer -0 becomes 0.
 * @throws {SyntaxError} for text that is not JSON, and for a number out of range, which would be printed as null.
 * @throws {RangeError} for text that contains long numbers and is nested too deeply.
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!/\d{16}|\d[eE]\+?\d{3}|-0(?![\d.eE])/.test(text)) return value;
  const mark = newMark();
  // Marks integers that may not fit in a double, and -0. By default, no parser reads more than 4096 digits as an integer.
  const marked = (part: string) => part.replaceAll(/(?<![\d.eE+-])(?:-?\d{16,4096}|-0)(?![\d.eE])/g, `"${mark}$&"`);
  return unmarked(JSON.parse(outsideOfStrings(text, marked)), mark);
}

/** The JSON of a value from {@link parseExactly}. @throws {RangeError} for a value that is nested too deeply. */
export function printExactly(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    // JSON.stringify throws for a bigint.
  }
  const mark = newMark();
  return JSON.stringify(withMarks(value, mark)).replaceAll(`"${mark}`, '').replaceAll(`${mark}"`, '');
}

/** A random string that does not occur in any text that was sent. */
function newMark(): string {
  return randomBytes(8).toString('hex');
}

/**
 * Changes `value` in place, which is several times faster than passing `JSON.parse` a reviver.
 * @throws {SyntaxError} for a number out of range.
 */
function unmarked(value: unknown, mark: string): unknown {
  if (typeof value === 'string') return value.startsWith(mark) ? integerOf(value.slice(mark.length)) : value;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new SyntaxError('a number is out of range');
  if (typeof value === 'object' && value !== null) replaceMembers(value, (one) => unmarked(one, mark));
  return value;
}

function integerOf(digits: string): number | bigint {
  // The sum of -0 and 0 is 0. In most languages, as in Python, there is no integer -0.
  const integer = Number(digits) + 0;
  return Number.isSafeInteger(integer) ? integer : BigInt(digits);
}

function withMarks(value: unknown, mark: string): unknown {
  if (typeof value === 'bigint') return `${mark}${value}${mark}`;
  if (typeof value !== 'object' || value === null) return value;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  replaceMembers(copy, (one) => withMarks(one, mark));
  return copy;
}

function replaceMembers(value: object, replaced: (one: unknown) => unknown): void {
  // An array can have millions of members, and iterating over its keys would take several times as long.
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) value[at] = replaced(value[at]);
    return;
  }
  for (const key of Object.keys(value)) Reflect.set(value, key, replaced(Reflect.get(value, key)));
}

/** Replaces the parts of a JSON text that are not in strings. */
export function outsideOfStrings(json: string, replaced: (part: string) => string): string {
  const parts: string[] = [];
  let at = 0;
  for (let opening = json.indexOf('"'); opening !== -1; opening = json.indexOf('"', at)) {
    const end = endOfString(json, opening);
    parts.push(replaced(json.slice(at, opening)), json.slice(opening, end));
    at = end;
  }
  parts.push(replaced(json.slice(at)));
  return parts.join('');
}

/** The end of the string that begins at `opening`. */
function endOfString(json: string, opening: number): number {
  for (let closing = json.indexOf('"', opening + 1); ; closing = json.indexOf('"', closing + 1)) {
    if (closing === -1) return json.length;
    let backslashes = 0;
    while (json[closing - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return closing + 1;
  }
}
