/** A median over turns, with bounds of at least 95 % confidence, from the order of the values alone. */
export interface Estimate {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** The value below which this share of the sorted values lies. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

export function medianOf(values: readonly number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

/** @throws {RangeError} for fewer than six values: no two of them bound a median with 95 % confidence. */
export function estimate(values: readonly number[]): Estimate {
  if (values.length < 6) throw new RangeError(`a median needs at least six values, got ${values.length}`);
  const sorted = values.toSorted((a, b) => a - b);
  const out = outsideBounds(sorted.length);
  return {
    median: (quantile(sorted, 0.5) + quantile(sorted, 0.5 - 1 / (2 * sorted.length))) / 2,
    low: sorted[out] ?? Number.NaN,
    high: sorted[sorted.length - 1 - out] ?? Number.NaN,
  };
}

/** How many values on either side may be left out: the median is then outside the rest with a chance of 5 % at most. */
function outsideBounds(count: number): number {
  let chance = 2 ** -count;
  let tail = chance;
  let out = 0;
  while (2 * (tail + (chance * (count - out)) / (out + 1)) <= 0.05) {
    chance *= (count - out) / (out + 1);
    tail += chance;
    out += 1;
  }
  return out;
}
