import { type KeyPhases, keyPhases, type RingKey, type Span } from '@sealring/dashboard';

/** Legend of the characters of a bar. */
export const LEGEND = '. waits   # seals   - only unseals   | now';

/** The life of each key as a bar of `columns` characters, all on one scale. */
export function timelineOf(keys: readonly RingKey[], now: Date, columns: number): readonly string[] {
  const phases = keyPhases(keys, now);
  const nowMs = now.getTime();
  const from = Math.min(nowMs, ...phases.map(({ waits }) => waits.from));
  const to = Math.max(nowMs + 1, ...phases.map(({ unseals }) => unseals.until));
  const timeOf = (column: number): number => from + ((column + 0.5) * (to - from)) / columns;
  const nowColumn = Math.min(columns - 1, Math.floor(((nowMs - from) * columns) / (to - from)));
  return phases.map((life) =>
    Array.from({ length: columns }, (_, column) => (column === nowColumn ? '|' : charAt(life, timeOf(column)))).join(
      '',
    ),
  );
}

function charAt({ waits, seals, reserve, unseals }: KeyPhases, ms: number): string {
  const isIn = ({ from, until }: Span): boolean => from <= ms && ms < until;
  if (isIn(waits)) return '.';
  if (isIn(seals)) return '#';
  return isIn(reserve) || isIn(unseals) ? '-' : ' ';
}
