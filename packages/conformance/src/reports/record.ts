import type { ConformanceReport, ConformanceResult, Requirement } from '../requirement.ts';
import { unicode } from '../thrown.ts';

/** A run, with further facts for its report. */
export interface RunRecord {
  readonly report: ConformanceReport;
  /** All requirements of the run, in order. An interrupted run has fewer results. */
  readonly wanted: readonly Requirement[];
  /** The arguments of the command that repeats the run, without `--only` and `--seed`. */
  readonly command: readonly string[];
}

export type RowStatus = ConformanceResult['status'] | 'not-tried';

/** One requirement and its result. */
export interface Row extends Requirement {
  readonly status: RowStatus;
  readonly detail: string | undefined;
  readonly durationMs: number;
}

export function rowsOf({ report, wanted }: RunRecord): readonly Row[] {
  return wanted.map((requirement) => {
    const result = report.results.find(({ id }) => id === requirement.id);
    const { status = 'not-tried', detail, durationMs = 0 } = result ?? {};
    return { ...requirement, status, detail, durationMs };
  });
}

export function repeatOf({ report, command }: RunRecord, id: string): string {
  return [...command, '--only', id, '--seed', String(report.seed)].map(shellWord).join(' ');
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** The display of a status: its word, its plural, and a sign for readers who cannot see its colour. */
interface StatusLook {
  readonly word: string;
  readonly more: string;
  readonly heading: string;
  readonly sign: string;
  /** Visible on light and dark backgrounds. */
  readonly colour: string;
  readonly paint: 'green' | 'red' | 'yellow' | 'dim';
}

const GREY = { colour: '#6e7781', paint: 'dim' } as const;

export const STATUSES: Readonly<Record<RowStatus, StatusLook>> = {
  fail: { word: 'fails', more: 'fail', heading: 'Failures', sign: '✕', colour: '#cf222e', paint: 'red' },
  warn: { word: 'warns', more: 'warn', heading: 'Warnings', sign: '!', colour: '#9a6700', paint: 'yellow' },
  'not-tried': { word: 'not checked', more: 'not checked', heading: 'Not checked', ...GREY, sign: '?' },
  'not-applicable': {
    word: 'does not apply',
    more: 'do not apply',
    heading: 'Not applicable',
    ...GREY,
    sign: '–',
  },
  pass: { word: 'holds', more: 'hold', heading: 'Passed', sign: '✓', colour: '#1a7f37', paint: 'green' },
};

export const STATUS_ORDER: readonly RowStatus[] = Object.keys(STATUSES) as RowStatus[];

export function verdictOf(target: string, rows: readonly Row[]): string {
  const failed = countOf(rows, 'fail');
  const untried = countOf(rows, 'not-tried');
  if (failed > 0) return `${target} fails: ${failed} of its MUSTs ${failed === 1 ? 'does' : 'do'} not hold.`;
  if (untried > 0) return `${target} is undecided: ${untried} of ${rows.length} requirements were not checked.`;
  return `${target} passes: every checked MUST holds.`;
}

/** `36 hold, 1 warns, 2 do not apply`: the count of every status. */
export function countsOf(rows: readonly Row[]): string {
  return STATUS_ORDER.toReversed()
    .map((status) => [status, countOf(rows, status)] as const)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${wordsOf(status, count)}`)
    .join(', ');
}

function wordsOf(status: RowStatus, count: number): string {
  const verb = count === 1 ? 'was' : 'were';
  const { word, more } = STATUSES[status];
  return `${status === 'not-tried' ? `${verb} ` : ''}${count === 1 ? word : more}`;
}

function countOf(rows: readonly Row[], status: RowStatus): number {
  return rows.filter((row) => row.status === status).length;
}

/**
 * Invisible characters that change how text appears: controls (C0, C1 and bidirectional), line separators, zero-width
 * joiners, lone surrogates and noncharacters.
 */
const UNSEEN =
  /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\p{Noncharacter_Code_Point}\u200b\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** Replaces invisible characters with escape sequences such as `\u202e`. Keeps line feeds and tabs. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (char) => (char === '\n' || char === '\t' ? char : unicode(char)));
}

export function visibleLine(text: string): string {
  return text.replaceAll(UNSEEN, unicode);
}
