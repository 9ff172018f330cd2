/** How long to wait between attempts. */
export interface Backoff {
  /** The longest wait after the first failure, in milliseconds; each further failure doubles it. */
  readonly firstMs: number;
  /** The longest wait after any failure, in milliseconds. */
  readonly capMs: number;
  /** The shortest wait, as a share of the longest. Default 0, full jitter; 0.5 is equal jitter. */
  readonly leastShare?: number;
  /** Lower bound of every wait, in milliseconds. Default 0. */
  readonly leastMs?: number;
}

/**
 * Milliseconds to wait after this number of failures, at least 1, for `uniform` in [0, 1). By default, jitter is full,
 * so that servers that were throttled at the same time do not retry at the same time (AWS Architecture Blog,
 * "Exponential Backoff And Jitter").
 */
export function backoffMs(
  { firstMs, capMs, leastShare = 0, leastMs = 0 }: Backoff,
  failures: number,
  uniform: number,
): number {
  const longest = Math.min(capMs, firstMs * 2 ** Math.max(0, failures - 1));
  const least = Math.max(leastMs, longest * leastShare);
  return least + Math.max(0, longest - least) * uniform;
}

/** When and how an attempt is repeated. */
export interface RetryRules {
  /** Milliseconds to wait after this many failures, the last with `error`; undefined if no attempt may follow. */
  readonly waitMs: (error: unknown, failures: number) => number | undefined;
  /** Waits for this time. If the wait rejects, its error ends the retries. */
  readonly pause: (delayMs: number) => Promise<void>;
}

/** Makes attempts until one succeeds. @throws the error of the last attempt. */
export async function retry<T>(attempt: () => Promise<T>, { waitMs, pause }: RetryRules): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      const wait = waitMs(error, failures);
      if (wait === undefined) throw error;
      await pause(wait);
    }
  }
}
