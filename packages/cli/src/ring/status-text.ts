import { longTime } from '../terminal/long-time.ts';
import { pageWidth, wrapped } from '../terminal/page.ts';
import type { Paint } from '../terminal/paint.ts';
import { tableOf } from '../terminal/table.ts';
import { visibleLine } from '../terminal/visible.ts';
import type { RingStatus } from './status.ts';
import { LEGEND, timelineOf } from './timeline.ts';

/** The widest bar that is still easy to read, and the narrowest one. */
const MAX_BAR = 48;
const MIN_BAR = 10;

/** A status as text, at most as wide as the terminal. */
export function statusText(status: RingStatus, paint: Paint): string {
  const { ring, store, at, sealingKey, nextRotation, keys, problems } = status;
  const facts = [
    ['key', 'state', 'seals from', 'unseals until'],
    ...keys.map(({ name, state, activates, created, unsealsUntil, revokedAt }) => [
      name,
      state,
      shortTime(new Date(Math.max(+activates, +created)), at),
      endOf(state === 'revoked' ? revokedAt : unsealsUntil, at),
    ]),
  ];
  const left = tableOf(facts);
  const leftWidth = Math.max(...left.map((line) => line.length)) + 2;
  const bars = timelineOf(keys, at, Math.max(MIN_BAR, Math.min(MAX_BAR, pageWidth() - leftWidth)));
  const lines = left.slice(1).map((line, index) => `${line.padEnd(leftWidth)}${bars[index] ?? ''}`.trimEnd());
  return [
    `ring "${visibleLine(ring)}" (${store}) at ${longTime(at)}`,
    '',
    paint('bold', left[0] ?? ''),
    ...lines.map((line, index) => (keys[index]?.state === 'active' ? paint('green', line) : line)),
    '',
    `${LEGEND}   (times in UTC)`,
    sealingKey === undefined ? 'no key seals now' : `seals now: ${sealingKey}`,
    ...(nextRotation === undefined ? [] : [`next rotation due: ${longTime(nextRotation)}`]),
    ...problems.flatMap(({ detail, remedy }) => [
      wrapped(paint('yellow', 'problem: '), detail),
      wrapped('  → ', remedy),
    ]),
    '',
  ].join('\n');
}

/** When a key ends, or `?` if that is unknown. A revoked key ends when it is revoked. */
function endOf(date: Date | undefined, near: Date): string {
  return date === undefined ? '?' : shortTime(date, near);
}

/** `11-21 22:20`, or `2027-01-05` if the year is not that of `near`. */
function shortTime(date: Date, near: Date): string {
  const text = date.toISOString();
  return date.getUTCFullYear() === near.getUTCFullYear() ? text.slice(5, 16).replace('T', ' ') : text.slice(0, 10);
}
