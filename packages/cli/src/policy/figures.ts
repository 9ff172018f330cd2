import type { RingPolicy } from '@sealring/core';
import { resolvePolicy } from '@sealring/core/ring';

const DAY_SECONDS = 86_400;
/** Jitter takes up to a fifth off every interval: a tenth on average. */
const JITTER = 0.9;

/** What a policy comes to. Times in seconds; calls of one server a day, where none gets lost. */
export interface PolicyFigures {
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

/**
 * The formulas of docs/guides/key-lifecycle.md and fleet-under-fault.md for one policy.
 *
 * @param policy - Times that are not the default.
 * @throws {TypeError | RangeError} for a policy that `createKmsCodec` refuses.
 *
 * @example
 * ```ts
 * import { policyFigures } from '@sealring/cli';
 *
 * const { kmsCallsPerServerDay } = policyFigures({ proveEverySeconds: 600 });
 * ```
 */
export function policyFigures(policy: Partial<RingPolicy>): PolicyFigures {
  const p = resolvePolicy(policy, { storeKind: 'file', createNow: false });
  const { clockSkewSeconds: skew, refreshEverySeconds: refresh, backoffCapSeconds: cap, proveEverySeconds: prove } = p;
  const calls = 4 * p.kmsTimeoutSeconds;
  const life = p.propagationSeconds + p.rotateEverySeconds + p.graceSeconds + p.tokenLifetimeSeconds + 3 * skew;
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
