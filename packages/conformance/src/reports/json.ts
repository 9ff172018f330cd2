import type { RunRecord } from './record.ts';
import { visible } from './visible.ts';

/** The report of a run as it is, two spaces deep; what is not seen is written as JSON writes it, `\u202e`. */
export function jsonReport({ report }: RunRecord): string {
  return `${visible(JSON.stringify(report, undefined, 2))}\n`;
}
