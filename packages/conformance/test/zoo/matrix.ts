import type { ConformanceResult } from '../../src/index.ts';
import type { House, Row } from './zoo.ts';

type Status = ConformanceResult['status'];

const SIGNS: Readonly<Record<Status, string>> = { pass: '·', fail: 'F', warn: 'w', 'not-applicable': ' ' };
const COLOURS: Readonly<Record<Status, string>> = {
  pass: '#d7ead9',
  fail: '#c0392b',
  warn: '#e5a83b',
  'not-applicable': '#eeeeee',
};
const WORDS: Readonly<Record<Status, string>> = {
  pass: 'passes',
  fail: 'fails a MUST',
  warn: 'fails a SHOULD',
  'not-applicable': 'not applicable',
};

/** The matrix as text: a column for each requirement, with a legend below. `[F]` is the expected failure. */
export function matrixText({ kind, requirements }: House, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ animal }) => animal.name.length));
  const columns = requirements
    .map((_, i) =>
      String(i + 1)
        .padStart(2)
        .padEnd(3),
    )
    .join('');
  const lines = rows.map(({ animal, statuses }) => {
    const cells = requirements.map(({ id }) => {
      const sign = SIGNS[statuses.get(id) ?? 'not-applicable'];
      return id === animal.caughtBy ? `[${sign}]` : ` ${sign} `;
    });
    return `${animal.name.padEnd(width)} ${cells.join('').trimEnd()}`;
  });
  const legend = requirements.map(({ id, level }, i) => `${String(i + 1).padStart(4)} ${id} (${level})`);
  return [kind, `${' '.repeat(width)} ${columns}`, ...lines, '', ...legend].join('\n');
}

const CELL = 14;
const LABELS = 300;
const HEAD = 190;

/** The matrix as a picture: sound targets above, broken ones below, the expected failures framed. */
export function matrixPicture({ kind, requirements }: House, rows: readonly Row[]): string {
  const [width, height] = [LABELS + requirements.length * CELL + 120, HEAD + (rows.length + 1) * CELL + 40];
  const sound = rows.filter(({ animal }) => animal.caughtBy === undefined).length;
  const top = (row: number): number => HEAD + (row + (row < sound ? 0 : 1)) * CELL;
  const heads = requirements.map(({ id, level }, i) => {
    const x = LABELS + i * CELL + CELL - 3;
    return `<text transform="translate(${x} ${HEAD - 6}) rotate(-60)" opacity="${level === 'MUST' ? 1 : 0.6}">${id}</text>`;
  });
  const names = rows.map(
    ({ animal }, row) =>
      `<text x="${LABELS - 8}" y="${top(row) + CELL - 3}" text-anchor="end">${escaped(animal.name)}</text>`,
  );
  const quiet: Record<string, string> = { pass: '', 'not-applicable': '' };
  const cells = rows.flatMap(({ animal, statuses }, row) =>
    requirements.flatMap(({ id }, column) => {
      const status = statuses.get(id) ?? 'not-applicable';
      const [x, y, size] = [LABELS + column * CELL + 1, top(row) + 1, CELL - 2];
      const isCatcher = id === animal.caughtBy;
      if (status in quiet && !isCatcher) {
        quiet[status] += `M${x} ${y}h${size}v${size}h-${size}z`;
        return [];
      }
      const ring = isCatcher ? ' stroke="#222222" stroke-width="2"' : '';
      const title = `${escaped(animal.name)}: ${id}: ${WORDS[status]}`;
      return `<rect x="${x}" y="${y}" width="${size}" height="${size}" fill="${COLOURS[status]}"${ring}><title>${title}</title></rect>`;
    }),
  );
  const background = (['pass', 'not-applicable'] as const).map(
    (status) => `<path fill="${COLOURS[status]}" d="${quiet[status]}"/>`,
  );
  const keys = (Object.keys(COLOURS) as Status[]).map((status, i) => {
    const [x, y] = [LABELS + i * 130, height - 24];
    return `<rect x="${x}" y="${y}" width="12" height="12" fill="${COLOURS[status]}"/><text x="${x + 17}" y="${y + 11}">${WORDS[status]}</text>`;
  });
  const title = `${sound} sound and ${rows.length - sound} broken ${kind}s, ${requirements.length} requirements`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="10" role="img">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="12" y="24" font-size="14" font-weight="bold">${title}</text>`,
    '<text x="12" y="42">Framed: the requirement that must catch it.</text>',
    ...heads,
    ...names,
    ...background,
    ...cells,
    ...keys,
    '</svg>',
    '',
  ].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
