import type { RingPolicy } from '@sealring/core';

/** The times that a report needs, seconds. */
export type PolicyTimes = Pick<
  RingPolicy,
  'clockSkewSeconds' | 'refreshEverySeconds' | 'propagationSeconds' | 'rotateEverySeconds' | 'kmsTimeoutSeconds'
>;

/** Core's defaults, which it does not export; a test holds them to its documentation. */
export const POLICY_DEFAULTS = {
  clockSkewSeconds: 300,
  refreshEverySeconds: 300,
  sealOutageSeconds: 3_600,
  rotateEverySeconds: 86_400,
  kmsTimeoutSeconds: 5,
} as const;

/** A policy that core has accepted, completed. */
export function policyTimesOf(policy: Partial<RingPolicy> = {}): PolicyTimes {
  const { clockSkewSeconds, refreshEverySeconds, sealOutageSeconds, rotateEverySeconds, kmsTimeoutSeconds } = {
    ...POLICY_DEFAULTS,
    ...withoutUndefined(policy),
  };
  const { propagationSeconds = sealOutageSeconds + 2 * refreshEverySeconds + clockSkewSeconds } = policy;
  return { clockSkewSeconds, refreshEverySeconds, propagationSeconds, rotateEverySeconds, kmsTimeoutSeconds };
}

function withoutUndefined(policy: Partial<RingPolicy>): Partial<RingPolicy> {
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));
}

/** When the successor of a key is due: a member publishes it from then on, within refreshEvery. */
export function rotateAt(key: { readonly activates: number }, times: PolicyTimes): number {
  return key.activates + (times.rotateEverySeconds - times.propagationSeconds) * 1_000;
}
