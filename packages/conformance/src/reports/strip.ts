import { html } from './markup.ts';
import type { Row, RowStatus } from './record.ts';
import { countsOf, STATUS_WORDS } from './words.ts';

const COLUMNS = 13;
const CELL = 24;
const GAP = 4;

/** A sign beside the colour, for readers who cannot distinguish colours; the colours are seen on light and on dark. */
const LOOKS: Readonly<Record<RowStatus, readonly [sign: string, colour: string]>> = {
  pass: ['✓', '#1a7f37'],
  fail: ['✕', '#cf222e'],
  warn: ['!', '#9a6700'],
  'not-applicable': ['–', '#6e7781'],
  'not-tried': ['?', '#6e7781'],
};

/** A picture of a run: one cell for each requirement, in the order in which they were tried. */
export function strip(rows: readonly Row[]): unknown {
  const lines = Math.ceil(rows.length / COLUMNS);
  return html`<svg class="strip" role="img" aria-label="${rows.length} requirements: ${countsOf(rows)}"
 viewBox="0 0 ${size(COLUMNS)} ${size(lines)}">
${rows.map((row, i) => cell(row, (i % COLUMNS) * (CELL + GAP), Math.floor(i / COLUMNS) * (CELL + GAP)))}
</svg>`;
}

/** The width, or the height, of some cells in a row. */
function size(cells: number): number {
  return cells * (CELL + GAP) - GAP;
}

function cell({ id, status }: Row, x: number, y: number): unknown {
  const [sign, colour] = LOOKS[status];
  return html`<g class="${status}"><title>${id}: ${STATUS_WORDS[status]}</title>
<rect x="${x}" y="${y}" width="${CELL}" height="${CELL}" rx="4" fill="${colour}"/>
<text x="${x + CELL / 2}" y="${y + CELL / 2}" dy=".35em" text-anchor="middle" fill="#fff">${sign}</text></g>`;
}
