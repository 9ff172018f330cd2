import { cursorTo, clearScreenDown } from 'node:readline';
import { Help } from 'commander';

/** The narrowest and the widest text: longer lines are hard to read. */
const MIN_WIDTH = 40;
const MAX_WIDTH = 120;
/** Of a pipe or a file, where nobody says how wide a line may be. */
const DEFAULT_WIDTH = 80;

/** The width of standard output, in columns. */
export function pageWidth(): number {
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, process.stdout.columns ?? DEFAULT_WIDTH));
}

/**
 * Wraps a line for a terminal; later lines are indented. Elsewhere the line stays whole, so that `grep` finds all of it.
 */
export function wrapped(line: string, indent: number): string {
  if (!process.stdout.isTTY) return line;
  const width = pageWidth() - indent;
  return new Help().boxWrap(line, width).replaceAll('\n', `\n${' '.repeat(indent)}`);
}

/** Prints a text; on a terminal, over everything that was there before. */
export function redraw(text: string): void {
  if (process.stdout.isTTY) {
    cursorTo(process.stdout, 0, 0);
    clearScreenDown(process.stdout);
  }
  process.stdout.write(text);
}
