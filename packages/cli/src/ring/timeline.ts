import type { KeyHealth } from '@sealring/core';

const COLUMNS = 48;

/** What stands for each part of a key's life. */
export const LEGEND = '. waits until every server has it   # may seal   - opens only   | now';

/** One key's life as a bar, all keys on one scale. */
export function timelineOf(keys: readonly KeyHealth[], now: Date): readonly string[] {
  const from = Math.min(now.getTime(), ...keys.map(({ created }) => created.getTime()));
  const to = Math.max(now.getTime() + 1, ...keys.map(({ opensUntil }) => opensUntil.getTime()));
  const timeOf = (column: number): number => from + ((column + 0.5) * (to - from)) / COLUMNS;
  const nowColumn = Math.min(COLUMNS - 1, Math.floor(((now.getTime() - from) * COLUMNS) / (to - from)));
  return keys.map((key) =>
    Array.from({ length: COLUMNS }, (_, column) => (column === nowColumn ? '|' : partOf(key, timeOf(column)))).join(''),
  );
}

function partOf({ created, activates, sealsUntil, opensUntil }: KeyHealth, ms: number): string {
  if (ms < Math.min(created.getTime(), activates.getTime()) || ms >= opensUntil.getTime()) return ' ';
  if (ms < activates.getTime()) return '.';
  return ms < sealsUntil.getTime() ? '#' : '-';
}
