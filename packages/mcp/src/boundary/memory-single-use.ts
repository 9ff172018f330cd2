import type { Clock, SingleUseStore } from '@sealring/core';
import { option, singleUseStorage } from '@sealring/core/adapter';
import { readClock } from '../shared/clock-option.ts';
import { SingleUseStoreFullError } from '../shared/errors.ts';
import { knownOptions } from '../shared/option-checks.ts';

const OWNER = 'memorySingleUse';
const DEFAULT_MAX_TOKENS = 100_000;
const LARGEST_MAX_TOKENS = 10_000_000;
/** Minimum time between two sweeps of a full store for expired tokens. Seconds. */
const SWEEP_EVERY_SECONDS = 1;

/** Options of {@link memorySingleUse}. */
export interface MemorySingleUseOptions {
  /** Maximum number of redeemed tokens to remember, 1 to 10 000 000. Default: 100 000, about 15 MB. */
  readonly maxTokens?: number;
  /**
   * How long a token is remembered after it expires. Set it to the `clockSkewSeconds` of the ring's policy. Seconds, 0
   * to 86 400. Default: 300.
   */
  readonly clockSkewSeconds?: number;
  /** Source of time. Default: the system clock. */
  readonly clock?: Clock;
}

/**
 * Remembers redeemed tokens in the memory of this process. Use it only for a server that runs as one process: other
 * processes, and this one after a restart, do not know which tokens have been redeemed.
 *
 * The store evicts nothing: a full store rejects with {@link SingleUseStoreFullError}, and the boundary refuses the token.
 *
 * @throws {TypeError} for an unknown option, or an option of the wrong type.
 * @throws {RangeError} for an option out of range.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ keys: [key], singleUse: memorySingleUse() });
 * ```
 */
export function memorySingleUse(options: MemorySingleUseOptions = {}): SingleUseStore {
  const known = ['maxTokens', 'clockSkewSeconds', 'clock'];
  const { maxTokens = DEFAULT_MAX_TOKENS, clockSkewSeconds, clock } = knownOptions(OWNER, options, known);
  const max = option.numberWithin(OWNER, 'maxTokens', maxTokens, 1, LARGEST_MAX_TOKENS);
  const clockSkewMs = singleUseStorage.clockSkewMsOf(OWNER, clockSkewSeconds);
  const nowSeconds = readClock(OWNER, clock);
  /** The time after which each id may be forgotten. Unix milliseconds. */
  const used = new Map<string, number>();
  let sweepAtSize = Math.min(1_024, max);
  let sweptAtSeconds = Number.NEGATIVE_INFINITY;

  const sweep = (now: number): void => {
    for (const [id, keptUntilMs] of used) if (keptUntilMs <= now * 1000) used.delete(id);
    sweptAtSeconds = now;
    // The next sweep starts at twice the remaining size, so that the average cost of a claim stays constant.
    sweepAtSize = Math.min(2 * Math.max(used.size, 512), max);
  };

  return Object.freeze<SingleUseStore>({
    clockSkewSeconds: clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      singleUseStorage.checkClaim(OWNER, id, expiresAt);
      const now = nowSeconds();
      const lifeMs = singleUseStorage.claimLifeMs(expiresAt, clockSkewMs, now * 1000);
      if (lifeMs <= 0 || used.has(id)) return false;
      const full = used.size >= max;
      if (used.size >= sweepAtSize && (!full || Math.abs(now - sweptAtSeconds) >= SWEEP_EVERY_SECONDS)) sweep(now);
      if (used.size >= max)
        throw new SingleUseStoreFullError(`${OWNER}: the store holds ${max} tokens, and none of them has expired`);
      used.set(id, now * 1000 + lifeMs);
      return true;
    },
  });
}
