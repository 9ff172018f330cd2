import { type Row, type RowStatus, type RunRecord, repeatOf, rowsOf } from '../reports/record.ts';
import { visibleLine } from '../reports/visible.ts';
import { countsOf, STATUS_WORDS, verdictOf } from '../reports/words.ts';
import type { Paint } from './paint.ts';

const COLOURS: Readonly<Record<RowStatus, Parameters<Paint>[0]>> = {
  pass: 'green',
  fail: 'red',
  warn: 'yellow',
  'not-applicable': 'dim',
  'not-tried': 'dim',
};

/** What a run came to, for a terminal: a table, each finding below it, the verdict last. */
export function summaryOf(record: RunRecord, paint: Paint, isQuiet: boolean): string {
  const rows = rowsOf(record);
  const findings = rows.filter(({ status }) => status === 'fail' || status === 'warn');
  const isBad = rows.some(({ status }) => status === 'fail') || !record.report.passed;
  const verdict = `${verdictOf(visibleLine(record.report.target), rows)} ${countsOf(rows)} (seed ${record.report.seed})`;
  return [
    ...(isQuiet ? [] : [...tableOf(rows, paint), '']),
    ...causesOf(findings).flatMap((cause) => [...findingOf(record, cause, paint), '']),
    paint(['bold', isBad ? 'red' : 'green'], verdict),
    '',
  ].join('\n');
}

function tableOf(rows: readonly Row[], paint: Paint): readonly string[] {
  const longest = Math.max(...rows.map(({ id }) => id.length));
  const words = Math.max(...rows.map(({ status }) => STATUS_WORDS[status].length));
  return rows.map(({ id, level, status, durationMs }) => {
    const word = paint(COLOURS[status], STATUS_WORDS[status].padEnd(words));
    return `${id.padEnd(longest)}  ${level.padEnd(6)}  ${word}  ${String(durationMs).padStart(6)} ms`;
  });
}

/** Equal findings are printed once: a target that cannot start fails every requirement. */
function causesOf(findings: readonly Row[]): readonly (readonly [Row, ...Row[]])[] {
  const byCause = new Map<string, [Row, ...Row[]]>();
  for (const row of findings) {
    const cause = `${row.status} ${row.detail}`;
    const known = byCause.get(cause);
    if (known === undefined) byCause.set(cause, [row]);
    else known.push(row);
  }
  return [...byCause.values()];
}

function findingOf(record: RunRecord, [first, ...others]: readonly [Row, ...Row[]], paint: Paint): string[] {
  const { id, status, level, text, source, detail } = first;
  return [
    `${paint(COLOURS[status], `${id} ${STATUS_WORDS[status]}`)} (${level})`,
    `  ${text}`,
    `  Source: ${source}`,
    `  Found:  ${visibleLine(detail ?? '')}`,
    ...(others.length === 0 ? [] : [`  Same:   ${others.map((other) => other.id).join(', ')}`]),
    `  Repeat: ${visibleLine(repeatOf(record, id))}`,
  ];
}
