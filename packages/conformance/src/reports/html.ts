import { STYLE } from './html-style.ts';
import { html, raw } from './markup.ts';
import { type Row, type RowStatus, type RunRecord, repeatOf, rowsOf } from './record.ts';
import { strip } from './strip.ts';
import { visible } from './visible.ts';
import { countsOf, STATUS_ORDER, STATUS_WORDS, verdictOf } from './words.ts';

const HEADINGS: Readonly<Record<RowStatus, string>> = {
  fail: 'What fails',
  warn: 'What warns',
  'not-tried': 'What was not tried',
  'not-applicable': 'What does not apply',
  pass: 'What holds',
};

/** Nothing is loaded and nothing runs, whatever a target put into its name. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/**
 * The report of a run for people: one page that needs nothing else. Every text is escaped by the template; characters
 * that an HTML document must not hold (HTML Living Standard, 13.2.3.5), or that are not seen, are written out.
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
<p>Tried: ${tried} of ${rows.length} requirements of the ${suite} suite. ${countsOf(rows)}.</p>
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
<footer>A MUST that fails fails the run; a SHOULD warns.</footer>
</body>
</html>
`;
  return visible(page.toString());
}

function section(record: RunRecord, status: RowStatus, rows: readonly Row[]): unknown {
  const its = rows.filter((row) => row.status === status);
  if (its.length === 0) return '';
  return html`<section>
<h2>${HEADINGS[status]} (${its.length})</h2>
${its.map((row) => entry(record, row))}
</section>`;
}

function entry(record: RunRecord, row: Row): unknown {
  const { id, level, status, text, source, detail, durationMs } = row;
  const isFinding = status === 'fail' || status === 'warn';
  const detailWord = isFinding ? 'Found' : status === 'pass' ? 'Seen' : 'Why';
  return html`<details class="${status}" id="${id}"${raw(isFinding ? ' open' : '')}>
<summary><b>${STATUS_WORDS[status]}</b> ${id}</summary>
<dl>
<dt>Tried</dt><dd>${text}</dd>
<dt>Level</dt><dd>${level}</dd>
<dt>Source</dt><dd>${source}</dd>
${detail === undefined ? '' : html`<dt>${detailWord}</dt><dd><code>${detail}</code></dd>`}
${status === 'not-tried' ? '' : html`<dt>Took</dt><dd>${durationMs} ms</dd>`}
<dt>Repeat</dt><dd><code>${repeatOf(record, id)}</code></dd>
</dl>
</details>
`;
}
