import { CARRIER_METHODS } from '../boundary/request-identity.ts';
import { ownMember } from '../shared/own-member.ts';

/*
 * Parsers differ: Python's accepts NaN and UTF-16, Ruby's accepts comments, Go's matches the name of a member
 * regardless of case, and some use the first of two members with the same name. Text that this package cannot read, or
 * reads differently, can still be a request to the handler. Therefore `mayBeCarrier` and `mayHaveState` search the text
 * itself for the names that another parser could find, even if they are escaped.
 */

/** Whether a parser of the handler could find, in this text, a request whose result may carry a state. */
export function mayBeCarrier(text: string): boolean {
  return namesCarrier(text) || namesCarrier(withoutEscapes(text));
}

function namesCarrier(text: string): boolean {
  return CARRIER_METHODS.some((method) => text.includes(method));
}

/** Whether a parser of the client could find a state in this text. */
export function mayHaveState(text: string): boolean {
  return withoutEscapes(text).includes('requestState');
}

const ENVELOPE = lookalikesOf(['jsonrpc', 'id', 'method', 'params']);
const PARAMS = lookalikesOf(['name', 'arguments', 'uri', 'requestState', 'inputResponses']);

/** Keyed by the name in lower case. */
type Lookalikes = ReadonlyMap<string, string>;

function lookalikesOf(names: readonly string[]): Lookalikes {
  return new Map(names.map((name) => [name.toLowerCase(), name]));
}

/**
 * Whether some parsers read a different request from the one that this package reads: they treat a member such
 * as `RequestState` or `request_state` as `requestState`, end a string at a zero character, or read a structure from an
 * array, element by element.
 */
export function isMisleading(message: unknown): boolean {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return true;
  const method = ownMember(message, 'method');
  const params = ownMember(message, 'params') ?? {};
  return (
    (typeof method === 'string' && method.includes('\0')) ||
    typeof params !== 'object' ||
    Array.isArray(params) ||
    Object.keys(message).some((key) => resembles(key, ENVELOPE)) ||
    Object.keys(params).some((key) => resembles(key, PARAMS))
  );
}

function resembles(key: string, lookalikes: Lookalikes): boolean {
  // If a handler copies an object with `Object.assign`, the value of this member becomes the prototype of the copy.
  if (key === '__proto__') return true;
  const name = lookalikes.get(folded(key));
  return name !== undefined && name !== key;
}

/** No spelling of a name is longer than this, because NFKC does not join several characters into one letter. */
const LONGEST_SPELLING = 100;

/** Go also folds letters outside ASCII: U+017F is an `s`, and U+212A is a `k`. */
function folded(key: string): string {
  const name = key.replace(/\0[^]*/, '');
  // NFKC reorders accents in quadratic time, which takes hours for a request of a few megabytes.
  if (name.length > LONGEST_SPELLING) return name;
  return name.normalize('NFKC').toLowerCase().replaceAll(/[-_]/g, '');
}

/**
 * The text as ASCII. The zero bytes of UTF-16 and UTF-32 are left out, and so is invalid UTF-8, because some parsers
 * ignore it.
 */
function withoutEscapes(text: string): string {
  const letters = text.replaceAll(/[\0\uFFFD]/g, '');
  return letters.replaceAll(/\\(?:u[\da-f]{4}|u\{[\da-f]+\}|x[\da-f]{2}|\r\n|[^])/gi, (escape) => {
    const code = /\\(?:u|x)\{?([\da-f]+)/i.exec(escape)?.[1];
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    // In some formats, a backslash before the end of a line continues a string. A backslash before any other character
    // represents that character.
    return escape.slice(1).trim();
  });
}
