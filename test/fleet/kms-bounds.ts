import type { RingPolicy } from '@sealring/core';

/** How long a fleet continues with a key from the moment the KMS no longer allows it, in seconds. */
export interface KmsBounds {
  /** The bounds when the KMS refuses with `disabled`. */
  readonly refused: { readonly lastSeal: number; readonly lastOpen: number };
  /** The bounds when the KMS does not answer. */
  readonly unreachable: { readonly lastSeal: number; readonly lastOpen: number };
  /** An outage of the KMS that no client notices. */
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
