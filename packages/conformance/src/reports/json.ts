import type { RunRecord } from './record.ts';

/** The report of a run as it is, two spaces deep. */
export function jsonReport({ report }: RunRecord): string {
  return `${JSON.stringify(report, undefined, 2)}\n`;
}
