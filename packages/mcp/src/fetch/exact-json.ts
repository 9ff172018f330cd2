import { randomUUID } from 'node:crypto';

/** Integers outside of strings that a double may not hold. Longer ones no parser reads as integers by default. */
const LONG_INTEGER = /(?<![\d.eE+-])-?\d{16,4096}(?![\d.eE])/g;

/**
 * Parses JSON. Integers that a double does not hold are a bigint: the handler may read 64 bits, and must get the number that
 * the client sent. @throws {SyntaxError} for a text that is not JSON.
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!/\d{16}/.test(text)) return value;
  const mark = randomUUID();
  let isMarked = false;
  const marked = outsideOfStrings(text, (part) =>
    part.replaceAll(LONG_INTEGER, (integer) => {
      if (Number.isSafeInteger(Number(integer))) return integer;
      isMarked = true;
      return `"${mark}${integer}"`;
    }),
  );
  if (!isMarked) return value;
  return JSON.parse(marked, (_key, one: unknown) =>
    typeof one === 'string' && one.startsWith(mark) ? BigInt(one.slice(mark.length)) : one,
  );
}

/** The JSON of a value of {@link parseExactly}. */
export function printExactly(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // It prints no bigint.
    if (!(error instanceof TypeError)) throw error;
  }
  const mark = randomUUID();
  const text = JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? `${mark}${one}` : one));
  return text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1');
}

/** Replaces the parts of a JSON text that are not in strings. */
function outsideOfStrings(json: string, replaced: (part: string) => string): string {
  const parts: string[] = [];
  let at = 0;
  while (at < json.length) {
    const opening = json.indexOf('"', at);
    if (opening === -1) break;
    const end = endOfString(json, opening);
    parts.push(replaced(json.slice(at, opening)), json.slice(opening, end));
    at = end;
  }
  parts.push(replaced(json.slice(at)));
  return parts.join('');
}

/** Where the string that begins at `opening` has ended. */
function endOfString(json: string, opening: number): number {
  for (let closing = json.indexOf('"', opening + 1); ; closing = json.indexOf('"', closing + 1)) {
    if (closing === -1) return json.length;
    let backslashes = 0;
    while (json[closing - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return closing + 1;
  }
}
