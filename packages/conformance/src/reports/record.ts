import type { ConformanceReport, ConformanceResult } from '../report.ts';
import type { Requirement } from '../requirement.ts';

/** A run, and what a reader of its report has to know beside the report itself. */
export interface RunRecord {
  readonly report: ConformanceReport;
  /** What was to be tried, in order; a run that was interrupted has fewer results. */
  readonly wanted: readonly Requirement[];
  /** The words of the command that repeats the run, without `--only` and `--seed`. */
  readonly command: readonly string[];
}

export type RowStatus = ConformanceResult['status'] | 'not-tried';

/** One requirement, and what became of it. */
export interface Row extends Requirement {
  readonly status: RowStatus;
  readonly detail: string | undefined;
  readonly durationMs: number;
}

/** Every requirement that was to be tried, in order. */
export function rowsOf({ report, wanted }: RunRecord): readonly Row[] {
  return wanted.map((requirement) => {
    const result = report.results.find(({ id }) => id === requirement.id);
    const { status = 'not-tried', detail, durationMs = 0 } = result ?? {};
    return { ...requirement, status, detail, durationMs };
  });
}

/** The command that tries one requirement again. */
export function repeatOf({ report, command }: RunRecord, id: string): string {
  return [...command, '--only', id, '--seed', String(report.seed)].map(shellWord).join(' ');
}

/** A word as a shell reads it back. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
