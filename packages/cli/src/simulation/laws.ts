import type { RingPolicy } from '@sealring/core';
import { completePolicy } from '../policy-times.ts';

const DAY_SECONDS = 86_400;
/** Jitter takes up to a fifth off every interval: a tenth on average. */
const JITTER = 0.9;

/** What the formulas of docs/guides/key-lifecycle.md and fleet-under-fault.md say of a policy. Seconds, calls. */
export interface Laws {
  /** Before a new key seals. */
  readonly propagation: number;
  /** An outage of the KMS that no server notices. */
  readonly kmsOutage: number;
  /** Sealing without a proof; without a read of the ring. */
  readonly sealOutage: number;
  readonly storeOutage: number;
  /** Longest life of a token. */
  readonly tokenLifetime: number;
  /** Last seal after the KMS refuses the key, and last open. */
  readonly refusedSeal: number;
  readonly refusedOpen: number;
  /** Last use of a revoked key at a server that reads the ring. */
  readonly revoked: number;
  /** Keys in the ring, without rotations that are asked for. */
  readonly keys: number;
  readonly kmsCallsPerServerDay: number;
  /** Beside those: looks for a new version of the KMS key, one `wrap` each, with providers whose wraps name versions. */
  readonly versionLooksPerServerDay: number;
  readonly storeReadsPerServerDay: number;
}

export function lawsOf(policy: Partial<RingPolicy>): Laws {
  const p = completePolicy(policy);
  const { clockSkewSeconds: skew, refreshEverySeconds: refresh, backoffCapSeconds: cap, proveEverySeconds: prove } = p;
  const calls = 4 * p.kmsTimeoutSeconds;
  const grace = Math.max(p.sealOutageSeconds, p.storeOutageSeconds) + prove + 2 * refresh + skew;
  const life = p.propagationSeconds + p.rotateEverySeconds + grace + p.tokenLifetimeSeconds + 3 * skew;
  const refusedSeal = prove + Math.max(cap, 20 + 2 * p.kmsTimeoutSeconds) + calls;
  return {
    propagation: p.propagationSeconds,
    kmsOutage: p.sealOutageSeconds - prove - cap - calls,
    sealOutage: p.sealOutageSeconds,
    storeOutage: p.storeOutageSeconds,
    tokenLifetime: p.tokenLifetimeSeconds,
    refusedSeal,
    refusedOpen: refusedSeal + skew + refresh,
    revoked: refresh + cap + calls,
    keys: Math.ceil(life / p.rotateEverySeconds),
    kmsCallsPerServerDay: DAY_SECONDS / (JITTER * prove) + DAY_SECONDS / p.rotateEverySeconds,
    versionLooksPerServerDay: versionLooks(p.keyVersionEverySeconds, prove),
    storeReadsPerServerDay: DAY_SECONDS / (JITTER * refresh),
  };
}

/** A look is made right after a proof: half an interval of proofs later than it is due, on average. */
function versionLooks(every: number, prove: number): number {
  return every === 0 ? 0 : DAY_SECONDS / (JITTER * Math.max(prove, every + prove / 2));
}
