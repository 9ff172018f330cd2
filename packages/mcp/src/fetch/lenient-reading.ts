import { CARRIER_METHODS } from '../boundary/request-identity.ts';

/*
 * Parsers differ: Python's reads NaN and UTF-16, Ruby's comments, Go's finds a member whatever its case, and some take the
 * first of two members with one name. A text that this package cannot read, or reads in another way, could still be a
 * request to the handler. What another parser finds in a text is spelled out in it, with escapes or without.
 */

/** Whether a parser of the handler's could find a request in this text whose result may carry a state. */
export function mayBeCarrier(text: string): boolean {
  return namesCarrier(text) || namesCarrier(withoutEscapes(text));
}

function namesCarrier(text: string): boolean {
  return CARRIER_METHODS.some((method) => text.includes(method));
}

/** Whether a parser of the client's could find a state in this text. */
export function mayHaveState(text: string): boolean {
  return withoutEscapes(text).includes('requestState');
}

const ENVELOPE = ['jsonrpc', 'id', 'method', 'params'];
const PARAMS = ['name', 'arguments', 'uri', 'requestState', 'inputResponses'];

/** Whether some parsers take a member of this message for another one, such as `RequestState` or `request_state`. */
export function hasLookalike(message: unknown): boolean {
  if (typeof message !== 'object' || message === null) return false;
  return (
    Object.keys(message).some((key) => resembles(key, ENVELOPE)) ||
    Object.entries(message).some(
      ([key, value]) => key === 'params' && Object.keys(Object(value)).some((name) => resembles(name, PARAMS)),
    )
  );
}

function resembles(key: string, names: readonly string[]): boolean {
  return !names.includes(key) && names.some((name) => name.toLowerCase() === folded(key));
}

/** Go folds letters beyond ASCII too: U+017F is an `s`, and U+212A a `k`. */
function folded(key: string): string {
  return key.normalize('NFKC').toLowerCase().replaceAll(/[-_]/g, '');
}

const ESCAPE = /\\(?:u[\da-f]{4}|u\{[\da-f]+\}|x[\da-f]{2}|\r\n|[^])/gi;

/** The text as ASCII: of UTF-16 and UTF-32 only the zero bytes are left out. */
function withoutEscapes(text: string): string {
  const letters = text.includes('\0') ? text.replaceAll('\0', '') : text;
  if (!letters.includes('\\')) return letters;
  return letters.replaceAll(ESCAPE, (escape) => {
    const code = /^\\(?:u|x)\{?([\da-f]+)/i.exec(escape)?.[1];
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    // Before the end of a line, a backslash continues a text in some formats. Before any other character it is that one.
    return escape.slice(1).trim();
  });
}
