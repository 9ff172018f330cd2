import type { RingPolicy } from '@sealring/core';

/** How long a fleet goes on with a key that it may no longer use, in seconds from the moment that is so. */
export interface KmsBounds {
  /** Where the KMS answers, and refuses with `disabled`. */
  readonly refused: { readonly lastSeal: number; readonly lastOpen: number };
  /** Where the KMS does not answer. */
  readonly unreachable: { readonly lastSeal: number; readonly lastOpen: number };
  /** An outage of the KMS that nobody notices. */
  readonly toleratedOutage: number;
}

/** The formulas of docs/guides/key-lifecycle.md, "When something fails". */
export function kmsBounds(policy: Omit<RingPolicy, 'createAfterSeconds'>): KmsBounds {
  const { clockSkewSeconds, refreshEverySeconds, backoffCapSeconds, tokenLifetimeSeconds } = policy;
  const { kmsCheckEverySeconds, sealOutageSeconds, kmsTimeoutSeconds } = policy;
  const late = kmsCheckEverySeconds + backoffCapSeconds + 4 * kmsTimeoutSeconds;
  return {
    refused: { lastSeal: late, lastOpen: late + clockSkewSeconds + refreshEverySeconds },
    unreachable: {
      lastSeal: sealOutageSeconds,
      lastOpen: sealOutageSeconds + tokenLifetimeSeconds + 2 * clockSkewSeconds,
    },
    toleratedOutage: sealOutageSeconds - late,
  };
}
