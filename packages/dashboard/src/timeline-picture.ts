import { type Html, html } from './html.ts';
import type { Span } from './key-phases.ts';
import type { ViewKey } from './view.ts';
import { instant } from './words.ts';

const WIDTH = 960;
const LABELS = 190;
const ROW = 34;
const BAR = 16;
const AXIS = 26;
const HOUR_MS = 3_600_000;
/** Distances between the lines of the axis. Hours. */
const STEPS = [1, 2, 3, 6, 12, 24, 48, 96, 168];
const MOST_LINES = 10;

const STATE_WORDS: Readonly<Record<ViewKey['state'], string>> = {
  propagating: 'propagating',
  active: 'active',
  'verify-only': 'verify-only',
  expired: 'expired',
  revoked: 'revoked',
};

/** The phases of every key on one time axis, with a line for the current time. */
export function timelinePicture(keys: readonly ViewKey[], now: Date): Html {
  if (keys.length === 0) return html`<p class="quiet">The ring has no key.</p>`;
  const from = Math.min(now.getTime(), ...keys.map(({ phases }) => phases.waits.from));
  const to = Math.max(now.getTime() + 1, ...keys.map(({ phases }) => phases.unseals.until));
  const x = (ms: number): number => round(LABELS + ((ms - from) / (to - from)) * (WIDTH - LABELS - 12));
  const height = AXIS + keys.length * ROW + 8;
  return html`<svg class="timeline" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Keys of the ring over time">
${axisTimes(from, to).map(
  (ms) => html`<line class="grid" x1="${x(ms)}" x2="${x(ms)}" y1="${AXIS - 6}" y2="${height}"/>
<text class="tick" x="${x(ms)}" y="14">${instant(new Date(ms)).slice(5, 16)}</text>`,
)}
${keys.map((key, index) => row(key, AXIS + index * ROW, x))}
<line class="now" x1="${x(now.getTime())}" x2="${x(now.getTime())}" y1="${AXIS - 8}" y2="${height}"/>
<circle class="now-dot" cx="${x(now.getTime())}" cy="${AXIS - 8}" r="3.5"/>
</svg>`;
}

function row(key: ViewKey, y: number, x: (ms: number) => number): Html {
  const bar = y + (ROW - BAR) / 2;
  const part = (name: string, { from, until }: Span): Html =>
    until <= from
      ? html``
      : html`<rect class="part ${name}" x="${x(from)}" y="${bar}" width="${Math.max(2, round(x(until) - x(from)))}" height="${BAR}"/>`;
  const { waits, seals, reserve, unseals } = key.phases;
  return html`<g class="key ${key.state}" data-key="${key.hash}"><title>${key.hash}: ${STATE_WORDS[key.state]}; ${lifeText(key)} UTC</title>
<text class="hash" x="0" y="${y + ROW / 2 + 4}">${key.hash}</text>
<text class="state" x="${LABELS - 12}" y="${y + ROW / 2 + 4}">${key.seals ? 'seals now' : STATE_WORDS[key.state]}</text>
${part('waits', waits)}${part('seals', seals)}${part('reserve', reserve)}${part('opens', unseals)}</g>`;
}

/** When it seals and unseals, or when it was revoked. */
function lifeText({ state, phases: { seals, reserve, unseals } }: ViewKey): string {
  if (state === 'revoked') return `revoked ${instantOf(unseals.until)}`;
  const sealEnd = Math.max(seals.until, reserve.until);
  return `seals ${instantOf(seals.from)} to ${instantOf(sealEnd)}, unseals until ${instantOf(unseals.until)}`;
}

function instantOf(ms: number): string {
  return instant(new Date(ms));
}

/** Times of the axis: whole steps in UTC, few enough that their labels do not overlap. */
function axisTimes(from: number, to: number): readonly number[] {
  const step = (STEPS.find((hours) => (to - from) / (hours * HOUR_MS) <= MOST_LINES) ?? 336) * HOUR_MS;
  const first = Math.ceil(from / step) * step;
  // The limit is reached only in a ring with absurd times.
  const count = Math.min(MOST_LINES + 1, Math.floor((to - first) / step) + 1);
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index * step);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
