import type { RingPolicy } from '@sealring/core';

/**
 * A day in the life of a ring, played in seconds: a published key seals after 7 s instead of 75 minutes. Every server of
 * a ring must be given the same times. In production, omit them and use the defaults.
 */
export const policy: Partial<RingPolicy> = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 0.5,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 5,
  storeOutageSeconds: 60,
  propagationSeconds: 7,
  rotateEverySeconds: 3_600,
  tokenLifetimeSeconds: 600,
  kmsTimeoutSeconds: 3,
  startTimeoutSeconds: 10,
};
