import { policyFigures } from '@sealring/cli';
import { propagationSecondsOf, type WorldPolicy } from './world.ts';

/** A KMS that is repeatedly unreachable, seconds. */
export interface Outages {
  readonly everySeconds: number;
  readonly lengthSeconds: number;
}

/** Calls, of one member. */
export interface Calls {
  readonly kms: number;
  readonly store: number;
}

const DAY_SECONDS = 86_400;
/** Jitter takes up to a fifth off every interval: a tenth on average. */
const JITTER = 0.9;
/** The waits after the first failures are drawn from up to 10, 20 and 40 s: three calls in 35 s. */
const FIRST_RETRIES = 3;
const FIRST_RETRIES_SECONDS = 35;
/** A member that finds no ring at its start reads again after 3 to 6 s, for a refresh and a backoff cap. */
const LOOK_EVERY_SECONDS = 4.5;

/**
 * Calls of one member a day: the formula of docs/guides/fleet-under-fault.md. Calls at the start are not counted.
 *
 * After an outage every member makes a KMS check within half a backoff cap, then every 0.9 × kmsCheckEvery; so their
 * calls coincide in the next outage, `late` seconds after it began, and repeat every half a backoff cap until it ends.
 */
export function callsPerMemberDay(policy: WorldPolicy, loss: number, outages?: Outages): Calls {
  const { kmsCallsPerServerDay, storeReadsPerServerDay } = policyFigures(policy);
  const store = storeReadsPerServerDay * (1 + loss);
  if (outages === undefined) return { kms: kmsCallsPerServerDay * (1 + loss), store };
  const newKeys = DAY_SECONDS / policy.rotateEverySeconds;
  const { proofs, inVain } = callsOfOutage(policy, outages);
  return { kms: ((DAY_SECONDS / outages.everySeconds) * (proofs + inVain) + newKeys) * (1 + loss), store };
}

/**
 * Calls of one member in the first `seconds` of a fleet whose members start together on an empty store: includes the
 * reads until one creates the ring, and a call for each successor once it is due. The first outage begins `fromSeconds`
 * after the start.
 */
export function callsPerMember(
  policy: WorldPolicy,
  loss: number,
  seconds: number,
  outages?: Outages & { readonly fromSeconds: number },
): Calls {
  const { refreshEverySeconds, backoffCapSeconds, rotateEverySeconds, clockSkewSeconds } = policy;
  const founding = Math.min(seconds, refreshEverySeconds + backoffCapSeconds);
  const running = seconds - founding;
  const refreshInterval = JITTER * refreshEverySeconds;
  const reads = founding / LOOK_EVERY_SECONDS + running / refreshInterval;
  // The first key is active at once on every clock, and its successor is made in time to spread.
  const firstSuccessor = rotateEverySeconds - clockSkewSeconds - propagationSecondsOf(policy);
  const newKeys = running < firstSuccessor ? 0 : 1 + Math.floor((running - firstSuccessor) / rotateEverySeconds);
  const calm = outages === undefined ? running : Math.min(running, Math.max(0, outages.fromSeconds - founding));
  // The first key takes one call; half of the current interval is over at the end, and its KMS check is still to come.
  const atStart = running > 0 ? 0.5 : 0;
  const troubled = outages === undefined ? 0 : callsUnderOutages(policy, outages, running - calm);
  return {
    kms: (atStart + calm / proofInterval(policy) + troubled + newKeys) * (1 + loss),
    store: reads * (1 + loss),
  };
}

function proofInterval({ kmsCheckEverySeconds }: WorldPolicy): number {
  return JITTER * kmsCheckEverySeconds;
}

/** Calls between the beginnings of two outages. */
function callsOfOutage(
  policy: WorldPolicy,
  { everySeconds, lengthSeconds }: Outages,
): { readonly proofs: number; readonly inVain: number } {
  const interval = proofInterval(policy);
  const retryEvery = policy.backoffCapSeconds / 2;
  const proofs = Math.ceil((everySeconds - lengthSeconds) / interval);
  const late = proofs * interval + retryEvery - (everySeconds - lengthSeconds);
  const inVain = 1 + FIRST_RETRIES + Math.max(0, (lengthSeconds - late - FIRST_RETRIES_SECONDS) / retryEvery);
  return { proofs, inVain };
}

/** Calls in the first `seconds` of an outage. */
function callsUnderOutages(policy: WorldPolicy, outages: Outages, seconds: number): number {
  const { everySeconds, lengthSeconds } = outages;
  const { proofs, inVain } = callsOfOutage(policy, outages);
  const whole = Math.floor(seconds / everySeconds);
  const rest = seconds - whole * everySeconds;
  const restInVain = inVain * Math.min(1, rest / lengthSeconds);
  const restProofs = proofs * Math.max(0, (rest - lengthSeconds) / (everySeconds - lengthSeconds));
  return whole * (proofs + inVain) + restInVain + restProofs;
}
