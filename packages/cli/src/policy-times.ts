import type { RingPolicy } from '@sealring/core';

/** Times of a policy with nothing left out, seconds. `createAfterSeconds` depends on the store, and is not among them. */
export type CompletePolicy = Omit<RingPolicy, 'createAfterSeconds'>;

/** The times that a report needs, seconds. */
export type PolicyTimes = Pick<
  CompletePolicy,
  | 'clockSkewSeconds'
  | 'refreshEverySeconds'
  | 'propagationSeconds'
  | 'rotateEverySeconds'
  | 'keyVersionEverySeconds'
  | 'kmsTimeoutSeconds'
>;

/** Core's defaults, which it does not export; a test holds them to its documentation. */
export const POLICY_DEFAULTS = {
  clockSkewSeconds: 300,
  refreshEverySeconds: 300,
  backoffCapSeconds: 60,
  tokenLifetimeSeconds: 3_600,
  proveEverySeconds: 900,
  sealOutageSeconds: 3_600,
  storeOutageSeconds: 21_600,
  rotateEverySeconds: 86_400,
  keyVersionEverySeconds: 3_600,
  kmsTimeoutSeconds: 5,
  startTimeoutSeconds: 120,
  missRefreshSeconds: 10,
} as const;

/** A policy that core has accepted, completed. */
export function completePolicy(policy: Partial<RingPolicy> = {}): CompletePolicy {
  const { createAfterSeconds: _, ...given } = withoutUndefined(policy);
  const times = { ...POLICY_DEFAULTS, ...given };
  const least = times.sealOutageSeconds + 2 * times.refreshEverySeconds + times.clockSkewSeconds;
  return { propagationSeconds: least, ...times };
}

function withoutUndefined(policy: Partial<RingPolicy>): Partial<RingPolicy> {
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));
}

/** When the successor of a key is due: a member publishes it from then on, within refreshEvery. */
export function rotateAt(key: { readonly activates: number }, times: PolicyTimes): number {
  return key.activates + (times.rotateEverySeconds - times.propagationSeconds) * 1_000;
}
