import type { Estimate } from '../statistics.ts';
import type { Verdict } from '../verdict.ts';

const NONE = '–';
const FIGURES = 3;

/** Two decimals, three digits below 1; JSON has null for a value that is not a number. */
export function numberShown(value: number | null | undefined): string {
  if (value === undefined || value === null || !Number.isFinite(value)) return NONE;
  return String(Number(Math.abs(value) < 1 ? value.toPrecision(FIGURES) : value.toFixed(2)));
}

/** A ratio, always with two decimals, so that columns line up. */
export function ratioShown(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? NONE : value.toFixed(2);
}

export function estimateShown(estimate: Estimate | undefined, shown = ratioShown): string {
  if (estimate === undefined) return NONE;
  return `${shown(estimate.median)} (${shown(estimate.low)} to ${shown(estimate.high)})`;
}

export function measuredShown({ measured }: Verdict): string {
  return Number.isFinite(measured) ? numberShown(measured) : 'not measured';
}

/** A number as in a cell: alone, with its bounds, a share, `1 of 2`, or none. */
const NUMBER = /^(?:\**-?\d+(?:\.\d+)?(?:$|[ *])|–$|not measured$)/;

/** A Markdown table. Columns of numbers are right-aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(inCell).join(' | ')} |`;
  const isNumeric = head.map((_, column) => rows.every((row) => NUMBER.test(row[column] ?? '')));
  const rule = `|${isNumeric.map((numeric) => (numeric ? '---:' : '---')).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

const inCell = (text: string): string => text.replaceAll('|', '\\|');

/** Names of packages as code: some renderers mistake them for user names or tags. */
export function safe(text: string): string {
  return text.replaceAll(/(?<!`)@[\w-]+\/[\w-]+/g, '`$&`');
}
