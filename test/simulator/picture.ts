import type { RunReport } from './simulate.ts';

const WIDTH = 960;
const ROW = 120;
const LEFT = 150;
const RIGHT = 20;
const TOP = 60;

interface Row {
  readonly label: string;
  readonly values: readonly number[];
  readonly colour: string;
}

/** Draws a run: calls, members, keys and failures by the hour. One SVG without scripts, readable in light and dark. */
export function picture(report: RunReport): string {
  const { options, hours, tokens, calls } = report;
  const rows: readonly Row[] = [
    { label: 'KMS calls per hour', values: hours.map((hour) => hour.kmsCalls), colour: '#2a78d6' },
    { label: 'store calls per hour', values: hours.map((hour) => hour.storeCalls), colour: '#1d9a8a' },
    { label: 'members up', values: hours.map((hour) => hour.up), colour: '#8a6bd1' },
    { label: 'keys in the ring', values: hours.map((hour) => hour.keys), colour: '#c77d1e' },
    { label: 'failed tokens so far', values: hours.map((hour) => hour.failed), colour: '#d2463c' },
  ];
  const height = TOP + rows.length * ROW + 40;
  const title = `${options.members} members, ${options.days} days, seed ${options.seed}, faults: ${options.faults.join(', ')}`;
  const summary =
    `${grouped(tokens.sealed)} tokens sealed, ${grouped(tokens.opened)} unsealed, ${grouped(tokens.failed)} failed; ` +
    `${calls.kmsPerMemberDay.toFixed(1)} KMS calls and ${calls.storePerMemberDay.toFixed(1)} store calls per member per day`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="20" y="24" font-size="15" font-weight="600" fill="#1a1a1a">${escape(title)}</text>`,
    `<text x="20" y="44" fill="#444">${escape(summary)}</text>`,
    ...rows.map((row, i) => drawRow(row, TOP + i * ROW, hours.length)),
    drawAxis(TOP + rows.length * ROW, options.days),
    '</svg>',
    '',
  ].join('\n');
}

/** In groups of three digits, as in `10 072`. */
const grouped = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ' ');

function drawRow(row: Row, top: number, hours: number): string {
  const most = Math.max(1, ...row.values);
  const width = WIDTH - LEFT - RIGHT;
  const base = top + ROW - 24;
  const scale = ROW - 44;
  const points = row.values.map((value, i) => {
    const x = LEFT + (width * (i + 0.5)) / Math.max(1, hours);
    return `${x.toFixed(1)},${(base - (scale * value) / most).toFixed(1)}`;
  });
  return [
    `<g>`,
    `<text x="20" y="${top + 32}" fill="#1a1a1a">${escape(row.label)}</text>`,
    `<text x="20" y="${top + 48}" fill="#666">at most ${Math.round(most)}</text>`,
    `<line x1="${LEFT}" y1="${base}" x2="${WIDTH - RIGHT}" y2="${base}" stroke="#bbb"/>`,
    `<polyline fill="none" stroke="${row.colour}" stroke-width="1.5" points="${points.join(' ')}"/>`,
    `</g>`,
  ].join('');
}

function drawAxis(top: number, days: number): string {
  const width = WIDTH - LEFT - RIGHT;
  const step = Math.max(1, Math.ceil(days / 15));
  const ticks: string[] = [];
  for (let day = 0; day <= days; day += step) {
    const x = LEFT + (width * day) / days;
    ticks.push(`<text x="${x.toFixed(1)}" y="${top + 14}" text-anchor="middle" fill="#666">day ${day}</text>`);
  }
  return ticks.join('');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
