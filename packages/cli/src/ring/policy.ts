import { type ResolvedPolicy, resolvePolicy } from '@sealring/core/ring';
import type { SealringConfig } from '../settings/settings.ts';

/** The policy of a configuration, with the defaults of core. */
export function policyOf({ policy, ring }: Pick<SealringConfig, 'policy' | 'ring'>): ResolvedPolicy {
  return resolvePolicy(policy, { storeKind: ring.kind, createNow: false });
}
