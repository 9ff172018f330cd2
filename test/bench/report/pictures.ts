import type { GrowthReport } from '../growth.ts';
import { slopeOf } from '../growth-slope.ts';
import type { Estimate } from '../statistics.ts';
import { judgeSteadiness, type SteadinessReport } from '../steadiness-report.ts';
import { type Cost, OPERATIONS, OURS } from '../token-path.ts';
import { LEADS, type TokenPathReport } from '../token-path-report.ts';
import { apart, at, colourOf, dashOf, drawing, line, ratioScale, text } from './chart.ts';
import type { KeptParts } from './kept.ts';
import { numberShown, ratioShown } from './words.ts';

const WIDTH = 960;
const TOP = 96;
const LEFT = 190;
const RIGHT = 70;
const MIDDLE = 'text-anchor="middle"';
const END = 'text-anchor="end"';

/** The pictures of the results, by file name. */
export function picturesOf(kept: KeptParts): ReadonlyMap<string, string> {
  const pictures = new Map<string, string>();
  const tokenPath = kept['token-path']?.report;
  if (tokenPath !== undefined) {
    pictures.set('benchmark-leads.svg', leads(tokenPath));
    pictures.set('benchmark-sizes.svg', sizes(tokenPath));
  }
  const steadiness = kept.steadiness?.report;
  if (steadiness !== undefined) pictures.set('benchmark-steadiness.svg', tails(steadiness));
  const growth = kept.growth?.report;
  if (growth !== undefined) pictures.set('benchmark-heap.svg', heap(growth));
  return pictures;
}

/** A ratio, its bounds, and the row and colour that it is drawn in. */
interface Bar {
  readonly estimate: Estimate;
  readonly y: number;
  readonly colour: string;
}

const legend = (names: readonly string[], x: number): string =>
  names
    .map(
      (name, i) =>
        `<g class="${colourOf(i)}"><rect class="fill" x="${x + i * 90}" y="63" width="12" height="12" rx="2"/>${text(x + i * 90 + 18, 74, name)}</g>`,
    )
    .join('\n');

/** Every contender compared with Sealring, at the size to which the limits apply. */
function leads({ costs, headlineBytes }: TokenPathReport): string {
  const shown = costs.filter(({ bytes, contender }) => bytes === headlineBytes && contender !== OURS);
  const names = [...new Set(shown.map(({ contender }) => contender))];
  const values = shown.flatMap(({ timesOursAtP50: { low, high } }) => [low, high]);
  const { ticks, place } = ratioScale([...values, ...Object.values(LEADS)], LEFT, WIDTH - RIGHT);
  const [row, thick] = [40, 12];
  const bottom = TOP + names.length * row;
  const bars = names.flatMap((name, i) =>
    OPERATIONS.flatMap((operation, j) => {
      const cost = shown.find((one) => one.contender === name && one.operation === operation);
      if (cost === undefined) return [];
      const bar = { estimate: cost.timesOursAtP50, y: TOP + i * row + 8 + j * (thick + 2), colour: colourOf(j) };
      return [barFromOne(bar, thick, place)];
    }),
  );
  const limits = names.flatMap((name, i) => {
    const lead = LEADS[name];
    if (lead === undefined) return [];
    const x = place(lead);
    return [
      line([x, TOP + i * row + 4], [x, TOP + (i + 1) * row - 4], 'limit', 'stroke-width="2" stroke-dasharray="4 3"'),
    ];
  });
  const said = shown.map((one) => `${one.contender} ${one.operation} ${ratioShown(one.timesOursAtP50.median)}`);
  return drawing(
    {
      title: `Cost of the alternatives as a multiple of Sealring’s, ${headlineBytes} bytes`,
      caption:
        'Median operation, logarithmic scale. Right of 1: costs more than Sealring. Thin lines: 95 % bounds. Dashed lines: lower limits.',
      description: `Median operation of each, as a multiple of Sealring’s: ${said.join(', ')}.`,
      width: WIDTH,
      height: bottom + 40,
    },
    [
      legend(OPERATIONS, LEFT),
      ...ticks.map((tick) => tickAcross(tick, place(tick), TOP, bottom)),
      ...names.map((name, i) => text(LEFT - 12, TOP + i * row + 25, name, 'text', END)),
      ...bars,
      ...limits,
    ],
  );
}

function tickAcross(tick: number, x: number, top: number, bottom: number): string {
  return line([x, top], [x, bottom], tick === 1 ? 'one' : 'grid') + text(x, bottom + 20, `${tick} ×`, 'quiet', MIDDLE);
}

function barFromOne({ estimate, y, colour }: Bar, thick: number, place: (ratio: number) => number): string {
  const [one, end, low, high] = [1, estimate.median, estimate.low, estimate.high].map(place) as [
    number,
    number,
    number,
    number,
  ];
  const middle = y + thick / 2;
  return [
    `<g class="${colour}">`,
    `<rect class="fill" x="${at(Math.min(one, end))}" y="${at(y)}" width="${at(Math.abs(end - one))}" height="${thick}" opacity="0.75"/>`,
    line([low, middle], [high, middle], 'line', 'stroke-width="2"'),
    text(Math.max(one, high) + 6, middle + 4, ratioShown(estimate.median), 'quiet', 'font-size="11"'),
    '</g>',
  ].join('');
}

/** The same over all sizes; Sealring is the line at 1. */
function sizes({ costs }: TokenPathReport): string {
  const others = costs.filter(({ contender }) => contender !== OURS);
  const names = [...new Set(others.map(({ contender }) => contender))];
  const all = [...new Set(costs.map(({ bytes }) => bytes))];
  const bottom = TOP + 420;
  const { ticks, place } = ratioScale(
    others.map(({ timesOurs }) => timesOurs.median),
    bottom,
    TOP,
  );
  const panel = WIDTH / 2;
  const panels = OPERATIONS.flatMap((operation, i) => {
    const [left, right] = [i * panel + 60, (i + 1) * panel - 170];
    const x = (bytes: number): number => left + ((right - left) * all.indexOf(bytes)) / Math.max(1, all.length - 1);
    const lines = names.map((name) =>
      others
        .filter((one) => one.contender === name && one.operation === operation)
        .map((one): Point => [x(one.bytes), place(one.timesOurs.median)]),
    );
    const ends = apart([...lines.map((points) => points.at(-1)?.[1] ?? bottom), place(1)], 15, bottom);
    return [
      text((left + right) / 2, TOP - 14, operation, 'text', `${MIDDLE} font-weight="600"`),
      ...ticks.map((tick) =>
        line(
          [left, place(tick)],
          [right, place(tick)],
          tick === 1 ? 'one' : 'grid',
          tick === 1 ? 'stroke-width="2"' : '',
        ),
      ),
      ...ticks.map((tick) => text(left - 8, place(tick) + 4, `${tick} ×`, 'quiet', END)),
      ...all.map((bytes) => text(x(bytes), bottom + 20, `${bytes} B`, 'quiet', `${MIDDLE} font-size="11"`)),
      ...lines.map((points, j) => `<g class="${colourOf(j)}">${curve(points, dashOf(j))}</g>`),
      ...[...names, OURS].map((name, j) =>
        text(
          right + 12,
          (ends[j] ?? bottom) + 4,
          name,
          name === OURS ? 'text' : `${colourOf(j)} fill`,
          `font-size="11"${name === OURS ? ' font-weight="600"' : ''}`,
        ),
      ),
    ];
  });
  return drawing(
    {
      title: 'Cost of the alternatives as a multiple of Sealring’s, by payload size',
      caption: 'Medians of batches, logarithmic scale. The line at 1 is Sealring.',
      description: `Multiples of Sealring’s cost at ${all.join(', ')} bytes. ${OPERATIONS.map((operation) => `${operation}: ${names.map((name) => `${name} ${timesOver(others, name, operation)}`).join('; ')}`).join('. ')}.`,
      width: WIDTH,
      height: bottom + 40,
    },
    panels,
  );
}

function timesOver(costs: readonly Cost[], name: string, operation: Cost['operation']): string {
  const mine = costs.filter((one) => one.contender === name && one.operation === operation);
  return mine.map(({ timesOurs }) => ratioShown(timesOurs.median)).join(', ');
}

type Point = readonly [x: number, y: number];

function curve(points: readonly Point[], dash: string): string {
  const places = points.map(([x, y]) => `${at(x)},${at(y)}`);
  const dots = points.map(([x, y]) => `<circle class="fill" cx="${at(x)}" cy="${at(y)}" r="3"/>`);
  return `<polyline class="line" stroke-width="2"${dash} points="${places.join(' ')}"/>${dots.join('')}`;
}

/** The tail of token operations in each condition compared with the quiet one, and of whole requests. */
function tails(report: SteadinessReport): string {
  const { conditions } = report;
  const most = judgeSteadiness(report).find(({ law }) => law.startsWith('p99.9 of token'))?.limit ?? 1;
  const series = [
    { name: 'token', of: conditions.map(({ tokenRatio }) => tokenRatio) },
    { name: 'request', of: conditions.map(({ requestRatio }) => requestRatio) },
  ];
  const values = series.flatMap(({ of }) => of.flatMap((one) => (one === undefined ? [] : [one.low, one.high])));
  const { ticks, place } = ratioScale([...values, most], LEFT, WIDTH - RIGHT);
  const row = 44;
  const bottom = TOP + conditions.length * row;
  const limit = place(most);
  const said = conditions.map(
    ({ condition, tokenRatio }) =>
      `${condition} ${tokenRatio === undefined ? 'not measured' : ratioShown(tokenRatio.median)}`,
  );
  return drawing(
    {
      title: 'Tail latency during disturbances, as a multiple of the quiet condition',
      caption: `p99.9 in each condition, divided by that of the neighbouring quiet phases, with 95 % bounds; logarithmic scale. Dashed: ${most} ×, the limit for tokens.`,
      description: `p99.9 of token operations, as a multiple of the quiet condition: ${said.join(', ')}. The limit is ${most}.`,
      width: WIDTH,
      height: bottom + 40,
    },
    [
      legend(
        series.map(({ name }) => name),
        LEFT,
      ),
      ...ticks.map((tick) => tickAcross(tick, place(tick), TOP, bottom)),
      line([limit, TOP - 6], [limit, bottom], 'limit', 'stroke-width="2" stroke-dasharray="4 3"'),
      text(limit, TOP - 10, `${most} ×`, 'limit-text', MIDDLE),
      ...conditions.map(({ condition }, i) => text(LEFT - 12, TOP + i * row + 26, condition, 'text', END)),
      ...series.flatMap(({ of }, j) =>
        of.map((estimate, i) => dot(estimate, TOP + i * row + 14 + j * 16, colourOf(j), place)),
      ),
    ],
  );
}

function dot(estimate: Estimate | undefined, y: number, colour: string, place: (ratio: number) => number): string {
  if (estimate === undefined) return text(place(1) + 8, y + 4, 'not measured', 'quiet', 'font-size="11"');
  const [low, median, high] = [estimate.low, estimate.median, estimate.high].map(place) as [number, number, number];
  return [
    `<g class="${colour}">`,
    line([low, y], [high, y], 'line', 'stroke-width="2" opacity="0.6"'),
    `<circle class="fill" cx="${at(median)}" cy="${at(y)}" r="5"/>`,
    text(WIDTH - 20, y + 4, ratioShown(estimate.median), 'quiet', `${END} font-size="11"`),
    '</g>',
  ].join('');
}

/** The least extent of the heap's scale to either side of the median. */
const LEAST_REACH = 0.001;

/** Every sample of the heap, and the slope through them. */
function heap({ heap: { tokens, perMillionTokens, samples } }: GrowthReport): string {
  const sorted = samples.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const shares = samples.map((bytes) => bytes / median - 1);
  const reach = Math.ceil(1_000 * 1.1 * Math.max(LEAST_REACH, ...shares.map(Math.abs))) / 1_000;
  const [left, right, bottom] = [80, WIDTH - 30, TOP + 260];
  const x = (look: number): number => left + ((right - left) * (look + 1)) / samples.length;
  const y = (share: number): number => (TOP + bottom) / 2 - ((bottom - TOP) / 2) * (share / reach);
  const millions = (share: number): string => numberShown((share * tokens) / 1e6);
  const half = (samples.length - 1) / 2;
  const slope = slopeOf(shares).median * half;
  const { median: grows, low, high } = perMillionTokens;
  const kilobytes = (bytes: number): string => numberShown(bytes / 1_000);
  const caption = `Each dot: the heap after one garbage collection. Line: slope, ${kilobytes(grows)} kB per million tokens; 95 % bounds: ${kilobytes(low)} to ${kilobytes(high)}.`;
  return drawing(
    {
      title: `The heap over ${millions(1)} million tokens, relative to its median`,
      caption,
      description: `${samples.length} measurements of the heap, from ${percent(Math.min(...shares))} to ${percent(Math.max(...shares))} relative to the median. ${caption}`,
      width: WIDTH,
      height: bottom + 44,
    },
    [
      ...[-1, -0.5, 0, 0.5, 1].flatMap((part) => [
        line([left, y(part * reach)], [right, y(part * reach)], part === 0 ? 'one' : 'grid'),
        text(left - 8, y(part * reach) + 4, percent(part * reach), 'quiet', END),
      ]),
      ...[0, 0.25, 0.5, 0.75, 1].map((share) =>
        text(left + (right - left) * share, bottom + 24, `${millions(share)} M`, 'quiet', MIDDLE),
      ),
      `<g class="c0">${shares.map((share, look) => `<circle class="fill" cx="${at(x(look))}" cy="${at(y(share))}" r="3.5" opacity="0.75"/>`).join('')}</g>`,
      `<g class="c1">${line([x(0), y(-slope)], [x(samples.length - 1), y(slope)], 'line', 'stroke-width="2"')}</g>`,
    ],
  );
}

function percent(share: number): string {
  const shown = Number((100 * share).toFixed(2));
  return `${shown > 0 ? '+' : ''}${shown} %`.replace('-', '−');
}
