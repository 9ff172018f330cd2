import {
  countsOf,
  type Row,
  type RowStatus,
  type RunRecord,
  repeatOf,
  rowsOf,
  STATUS_ORDER,
  STATUSES,
  verdictOf,
  visible,
} from './record.ts';

/** HTML text in which every value is escaped. */
class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** HTML from a template. Escapes values unless they are {@link Markup}, and concatenates arrays. */
function html(parts: TemplateStringsArray, ...values: readonly unknown[]): Markup {
  return new Markup(parts.map((part, i) => part + (i < values.length ? escaped(values[i]) : '')).join(''));
}

function raw(text: string): Markup {
  return new Markup(text);
}

function escaped(value: unknown): string {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(escaped).join('');
  return String(value).replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

const COLUMNS = 13;
const CELL = 24;
const GAP = 4;

/** A picture of a run: one cell for each requirement, in the order of the checks. */
function strip(rows: readonly Row[]): unknown {
  const lines = Math.ceil(rows.length / COLUMNS);
  return html`<svg class="strip" role="img" aria-label="${rows.length} requirements: ${countsOf(rows)}"
 viewBox="0 0 ${size(COLUMNS)} ${size(lines)}">
${rows.map((row, i) => cell(row, (i % COLUMNS) * (CELL + GAP), Math.floor(i / COLUMNS) * (CELL + GAP)))}
</svg>`;
}

function size(cells: number): number {
  return cells * (CELL + GAP) - GAP;
}

function cell({ id, status }: Row, x: number, y: number): unknown {
  const { word, sign, colour } = STATUSES[status];
  return html`<g class="${status}"><title>${id}: ${word}</title>
<rect x="${x}" y="${y}" width="${CELL}" height="${CELL}" rx="4" fill="${colour}"/>
<text x="${x + CELL / 2}" y="${y + CELL / 2}" dy=".35em" text-anchor="middle" fill="#fff">${sign}</text></g>`;
}

/** The content security policy of a report: nothing loads or runs, whatever the name of the target contains. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/**
 * The HTML report of a run: one self-contained page. The template escapes all text. Invisible characters, and those
 * that an HTML document must not contain (HTML Living Standard, 13.2.3.5), appear as escape sequences.
 */
export function htmlReport(record: RunRecord): string {
  const { target, suite, startedAt, kitVersion, seed } = record.report;
  const rows = rowsOf(record);
  const tried = rows.filter(({ status }) => status !== 'not-tried').length;
  const took = rows.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const verdict = rows.some(({ status }) => status === 'fail') ? 'fail' : record.report.passed ? 'pass' : 'not-tried';
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${target}: ${suite} conformance</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<header>
<h1>${target}</h1>
<p class="verdict ${verdict}">${verdictOf(target, rows)}</p>
<p>Checked: ${tried} of ${rows.length} requirements of the ${suite} suite. ${countsOf(rows)}.</p>
${strip(rows)}
<dl>
<dt>Started</dt><dd><time datetime="${startedAt}">${startedAt}</time>, ${(took / 1_000).toFixed(1)} s</dd>
<dt>Seed</dt><dd>${seed}</dd>
<dt>Kit</dt><dd>@sealring/conformance ${kitVersion}</dd>
</dl>
</header>
<main>
${STATUS_ORDER.map((status) => section(record, status, rows))}
</main>
<footer>A failed MUST fails the run; a failed SHOULD only warns.</footer>
</body>
</html>
`;
  return visible(page.text);
}

function section(record: RunRecord, status: RowStatus, rows: readonly Row[]): unknown {
  const its = rows.filter((row) => row.status === status);
  if (its.length === 0) return '';
  return html`<section>
<h2>${STATUSES[status].heading} (${its.length})</h2>
${its.map((row) => entry(record, row))}
</section>`;
}

function entry(record: RunRecord, row: Row): unknown {
  const { id, level, status, text, source, detail, durationMs } = row;
  const isFinding = status === 'fail' || status === 'warn';
  const detailWord = isFinding ? 'Found' : status === 'pass' ? 'Remark' : 'Reason';
  return html`<details class="${status}" id="${id}"${raw(isFinding ? ' open' : '')}>
<summary><b>${STATUSES[status].word}</b> ${id}</summary>
<dl>
<dt>Text</dt><dd>${text}</dd>
<dt>Level</dt><dd>${level}</dd>
<dt>Source</dt><dd>${source}</dd>
${detail === undefined ? '' : html`<dt>${detailWord}</dt><dd><code>${detail}</code></dd>`}
${status === 'not-tried' ? '' : html`<dt>Took</dt><dd>${durationMs} ms</dd>`}
<dt>Repeat</dt><dd><code>${repeatOf(record, id)}</code></dd>
</dl>
</details>
`;
}

/** The style of the HTML report: one column without fixed widths, which fits 360 px, with a light and a dark scheme. */
const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d1d9e0;
  --pass: #1a7f37; --fail: #cf222e; --warn: #9a6700; --rest: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --paper: #0d1117; --card: #151b23;
  --line: #3d444d; --pass: #3fb950; --fail: #f85149; --warn: #d29922; --rest: #9198a1; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 50rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { border-left: .4rem solid var(--rest); padding: .2rem .8rem; font-weight: 600; }
.verdict.pass { border-color: var(--pass); }
.verdict.fail { border-color: var(--fail); }
dl { margin: .5rem 0; }
dt { color: var(--dim); font-size: .85rem; }
dd { margin: 0 0 .5rem; }
.strip { display: block; width: 100%; max-width: 30rem; height: auto; margin: 1rem 0; font: 700 14px system-ui, sans-serif; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .5rem .8rem; }
summary { cursor: pointer; }
summary b { color: var(--rest); }
details.pass summary b { color: var(--pass); }
details.fail summary b { color: var(--fail); }
details.warn summary b { color: var(--warn); }
code { font: .9em/1.4 ui-monospace, monospace; white-space: pre-wrap; }
footer { color: var(--dim); font-size: .85rem; margin-top: 2rem; }
`;
