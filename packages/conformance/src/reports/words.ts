import type { Row, RowStatus } from './record.ts';

/** What a status is called where people read it. */
export const STATUS_WORDS: Readonly<Record<RowStatus, string>> = {
  pass: 'holds',
  fail: 'fails',
  warn: 'warns',
  'not-applicable': 'does not apply',
  'not-tried': 'not tried',
};

/** The worst first. */
export const STATUS_ORDER: readonly RowStatus[] = ['fail', 'warn', 'not-tried', 'not-applicable', 'pass'];

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
  const words: Readonly<Record<RowStatus, readonly [one: string, more: string]>> = {
    fail: ['fails', 'fail'],
    warn: ['warns', 'warn'],
    'not-tried': ['was not tried', 'were not tried'],
    'not-applicable': ['does not apply', 'do not apply'],
    pass: ['holds', 'hold'],
  };
  return STATUS_ORDER.toReversed()
    .map((status) => [countOf(rows, status), words[status]] as const)
    .filter(([count]) => count > 0)
    .map(([count, [one, more]]) => `${count} ${count === 1 ? one : more}`)
    .join(', ');
}

function countOf(rows: readonly Row[], status: RowStatus): number {
  return rows.filter((row) => row.status === status).length;
}
