import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import {
  countsOf,
  type Row,
  type RunRecord,
  repeatOf,
  rowsOf,
  STATUSES,
  verdictOf,
  visibleLine,
} from '../reports/record.ts';

export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

/** Returns a function that colours text on a terminal or with FORCE_COLOR, but never with NO_COLOR. */
export function paintFor(stream: { readonly isTTY?: boolean }, isWanted: boolean): Paint {
  const { FORCE_COLOR: forced, NO_COLOR: refused = '' } = process.env;
  const isShown = (stream.isTTY === true || forced !== undefined) && refused === '';
  // hasColors reads FORCE_COLOR and TERM; styleText itself does so only from Node 22.13. Both prefer FORCE_COLOR to NO_COLOR.
  const isColoured = isWanted && isShown && WriteStream.prototype.hasColors();
  return (format, text) => (isColoured ? styleText(format, text, { validateStream: false }) : text);
}

/** Interval of updates on a terminal, and of printed lines elsewhere, in milliseconds. */
const REWRITE_MS = 200;
const PRINT_MS = 2_000;

/** The stream for progress, such as standard error. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Shows progress: on a terminal as one line that is rewritten, elsewhere as occasional lines. */
export class Progress {
  readonly #stream: ProgressStream;
  readonly #total: number;
  readonly #began = performance.now();
  #text = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: ProgressStream, total: number) {
    this.#stream = stream;
    this.#total = total;
  }

  show(done: number, id: string): void {
    this.#text = `${done}/${this.#total} ${id}`;
    const isFirst = this.#timer === undefined;
    this.#timer ??= setInterval(() => this.#tell(), this.#isTerminal ? REWRITE_MS : PRINT_MS);
    if (isFirst || this.#isTerminal) this.#tell();
  }

  end(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#isTerminal) this.#stream.write('\r\u001b[K');
  }

  get #isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  #tell(): void {
    const line = `${this.#text} (${Math.round((performance.now() - this.#began) / 1_000)} s)`;
    // A line that wraps cannot be rewritten.
    const { columns = 0 } = this.#stream;
    // A terminal of unknown width reports 0.
    const shown = `\r${line.slice(0, (columns > 0 ? columns : 80) - 1)}\u001b[K`;
    this.#stream.write(this.#isTerminal ? shown : `${line}\n`);
  }
}

/** The result of a run for a terminal: a table, the findings, and the verdict. */
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
  const words = Math.max(...rows.map(({ status }) => STATUSES[status].word.length));
  return rows.map(({ id, level, status, durationMs }) => {
    const word = paint(STATUSES[status].paint, STATUSES[status].word.padEnd(words));
    return `${id.padEnd(longest)}  ${level.padEnd(6)}  ${word}  ${String(durationMs).padStart(6)} ms`;
  });
}

/** Groups equal findings, since a target that cannot start fails every requirement. */
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
    `${paint(STATUSES[status].paint, `${id} ${STATUSES[status].word}`)} (${level})`,
    `  ${text}`,
    `  Source: ${source}`,
    `  Found:  ${visibleLine(detail ?? '')}`,
    ...(others.length === 0 ? [] : [`  Same:   ${others.map((other) => other.id).join(', ')}`]),
    `  Repeat: ${visibleLine(repeatOf(record, id))}`,
  ];
}
