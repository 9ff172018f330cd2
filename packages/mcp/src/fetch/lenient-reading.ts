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

const REQUEST: readonly string[] = ['jsonrpc', 'id', 'method', 'params'];
const RESPONSE: readonly string[] = ['jsonrpc', 'id', 'result', 'error'];
const MESSAGE = lookalikesOf([...REQUEST, ...RESPONSE]);
const PARAMS = lookalikesOf(['name', 'arguments', 'uri', 'requestState', 'inputResponses']);

/** Keyed by the name in lower case. */
type Lookalikes = ReadonlyMap<string, string>;

function lookalikesOf(names: readonly string[]): Lookalikes {
  return new Map(names.map((name) => [name.toLowerCase(), name]));
}

/** What parsers could find in the body of a request. */
export interface LenientReading {
  /** Whether a parser could find a JSON-RPC message. */
  readonly holdsRpc: boolean;
  /**
   * Whether some parsers read a different request from the one that this package reads: they treat a member such
   * as `RequestState` or `request_state` as `requestState`, end a string at a zero character, read a structure from an
   * array, element by element, or read an object as a batch.
   */
  readonly isMisleading: boolean;
}

const MISLEADING: LenientReading = { holdsRpc: true, isMisleading: true };

/** @param isSuspect - Whether the text names a method whose result may carry a state. */
export function readLeniently(body: unknown, isSuspect: boolean): LenientReading {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  // An array of neither objects nor arrays has no params, and therefore no state.
  const isChecked = isSuspect && (messages === body ? messages.some(isObject) : true);
  let holdsRpc = false;
  for (const message of messages) {
    const names = namesIn(message);
    if (hasUnclearMethod(message, names) || (isChecked && isMisleadingMessage(message, names))) return MISLEADING;
    holdsRpc ||= isMessage(names);
  }
  for (const message of nestedIn(body, holdsRpc)) {
    const names = namesIn(message);
    if (hasUnclearMethod(message, names)) return MISLEADING;
    holdsRpc ||= isCall(names);
  }
  return { holdsRpc, isMisleading: false };
}

/**
 * Whether a call has a method that some languages find equal to another one: `["tools/call"]` is the text `tools/call`
 * as a key in JavaScript, and `true` is equal to every text in PHP.
 */
function hasUnclearMethod(message: unknown, names: Names): boolean {
  return isCall(names) && !hasClearMethod(Object(message));
}

/** Some languages remove lone surrogates and the replacement of invalid bytes, or end a text at a zero character. */
function hasClearMethod(message: object): boolean {
  const methods = Object.entries(message).filter(([key]) => nameOf(key) === 'method');
  return methods.every(([, method]) => typeof method === 'string' && !/[\0\uFFFD\p{Surrogate}]/u.test(method));
}

/** Checks a message of a body that names a method whose result may carry a state. */
function isMisleadingMessage(message: unknown, names: Names): boolean {
  if (!isRecord(message)) return true;
  // If a handler copies an object with `Object.assign`, the value of this member becomes the prototype of the copy.
  if (Object.hasOwn(message, '__proto__')) return true;
  // PHP reads `{"0": …}` as a batch.
  if (!isMessage(names)) {
    const nested: readonly unknown[] = Object.values(message).flat();
    return nested.some((one) => isMessage(namesIn(one)));
  }
  const known = names.has('method') ? REQUEST : RESPONSE;
  return (
    !Object.keys(message).every((key) => known.includes(key)) ||
    !hasClearMethod(message) ||
    hasMisleadingParams(ownMember(message, 'params') ?? {})
  );
}

function hasMisleadingParams(params: unknown): boolean {
  if (!isRecord(params)) return true;
  return Object.keys(params).some((key) => key === '__proto__' || (PARAMS.get(folded(key)) ?? key) !== key);
}

/** The values in an object that a parser could take for the messages of a batch. */
function nestedIn(body: unknown, isOneMessage: boolean): readonly unknown[] {
  if (!isRecord(body)) return [];
  const keys = Object.keys(body).filter((key) => !isOneMessage || (key !== 'params' && key !== 'result'));
  return keys.map((key) => body[key]);
}

/** Names of members that a parser could find in a message. */
type Names = ReadonlySet<string | undefined>;

const NO_NAMES: Names = new Set();

function namesIn(value: unknown): Names {
  if (!isRecord(value)) return NO_NAMES;
  const keys = Object.keys(value);
  return keys.length === 0 ? NO_NAMES : new Set(keys.map(nameOf));
}

function nameOf(key: string): string | undefined {
  return MESSAGE.get(folded(key));
}

function isMessage(names: Names): boolean {
  return names.has('jsonrpc') || names.has('method');
}

/** Whether an object is more than one with a member `method`, which requests on other routes can also have. */
function isCall(names: Names): boolean {
  return names.has('jsonrpc') || (names.has('method') && names.has('params'));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** No spelling of a name is longer than this, because NFKC does not join several characters into one letter. */
const LONGEST_SPELLING = 100;

/** Go also folds letters outside ASCII: U+017F is an `s`, and U+212A is a `k`. */
function folded(key: string): string {
  if (/^[a-z]*$/.test(key)) return key;
  const name = key.replaceAll(/\0[^]*|\uFFFD|\p{Surrogate}/gu, '');
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
