/** Growth per step, with bounds of 95 % confidence. */
export interface Slope {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** The normal quantile of 97.5 %. */
const Z = 1.959964;

/**
 * Theil and Sen's regression: the median of the slopes between any two values, which are one step apart; its bounds
 * follow from the order of those slopes alone (Sen 1968, by Kendall's variance). One outlier changes it little.
 *
 * @throws {RangeError} for fewer than ten values: the bounds hold for many.
 */
export function slopeOf(values: readonly number[]): Slope {
  const count = values.length;
  if (count < 10) throw new RangeError(`a slope needs at least ten values, got ${count}`);
  const slopes: number[] = [];
  for (const [from, start] of values.entries()) {
    for (const [further, end] of values.slice(from + 1).entries()) slopes.push((end - start) / (further + 1));
  }
  slopes.sort((a, b) => a - b);
  const half = (Z * Math.sqrt((count * (count - 1) * (2 * count + 5)) / 18)) / 2;
  const middle = slopes.length / 2;
  const at = (place: number): number => slopes[Math.max(0, Math.min(slopes.length - 1, place))] ?? Number.NaN;
  return {
    median: (at(Math.ceil(middle) - 1) + at(Math.floor(middle))) / 2,
    low: at(Math.floor(middle - half)),
    high: at(Math.ceil(middle + half) - 1),
  };
}
