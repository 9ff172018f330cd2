import type { Clock } from '@sealring/core';
import { checkClaim, claimLifeMs, clockSkewMsOf, numberWithin } from '@sealring/core/adapter';
import { readClock } from '../shared/clock-option.ts';
import { knownOptions } from '../shared/option-checks.ts';
import type { SingleUseStore } from './single-use.ts';

const OWNER = 'memorySingleUse';
const DEFAULT_MAX_TOKENS = 100_000;
const LARGEST_MAX_TOKENS = 10_000_000;
/** A full store looks for expired tokens this often at most. Seconds. */
const SWEEP_EVERY_SECONDS = 1;

/** Options of {@link memorySingleUse}. */
export interface MemorySingleUseOptions {
  /** How many redeemed tokens are remembered, 1 to 10 000 000. Default 100 000, about 15 MB. */
  readonly maxTokens?: number;
  /** That of the ring's policy: a token is remembered for so much longer than it lives. Seconds, 0 to 86 400. Default 300. */
  readonly clockSkewSeconds?: number;
  /** Where time comes from. Default: the system's. */
  readonly clock?: Clock;
}

/** The store holds as many tokens as it may, and none has expired: this one is refused. */
export class SingleUseStoreFullError extends Error {
  override readonly name = 'SingleUseStoreFullError';

  /** The section of the documentation on it, a path in Sealring's repository. */
  get help(): string {
    return 'docs/errors.md#singleusestorefullerror';
  }
}

/**
 * Remembers redeemed tokens in this process. For a server of one process: a second process, or the
 * same one started again, does not know of them.
 *
 * Nothing is evicted: a full store rejects with {@link SingleUseStoreFullError}, and the boundary refuses the token.
 *
 * @throws {TypeError} for an unknown option or one of a wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ keys: [key], singleUse: memorySingleUse() });
 * ```
 */
export function memorySingleUse(options: MemorySingleUseOptions = {}): SingleUseStore {
  const known = ['maxTokens', 'clockSkewSeconds', 'clock'];
  const { maxTokens = DEFAULT_MAX_TOKENS, clockSkewSeconds, clock } = knownOptions(OWNER, options, known);
  const max = numberWithin(OWNER, 'maxTokens', maxTokens, 1, LARGEST_MAX_TOKENS);
  const clockSkewMs = clockSkewMsOf(OWNER, clockSkewSeconds);
  const nowSeconds = readClock(OWNER, clock);
  /** When each may be forgotten, by id; Unix milliseconds. */
  const used = new Map<string, number>();
  let sweepAtSize = Math.min(1_024, max);
  let sweptAtSeconds = Number.NEGATIVE_INFINITY;

  const sweep = (now: number): void => {
    for (const [id, keptUntilMs] of used) if (keptUntilMs <= now * 1000) used.delete(id);
    sweptAtSeconds = now;
    // Twice what is left: each claim pays for a constant number of visits.
    sweepAtSize = Math.min(2 * Math.max(used.size, 512), max);
  };

  return Object.freeze<SingleUseStore>({
    clockSkewSeconds: clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      checkClaim(OWNER, id, expiresAt);
      const now = nowSeconds();
      const lifeMs = claimLifeMs(expiresAt, clockSkewMs, now * 1000);
      if (lifeMs <= 0 || used.has(id)) return false;
      const full = used.size >= max;
      if (used.size >= sweepAtSize && (!full || Math.abs(now - sweptAtSeconds) >= SWEEP_EVERY_SECONDS)) sweep(now);
      if (used.size >= max)
        throw new SingleUseStoreFullError(`${OWNER}: ${max} tokens are remembered, none has expired`);
      used.set(id, now * 1000 + lifeMs);
      return true;
    },
  });
}
