import { finiteNumber, optionRangeError, refuseUnknownOptions } from '../base/options.ts';

/** Maximum number of keys in a ring document. */
export const MAX_RING_KEYS = 64;
/** From this many keys on, `health()` reports a problem and `rotate` fails, because revocations need room. */
export const MAX_KEYS_TO_ROTATE = 48;
/** From this many keys on, no scheduled rotation creates another key. */
export const MAX_KEYS_TO_SCHEDULE = 60;

/** The times by which a fleet runs its ring, in seconds. Give every member of a ring the same times. */
export interface RingPolicy {
  /** Largest difference between the clocks of *any two* members: 600 if each is within ±5 minutes. Default 300. */
  readonly clockSkewSeconds: number;
  /** Interval between reads of the ring, shortened by up to 20 % jitter. Default 300. */
  readonly refreshEverySeconds: number;
  /**
   * Longest wait between attempts while the ring or the KMS fails; the wait starts at 10 s and doubles. Default 60.
   * At most sealOutageSeconds.
   */
  readonly backoffCapSeconds: number;
  /**
   * A key that has stopped sealing unseals for this time plus 2 × clockSkew; a boundary with a longer time to live is
   * refused. This limits the life of keys, not of tokens: a token is unsealed until its key expires, whatever the
   * token's age. Default 3 600.
   */
  readonly tokenLifetimeSeconds: number;
  /** Interval between KMS checks, which show that the key may still be used; up to 20 % jitter shortens it. Default 900. */
  readonly kmsCheckEverySeconds: number;
  /** How long a member seals after its last successful KMS check. At least 3 × kmsCheckEverySeconds. Default 3 600. */
  readonly sealOutageSeconds: number;
  /**
   * How long a member seals after its last successful read of the ring. From 4 × refreshEverySeconds to
   * rotateEverySeconds. Default 21 600.
   */
  readonly storeOutageSeconds: number;
  /**
   * How long a new key only unseals before it seals. Minimum and default: sealOutage + 2 × refreshEvery + clockSkew.
   */
  readonly propagationSeconds: number;
  /** How long a key seals before its successor takes over. At least 4 × propagationSeconds. Default 86 400. */
  readonly rotateEverySeconds: number;
  /**
   * How long a starting member must read *absent* before it creates a ring. Default 0 for memory rings and for
   * `create: 'now'`, otherwise refreshEvery + backoffCap, so that running members first repair a store that lost the
   * ring.
   */
  readonly createAfterSeconds: number;
  /**
   * Interval between checks for a new version of the KMS key, if wraps name a version; up to 20 % jitter shortens it.
   * Each check costs one `wrap` call. If a version has wrapped no key of the ring, a rotation follows as soon as the
   * newest key is older than this interval. 0: never. Default 3 600.
   */
  readonly keyVersionEverySeconds: number;
  /** Deadline of each call to the KMS or the store. Default 5. */
  readonly kmsTimeoutSeconds: number;
  /** How long `createKmsCodec` tries before it rejects. Default 120. */
  readonly startTimeoutSeconds: number;
  /** Unknown key ids cause at most one refresh in this time. Default 10. */
  readonly missRefreshSeconds: number;
}

/** A policy with all its defaults and the times that follow from it. */
export interface ResolvedPolicy extends RingPolicy {
  /** How late a key's successor may be: max(sealOutage, storeOutage) + kmsCheckEvery + 2 × refreshEvery + clockSkew. */
  readonly graceSeconds: number;
}

/** The default of `clockSkewSeconds`, here and in single-use stores. */
export const DEFAULT_CLOCK_SKEW_SECONDS = 300;

const OWNER = 'policy';
/** A year: a longer time is more likely a typing error. */
const LONGEST = 366 * 86_400;

export const BOUNDS: Readonly<Record<keyof RingPolicy, readonly [min: number, max: number]>> = {
  clockSkewSeconds: [0, 86_400],
  refreshEverySeconds: [0.05, 86_400],
  backoffCapSeconds: [0.05, 3_600],
  tokenLifetimeSeconds: [1, LONGEST],
  kmsCheckEverySeconds: [0.05, LONGEST],
  sealOutageSeconds: [0.1, LONGEST],
  storeOutageSeconds: [0.1, LONGEST],
  propagationSeconds: [0, LONGEST],
  rotateEverySeconds: [0.1, LONGEST],
  createAfterSeconds: [0, 86_400],
  keyVersionEverySeconds: [0, LONGEST],
  kmsTimeoutSeconds: [0.01, 300],
  startTimeoutSeconds: [0.01, 86_400],
  missRefreshSeconds: [0, 86_400],
};

/** The names of all options of a policy. */
export const policyNames = (): readonly string[] => Object.keys(BOUNDS);

/**
 * Fills in the defaults and checks the rules between the times.
 * @throws {TypeError} for an unknown option or a non-number.
 * @throws {RangeError} for NaN, a value out of range, or a pair of options that contradict each other; the message
 *   names both.
 */
export function resolvePolicy(
  given: unknown,
  circumstances: { readonly storeKind: string; readonly createNow: boolean },
): ResolvedPolicy {
  if (given !== undefined) refuseUnknownOptions(OWNER, given, policyNames());
  const options = (given ?? {}) as Partial<Record<keyof RingPolicy, unknown>>;
  const pick = (name: keyof RingPolicy, fallback: number): number => {
    const [min, max] = BOUNDS[name];
    return options[name] === undefined ? fallback : finiteNumber(OWNER, name, options[name], min, max);
  };
  const clockSkewSeconds = pick('clockSkewSeconds', DEFAULT_CLOCK_SKEW_SECONDS);
  const refreshEverySeconds = pick('refreshEverySeconds', 300);
  const kmsCheckEverySeconds = pick('kmsCheckEverySeconds', 900);
  const sealOutageSeconds = pick('sealOutageSeconds', 3_600);
  const storeOutageSeconds = pick('storeOutageSeconds', 21_600);
  const leastPropagation = sealOutageSeconds + 2 * refreshEverySeconds + clockSkewSeconds;
  const createAtOnce = circumstances.storeKind === 'memory' || circumstances.createNow;
  const backoffCapSeconds = pick('backoffCapSeconds', 60);
  const policy: ResolvedPolicy = Object.freeze({
    clockSkewSeconds,
    refreshEverySeconds,
    backoffCapSeconds,
    tokenLifetimeSeconds: pick('tokenLifetimeSeconds', 3_600),
    kmsCheckEverySeconds,
    sealOutageSeconds,
    storeOutageSeconds,
    propagationSeconds: pick('propagationSeconds', leastPropagation),
    rotateEverySeconds: pick('rotateEverySeconds', 86_400),
    createAfterSeconds: pick('createAfterSeconds', createAtOnce ? 0 : refreshEverySeconds + backoffCapSeconds),
    keyVersionEverySeconds: pick('keyVersionEverySeconds', 3_600),
    kmsTimeoutSeconds: pick('kmsTimeoutSeconds', 5),
    startTimeoutSeconds: pick('startTimeoutSeconds', 120),
    missRefreshSeconds: pick('missRefreshSeconds', 10),
    graceSeconds:
      Math.max(sealOutageSeconds, storeOutageSeconds) +
      kmsCheckEverySeconds +
      2 * refreshEverySeconds +
      clockSkewSeconds,
  });
  checkLaws(policy, leastPropagation);
  return policy;
}

function checkLaws(policy: ResolvedPolicy, leastPropagation: number): void {
  const p = policy;
  if (p.sealOutageSeconds < 3 * p.kmsCheckEverySeconds) {
    refuse(
      `sealOutageSeconds (${p.sealOutageSeconds}) must be at least 3 × kmsCheckEverySeconds (${p.kmsCheckEverySeconds})`,
    );
  }
  if (p.backoffCapSeconds > p.sealOutageSeconds) {
    refuse(
      `backoffCapSeconds (${p.backoffCapSeconds}) must be at most sealOutageSeconds (${p.sealOutageSeconds}): ` +
        'otherwise, each member makes a new key whenever it reads the ring, to be ready for an outage',
    );
  }
  if (p.storeOutageSeconds < 4 * p.refreshEverySeconds) {
    refuse(
      `storeOutageSeconds (${p.storeOutageSeconds}) must be at least 4 × refreshEverySeconds (${p.refreshEverySeconds})`,
    );
  }
  if (p.storeOutageSeconds > p.rotateEverySeconds) {
    refuse(`storeOutageSeconds (${p.storeOutageSeconds}) must be at most rotateEverySeconds (${p.rotateEverySeconds})`);
  }
  if (p.propagationSeconds < leastPropagation) {
    refuse(
      `propagationSeconds (${p.propagationSeconds}) must be at least sealOutageSeconds (${p.sealOutageSeconds}) + ` +
        `2 × refreshEverySeconds (${p.refreshEverySeconds}) + clockSkewSeconds (${p.clockSkewSeconds}) = ` +
        `${leastPropagation}: a member that was cut off by a tolerated outage must hold a key before any member seals with it`,
    );
  }
  if (p.rotateEverySeconds < 4 * p.propagationSeconds) {
    refuse(
      `rotateEverySeconds (${p.rotateEverySeconds}) must be at least 4 × propagationSeconds (${p.propagationSeconds})`,
    );
  }
  const life =
    p.propagationSeconds + p.rotateEverySeconds + p.graceSeconds + p.tokenLifetimeSeconds + 3 * p.clockSkewSeconds;
  const keys = Math.ceil(life / p.rotateEverySeconds) + 9;
  if (keys > MAX_RING_KEYS) {
    refuse(
      `tokenLifetimeSeconds (${p.tokenLifetimeSeconds}) with rotateEverySeconds (${p.rotateEverySeconds}) would need ` +
        `${keys} keys in the ring, more than ${MAX_RING_KEYS}`,
    );
  }
}

function refuse(text: string): never {
  throw optionRangeError(`${OWNER}: ${text}`);
}
