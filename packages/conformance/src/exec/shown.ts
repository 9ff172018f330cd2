import { stripVTControlCharacters } from 'node:util';

const LONGEST_VALUE = 60;
const LONGEST_TEXT = 300;

/** The output of another program, shortened to one line. Pass `both` if a stack trace may name its error last. */
export function shownText(text: string, keep: 'start' | 'both' = 'start'): string {
  // Removes terminal escape sequences.
  const line = withoutKeys(stripVTControlCharacters(text))
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  if (line.length <= LONGEST_TEXT) return line;
  if (keep === 'start') return `${line.slice(0, LONGEST_TEXT)}…`;
  return `${line.slice(0, LONGEST_TEXT / 2)} … ${line.slice(-LONGEST_TEXT / 2)}`;
}

/** A line with the name of an error: the last line of a Python traceback, or a line within the output of Node. */
const NAMES_ERROR = /^[\w.]*(?:Error|Exception)\b.*$/gm;

/** The output of a program that ended without an answer: its first line, and the last one that names an error. */
export function shownStart(errors: string): string {
  const text = stripVTControlCharacters(errors).replaceAll(/\r\n?/g, '\n');
  const first = text.split('\n').find((line) => shownText(line) !== '') ?? '';
  const last = text.match(NAMES_ERROR)?.at(-1) ?? first;
  return first === last ? shownText(first) : `${shownText(first)} … ${shownText(last)}`;
}

/** A request as it was sent, with long values truncated, and without data keys. */
export function shownRequest(request: object): string {
  return withoutKeys(asciiJson(request, (_, value) => shortened(value))).replaceAll('\\u2026', '…');
}

function withoutKeys(text: string): string {
  return text.replaceAll(/("dataKey"\s*:\s*")[^"]*/g, '$1…');
}

/** JSON in ASCII, which reads the same in every encoding and under every definition of line endings. */
export function asciiJson(value: object, replacer?: (name: string, value: unknown) => unknown): string {
  return JSON.stringify(value, replacer).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function shortened(value: unknown): unknown {
  return typeof value === 'string' && value.length > LONGEST_VALUE ? `${value.slice(0, LONGEST_VALUE)}…` : value;
}
