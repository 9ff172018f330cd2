import type { ConformanceReport, ConformanceResult, Requirement } from '../requirement.ts';
import { unicode } from '../thrown.ts';

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

/** What is shown of a status: its word, the word for several, and a sign beside its colour, for readers who cannot see colours. */
interface StatusLook {
  readonly word: string;
  readonly more: string;
  readonly heading: string;
  readonly sign: string;
  /** Seen on light and on dark. */
  readonly colour: string;
  /** On a terminal. */
  readonly paint: 'green' | 'red' | 'yellow' | 'dim';
}

const GREY = { colour: '#6e7781', paint: 'dim' } as const;

export const STATUSES: Readonly<Record<RowStatus, StatusLook>> = {
  fail: { word: 'fails', more: 'fail', heading: 'What fails', sign: '✕', colour: '#cf222e', paint: 'red' },
  warn: { word: 'warns', more: 'warn', heading: 'What warns', sign: '!', colour: '#9a6700', paint: 'yellow' },
  'not-tried': { word: 'not tried', more: 'not tried', heading: 'What was not tried', ...GREY, sign: '?' },
  'not-applicable': {
    word: 'does not apply',
    more: 'do not apply',
    heading: 'What does not apply',
    ...GREY,
    sign: '–',
  },
  pass: { word: 'holds', more: 'hold', heading: 'What holds', sign: '✓', colour: '#1a7f37', paint: 'green' },
};

/** The worst first. */
export const STATUS_ORDER: readonly RowStatus[] = Object.keys(STATUSES) as RowStatus[];

/** The verdict in one sentence. */
export function verdictOf(target: string, rows: readonly Row[]): string {
  const failed = countOf(rows, 'fail');
  const untried = countOf(rows, 'not-tried');
  if (failed > 0) return `${target} fails: ${failed} of its MUSTs ${failed === 1 ? 'does' : 'do'} not hold.`;
  if (untried > 0) return `${target} is undecided: ${untried} of ${rows.length} requirements were not tried.`;
  return `${target} passes: every MUST that was tried holds.`;
}

/** `36 hold, 1 warns, 2 do not apply`: every status that came up. */
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
 * Characters that are not seen, and change what is: controls (C0, C1 and bidirectional), separators of lines, joiners
 * of no width, halves of surrogate pairs and code points that are not characters.
 */
const UNSEEN =
  /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}\p{Noncharacter_Code_Point}\u200b\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** A text with such characters written out: `\u202e`. Line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (char) => (char === '\n' || char === '\t' ? char : unicode(char)));
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return text.replaceAll(UNSEEN, unicode);
}
