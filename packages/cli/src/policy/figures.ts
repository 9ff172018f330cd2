import type { RingPolicy } from '@sealring/core';
import { resolvePolicy } from '@sealring/core/ring';

const DAY_SECONDS = 86_400;
/** Jitter shortens every interval by up to a fifth, and by a tenth on average. */
const JITTER = 0.9;

/** The effects of a policy: times in seconds, and calls per server per day if nothing fails. */
export interface PolicyFigures {
  /** How long a new key waits until it seals. */
  readonly propagation: number;
  /** The longest outage of the KMS that has no effect. */
  readonly kmsOutage: number;
  /** How long sealing continues after the last KMS check. */
  readonly sealOutage: number;
  /** How long sealing continues after the last read of the ring. */
  readonly storeOutage: number;
  /** The longest lifetime of a token. */
  readonly tokenLifetime: number;
  /** The longest time from disabling the KMS key to the last sealed token. */
  readonly refusedSeal: number;
  /** The longest time from disabling the KMS key to the last unsealed token. */
  readonly refusedUnseal: number;
  /** The longest time from a revocation to the last use of the key by a server that can read the ring. */
  readonly revoked: number;
  /** The most keys that the ring has if no rotation is requested. */
  readonly keys: number;
  /** Calls for KMS checks and for new keys. */
  readonly kmsCallsPerServerDay: number;
  /** Additional calls with providers that have versions: one `wrap` for each check for a new version of the KMS key. */
  readonly versionChecksPerServerDay: number;
  /** Reads of the ring. */
  readonly storeReadsPerServerDay: number;
}

/**
 * Calculates the effects of a policy with the formulas of docs/guides/key-lifecycle.md and fleet-under-fault.md.
 *
 * @param policy - The times that differ from the defaults.
 * @throws {TypeError | RangeError} for a policy that `createKmsCodec` rejects.
 *
 * @example
 * ```ts
 * import { policyFigures } from '@sealring/cli';
 *
 * const { kmsCallsPerServerDay } = policyFigures({ kmsCheckEverySeconds: 600 });
 * ```
 */
export function policyFigures(policy: Partial<RingPolicy>): PolicyFigures {
  const p = resolvePolicy(policy, { storeKind: 'file', createNow: false });
  const {
    clockSkewSeconds: skew,
    refreshEverySeconds: refresh,
    backoffCapSeconds: cap,
    kmsCheckEverySeconds: prove,
  } = p;
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
    refusedUnseal: refusedSeal + skew + refresh,
    revoked: refresh + cap + calls,
    keys: Math.ceil(life / p.rotateEverySeconds),
    kmsCallsPerServerDay: DAY_SECONDS / (JITTER * prove) + DAY_SECONDS / p.rotateEverySeconds,
    versionChecksPerServerDay: versionChecks(p.keyVersionEverySeconds, prove),
    storeReadsPerServerDay: DAY_SECONDS / (JITTER * refresh),
  };
}

/** Checks per day. Each follows a KMS check and so, on average, comes half a KMS check interval after it is due. */
function versionChecks(every: number, prove: number): number {
  return every === 0 ? 0 : DAY_SECONDS / (JITTER * Math.max(prove, every + prove / 2));
}
