import type { Clock } from '@sealring/core';
import { checkClaim } from '@sealring/core/adapter';
import { readClock } from './clock-option.ts';
import { boundedNumber, knownOptions } from './option-checks.ts';
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
 * Remembers redeemed tokens in this process, until they expire. For a server of one process: a second process, or the
 * same one started again, does not know of them.
 *
 * Nothing is evicted: a full store rejects with {@link SingleUseStoreFullError}, and the boundary refuses the token.
 *
 * @throws {TypeError} for an unknown option or one of a wrong type.
 * @throws {RangeError} for `maxTokens` outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ keys: [key], singleUse: memorySingleUse() });
 * ```
 */
export function memorySingleUse(options: MemorySingleUseOptions = {}): SingleUseStore {
  const { maxTokens = DEFAULT_MAX_TOKENS, clock } = knownOptions(OWNER, options, ['maxTokens', 'clock']);
  const max = boundedNumber(OWNER, 'maxTokens', maxTokens, 1, LARGEST_MAX_TOKENS);
  const nowSeconds = readClock(OWNER, clock);
  /** When each may be forgotten, by id; Unix milliseconds. */
  const used = new Map<string, number>();
  let sweepAtSize = Math.min(1_024, max);
  let sweptAtSeconds = Number.NEGATIVE_INFINITY;

  const sweep = (now: number): void => {
    for (const [id, expiresAtMs] of used) if (expiresAtMs <= now * 1000) used.delete(id);
    sweptAtSeconds = now;
    // Twice what is left: each claim pays for a constant number of visits.
    sweepAtSize = Math.min(2 * Math.max(used.size, 512), max);
  };

  return Object.freeze<SingleUseStore>({
    async claim(id, expiresAt) {
      checkClaim(OWNER, id, expiresAt);
      const now = nowSeconds();
      if (expiresAt.getTime() <= now * 1000 || used.has(id)) return false;
      const full = used.size >= max;
      if (used.size >= sweepAtSize && (!full || Math.abs(now - sweptAtSeconds) >= SWEEP_EVERY_SECONDS)) sweep(now);
      if (used.size >= max)
        throw new SingleUseStoreFullError(`${OWNER}: ${max} tokens are remembered, none has expired`);
      used.set(id, expiresAt.getTime());
      return true;
    },
  });
}
