import { clearScreenDown, cursorTo } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';
import { Help } from 'commander';

/** The narrowest and the widest text: longer lines are hard to read. */
const MIN_WIDTH = 40;
const MAX_WIDTH = 120;
/** The width of a stream whose width is unknown. */
const DEFAULT_WIDTH = 80;

/** The width of standard output, in columns. */
export function pageWidth(): number {
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columnsOf(process.stdout)));
}

/** The width of a stream, in columns. A terminal of unknown width reports 0; a pipe or a file has none. */
export function columnsOf({ columns = 0 }: { readonly columns?: number }): number {
  return columns > 0 ? columns : DEFAULT_WIDTH;
}

/**
 * The text after a prefix. On a terminal, it is wrapped, and later lines are indented to the end of the prefix.
 * Elsewhere, it stays on one line, so that `grep` finds all of it.
 */
export function wrapped(prefix: string, text: string): string {
  if (!process.stdout.isTTY) return `${prefix}${text}`;
  const indent = stripVTControlCharacters(prefix).length;
  const lines = new Help().boxWrap(text, pageWidth() - indent);
  return `${prefix}${lines.replaceAll('\n', `\n${' '.repeat(indent)}`)}`;
}

/** Prints text; on a terminal, clears the screen first. */
export function redraw(text: string): void {
  if (process.stdout.isTTY) {
    cursorTo(process.stdout, 0, 0);
    clearScreenDown(process.stdout);
  }
  process.stdout.write(text);
}
