import { type Html, html } from './html.ts';
import type { Span } from './key-phases.ts';
import type { ViewKey } from './view.ts';
import { instant } from './words.ts';

/** Sizes of a picture, in its own units. */
interface Layout {
  readonly name: string;
  readonly width: number;
  /** The x position where the bars begin. */
  readonly left: number;
  /** Space after the bars. */
  readonly right: number;
  readonly row: number;
  /** Offsets of a row's text and bar from the top of the row. */
  readonly text: number;
  readonly bar: number;
  /** The x position where the text of a key's state ends. */
  readonly stateEnd: number;
  readonly mostLines: number;
}

/** The layout for a wide screen: names are beside the bars. */
const WIDE: Layout = {
  name: 'wide',
  width: 960,
  left: 190,
  right: 12,
  row: 34,
  text: 21,
  bar: 9,
  stateEnd: 178,
  mostLines: 10,
};
/**
 * The layout for a phone: names are above the bars, and the picture is narrow, so that the phone hardly has to shrink
 * it.
 */
const NARROW: Layout = {
  name: 'narrow',
  width: 360,
  left: 0,
  right: 0,
  row: 46,
  text: 17,
  bar: 22,
  stateEnd: 360,
  mostLines: 4,
};
const BAR = 16;
const AXIS = 26;
/** Half the width of an axis label. */
const TICK = 34;
const HOUR_MS = 3_600_000;
/** Possible intervals between axis lines, in hours. */
const STEPS = [1, 2, 3, 6, 12, 24, 48, 96, 168];

/** The phases of every key on one time axis, with a line for the current time. The style sheet shows one of two layouts. */
export function timelinePicture(keys: readonly ViewKey[], now: Date): Html {
  if (keys.length === 0) return html`<p class="quiet">The ring has no key.</p>`;
  return html`${picture(keys, now, WIDE)}
${picture(keys, now, NARROW)}`;
}

function picture(keys: readonly ViewKey[], now: Date, layout: Layout): Html {
  const { name, width, left, right, mostLines } = layout;
  const from = Math.min(now.getTime(), ...keys.map(({ phases }) => phases.waits.from));
  const to = Math.max(now.getTime() + 1, ...keys.map(({ phases }) => phases.unseals.until));
  const x = (ms: number): number => round(left + ((ms - from) / (to - from)) * (width - left - right));
  const height = AXIS + keys.length * layout.row + 8;
  return html`<svg class="timeline ${name}" viewBox="0 0 ${width} ${height}" role="img" aria-label="Keys of the ring over time">
${axisTimes(from, to, mostLines).map(
  (ms) => html`<line class="grid" x1="${x(ms)}" x2="${x(ms)}" y1="${AXIS - 6}" y2="${height}"/>
<text class="tick" x="${Math.min(Math.max(x(ms), TICK), width - TICK)}" y="14">${instant(new Date(ms)).slice(5, 16)}</text>`,
)}
${keys.map((key, index) => row(key, AXIS + index * layout.row, x, layout))}
<line class="now" x1="${x(now.getTime())}" x2="${x(now.getTime())}" y1="${AXIS - 8}" y2="${height}"/>
<circle class="now-dot" cx="${x(now.getTime())}" cy="${AXIS - 8}" r="3.5"/>
</svg>`;
}

function row(key: ViewKey, y: number, x: (ms: number) => number, layout: Layout): Html {
  const bar = y + layout.bar;
  const part = (name: string, { from, until }: Span): Html =>
    until <= from
      ? html``
      : html`<rect class="part ${name}" x="${x(from)}" y="${bar}" width="${Math.max(2, round(x(until) - x(from)))}" height="${BAR}"/>`;
  const { waits, seals, reserve, unseals } = key.phases;
  return html`<g class="key ${key.state}" data-key="${key.hash}"><title>${key.hash}: ${key.state}; ${lifeText(key)} UTC</title>
<text class="hash" x="0" y="${y + layout.text}">${key.hash}</text>
<text class="state" x="${layout.stateEnd}" y="${y + layout.text}">${key.seals ? 'seals now' : key.state}</text>
${part('waits', waits)}${part('seals', seals)}${part('reserve', reserve)}${part('opens', unseals)}</g>`;
}

/** When a key seals and unseals, or when it was revoked. */
function lifeText({ state, phases: { seals, reserve, unseals } }: ViewKey): string {
  if (state === 'revoked') return `revoked ${instantOf(unseals.until)}`;
  const sealEnd = Math.max(seals.until, reserve.until);
  return `seals ${instantOf(seals.from)} to ${instantOf(sealEnd)}, unseals until ${instantOf(unseals.until)}`;
}

function instantOf(ms: number): string {
  return instant(new Date(ms));
}

/** The times on the axis: whole steps in UTC, few enough that their labels do not overlap. */
function axisTimes(from: number, to: number, mostLines: number): readonly number[] {
  const step = (STEPS.find((hours) => (to - from) / (hours * HOUR_MS) <= mostLines) ?? 336) * HOUR_MS;
  const first = Math.ceil(from / step) * step;
  // The limit is reached only in a ring with implausible times.
  const count = Math.min(mostLines + 1, Math.floor((to - first) / step) + 1);
  return Array.from({ length: count }, (_, index) => first + index * step);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
