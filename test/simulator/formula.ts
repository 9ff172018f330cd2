import type { WorldPolicy } from './world.ts';

/** A KMS that is out of reach again and again, seconds. */
export interface Outages {
  readonly everySeconds: number;
  readonly lengthSeconds: number;
}

const DAY_SECONDS = 86_400;
/** Jitter takes up to a fifth off every interval: a tenth on average. */
const JITTER = 0.9;
/** Waits after the first failures are drawn from up to 10, 20 and 40 s: three calls in 35 s. */
const FIRST_RETRIES = 3;
const FIRST_RETRIES_SECONDS = 35;

/**
 * Calls of one member a day: the formula of docs/guides/fleet-under-fault.md. Without the reads of a start.
 *
 * After an outage every member proves within half a backoff cap, then every 0.9 × proveEvery; so they come into the next
 * outage together, `late` seconds after it began, and ask again every half a backoff cap until it ends.
 */
export function callsPerMemberDay(
  policy: WorldPolicy,
  loss: number,
  outages?: Outages,
): { readonly kms: number; readonly store: number } {
  const { refreshEverySeconds, proveEverySeconds, backoffCapSeconds, rotateEverySeconds } = policy;
  const newKeys = DAY_SECONDS / rotateEverySeconds;
  const store = (DAY_SECONDS / (JITTER * refreshEverySeconds)) * (1 + loss);
  const interval = JITTER * proveEverySeconds;
  if (outages === undefined) return { kms: (DAY_SECONDS / interval + newKeys) * (1 + loss), store };
  const { everySeconds, lengthSeconds } = outages;
  const retryEvery = backoffCapSeconds / 2;
  const proofs = Math.ceil((everySeconds - lengthSeconds) / interval);
  const late = proofs * interval + retryEvery - (everySeconds - lengthSeconds);
  const failing = 1 + FIRST_RETRIES + Math.max(0, (lengthSeconds - late - FIRST_RETRIES_SECONDS) / retryEvery);
  return { kms: ((DAY_SECONDS / everySeconds) * (proofs + failing) + newKeys) * (1 + loss), store };
}
