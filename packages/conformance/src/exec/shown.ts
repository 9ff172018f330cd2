import { stripVTControlCharacters } from 'node:util';

const LONGEST_VALUE = 60;
const LONGEST_TEXT = 300;

/** What another program wrote, in one line and not too long. A stack names its error first, or last. */
export function shownText(text: string, keep: 'start' | 'both' = 'start'): string {
  // Nothing that would move a cursor or colour a terminal.
  const line = withoutKeys(stripVTControlCharacters(text))
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  if (line.length <= LONGEST_TEXT) return line;
  if (keep === 'start') return `${line.slice(0, LONGEST_TEXT)}…`;
  return `${line.slice(0, LONGEST_TEXT / 2)} … ${line.slice(-LONGEST_TEXT / 2)}`;
}

/** Of a Python traceback the last line has the name of the error, of what Node prints one between. */
const NAMES_ERROR = /^[\w.]*(?:Error|Exception)\b.*$/gm;

/** What a program wrote before it ended without an answer: its first line, and the last one that names an error. */
export function shownStart(errors: string): string {
  const text = stripVTControlCharacters(errors).replaceAll(/\r\n?/g, '\n');
  const first = text.split('\n').find((line) => shownText(line) !== '') ?? '';
  const last = text.match(NAMES_ERROR)?.at(-1) ?? first;
  return first === last ? shownText(first) : `${shownText(first)} … ${shownText(last)}`;
}

/** A request as it was sent, with its long values cut, and without data keys. */
export function shownRequest(request: object): string {
  return withoutKeys(asciiJson(request, (_, value) => shortened(value))).replaceAll('\\u2026', '…');
}

function withoutKeys(text: string): string {
  return text.replaceAll(/("dataKey"\s*:\s*")[^"]*/g, '$1…');
}

/** JSON in ASCII: whatever encoding a program reads, and wherever it ends its lines, it reads the same. */
export function asciiJson(value: object, replacer?: (name: string, value: unknown) => unknown): string {
  return JSON.stringify(value, replacer).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function shortened(value: unknown): unknown {
  return typeof value === 'string' && value.length > LONGEST_VALUE ? `${value.slice(0, LONGEST_VALUE)}…` : value;
}
