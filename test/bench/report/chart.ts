/** Common parts of the pictures: a frame, and a scale of ratios. SVG without scripts, in light and dark. */

const STYLE = `
  .ground { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .grid { stroke: #d1d9e0 } .one { stroke: #59636e } .limit { stroke: #cf222e } .limit-text { fill: #cf222e }
  .c0 { color: #0969da } .c1 { color: #bc4c00 } .c2 { color: #1a7f37 } .c3 { color: #8250df } .c4 { color: #bf3989 } .c5 { color: #1b7c83 } .c6 { color: #59636e }
  .fill { fill: currentColor } .line { stroke: currentColor; fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 }
    .grid { stroke: #3d444d } .one { stroke: #9198a1 } .limit { stroke: #ff7b72 } .limit-text { fill: #ff7b72 }
    .c0 { color: #4493f8 } .c1 { color: #f0883e } .c2 { color: #3fb950 } .c3 { color: #ab7df8 } .c4 { color: #db61a2 } .c5 { color: #39c5cf } .c6 { color: #9198a1 }
  }`;
/** One for each of the classes `c0` to `c6`. */
const COLOURS = 7;

export interface Frame {
  readonly title: string;
  /** Description for screen readers. */
  readonly description: string;
  /** A short line under the title. */
  readonly caption: string;
  readonly width: number;
  readonly height: number;
}

export function drawing({ title, description, caption, width, height }: Frame, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc" font-family="system-ui, sans-serif" font-size="13">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(description)}</desc>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${width}" height="${height}" rx="6"/>`,
    text(20, 28, title, 'text', 'font-size="16" font-weight="600"'),
    text(20, 48, caption, 'quiet'),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** One per line in the picture, the later ones dashed. */
export const dashOf = (index: number): string => (index < COLOURS ? '' : ' stroke-dasharray="6 3"');
export const colourOf = (index: number): string => `c${index % COLOURS}`;

export function text(x: number, y: number, words: string, kind = 'text', more = ''): string {
  return `<text class="${kind}" x="${at(x)}" y="${at(y)}"${more === '' ? '' : ` ${more}`}>${escaped(words)}</text>`;
}

export function line(from: readonly [number, number], to: readonly [number, number], kind: string, more = ''): string {
  const [x1, y1, x2, y2] = [...from, ...to].map(at);
  return `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"${more === '' ? '' : ` ${more}`}/>`;
}

/** A tenth of a unit is finer than anyone can see. */
export const at = (value: number): string => String(Number(value.toFixed(1)));

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A scale of ratios: as far from 1/2 to 1 as from 1 to 2. */
export interface RatioScale {
  readonly ticks: readonly number[];
  readonly place: (ratio: number) => number;
}

/** Steps of a decade: for ratios far apart, and for close ones. */
const STEPS = [1, 2, 5];
const FINE_STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
const COARSE_STEPS = [1];

/** A scale from a round number below all values to a round number above them; it always includes 1. */
export function ratioScale(values: readonly number[], start: number, end: number): RatioScale {
  const [least, most] = [Math.min(1, ...values), Math.max(1, ...values)];
  const span = most / least;
  const steps = span < 8 ? FINE_STEPS : span < 5_000 ? STEPS : COARSE_STEPS;
  const decades = Array.from({ length: 13 }, (_, i) => i - 6);
  const round = decades.flatMap((power) => steps.map((step) => Number((step * 10 ** power).toPrecision(2))));
  const low = round.findLast((tick) => tick <= least) ?? least;
  const high = round.find((tick) => tick >= most && tick > low) ?? most;
  return {
    ticks: round.filter((tick) => tick >= low && tick <= high),
    place: (ratio) => start + ((end - start) * Math.log(ratio / low)) / Math.log(high / low),
  };
}

/**
 * The same positions, moved apart until neighbours are at least `least` apart. The positions are in the given order.
 */
export function apart(places: readonly number[], least: number, most: number): readonly number[] {
  const order = places.map((place, index) => ({ place, index })).toSorted((a, b) => a.place - b.place);
  for (const [i, one] of order.entries()) {
    one.place = Math.max(one.place, (order[i - 1]?.place ?? Number.NEGATIVE_INFINITY) + least);
  }
  // Positions below the lower end move up again.
  for (const [i, one] of order.toReversed().entries()) {
    const next = order[order.length - i];
    one.place = Math.min(one.place, next === undefined ? most : next.place - least);
  }
  const pushed = [...places];
  for (const { place, index } of order) pushed[index] = place;
  return pushed;
}
