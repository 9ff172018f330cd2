import type { RotationReason } from '../contracts/events.ts';
import type { ResolvedPolicy } from './policy.ts';

/** Every {@link KeyState}. */
export const KEY_STATES = ['propagating', 'active', 'verify-only', 'expired', 'revoked'] as const;

/** The state of a key at one moment: what it may be used for. */
export type KeyState = (typeof KEY_STATES)[number];

/** The times of a key, in milliseconds since the epoch and always in whole seconds. Written once and never changed. */
export interface KeyTimes {
  readonly created: number;
  /** From this time on it may seal. */
  readonly activates: number;
  /** From this time on it only unseals. */
  readonly sealsUntil: number;
  /** From this time on it is expired. */
  readonly opensUntil: number;
}

/** The parts of a key that the schedule uses. */
export interface ScheduledKey extends KeyTimes {
  readonly id: string;
  readonly revoked: boolean;
}

const MS = 1_000;
/** How old a key that does not wait for the propagation time may be when it is written. */
const LONGEST_HASTY_DELAY_MS = 60_000;

/**
 * The times of a key created at `nowMs`. The two ends, and the activation unless it is immediate, are rounded up to
 * whole seconds, which is the safe direction. `newestMs` is the latest `created` that is known: a new key is newer than
 * every other, whatever the clocks of their creators showed.
 */
export function timesOfNewKey(
  reason: RotationReason,
  nowMs: number,
  policy: ResolvedPolicy,
  newestMs: number = Number.NEGATIVE_INFINITY,
): KeyTimes {
  const skew = policy.clockSkewSeconds * MS;
  const created = Math.max(floorSecond(nowMs), newestMs + MS);
  const base = Math.max(nowMs, created);
  let activates: number;
  switch (reason) {
    case 'initial':
    case 'revocation':
      activates = floorSecond(nowMs - skew);
      break;
    case 'emergency':
      activates = ceilSecond(base + emergencyWaitMs(policy));
      break;
    case 'scheduled':
    case 'key-version':
    case 'requested':
      activates = ceilSecond(base + policy.propagationSeconds * MS);
      break;
  }
  const sealsUntil = ceilSecond(activates + (policy.rotateEverySeconds + policy.graceSeconds) * MS);
  const opensUntil = ceilSecond(sealsUntil + policy.tokenLifetimeSeconds * MS + 2 * skew);
  return { created, activates, sealsUntil, opensUntil };
}

/** How long an emergency key waits before it seals: until every member that reads the ring has it. */
export function emergencyWaitMs(policy: ResolvedPolicy): number {
  return (policy.refreshEverySeconds + policy.backoffCapSeconds + policy.clockSkewSeconds) * MS;
}

/**
 * How old a new key may be when it is written. An older one could seal before the other members have read it: an
 * emergency key waits for a refresh, the backoff cap and the skew, so it may use up the backoff cap.
 */
export function longestDelayMs(key: KeyTimes, policy: ResolvedPolicy): number {
  if (isPlanned(key, policy)) return policy.refreshEverySeconds * MS;
  const isActiveAtOnce = key.activates <= key.created;
  return isActiveAtOnce ? LONGEST_HASTY_DELAY_MS : Math.min(LONGEST_HASTY_DELAY_MS, policy.backoffCapSeconds * MS);
}

/** Whether the times of a key leave it time to propagate before it seals. */
export function isPlanned(key: KeyTimes, policy: ResolvedPolicy): boolean {
  return key.activates - key.created >= policy.propagationSeconds * MS;
}

/**
 * How long a member waits, after it has read a planned key, before it seals with that key: propagation − 2 ×
 * refreshEvery − clockSkew. Normally, this time has passed before the key is active. If the writer of the key was
 * delayed, the other members need this time to read the key.
 */
export function lateWaitMs(policy: ResolvedPolicy): number {
  return (policy.propagationSeconds - 2 * policy.refreshEverySeconds - policy.clockSkewSeconds) * MS;
}

/** When the successor of a key becomes due. */
export function rotateAt(key: Pick<KeyTimes, 'activates'>, policy: ResolvedPolicy): number {
  return key.activates + (policy.rotateEverySeconds - policy.propagationSeconds) * MS;
}

/** When a writer may drop a key from the document. */
export function removableFrom(key: KeyTimes, policy: ResolvedPolicy): number {
  return key.opensUntil + policy.clockSkewSeconds * MS;
}

/**
 * How long a member waits before it publishes a due successor: R × ln(1 + u(e^10 − 1)) / 10, with R = refreshEvery and
 * u uniform in [0, 1). Most members draw a wait near R, so that only one to three of ten thousand members publish
 * before the others.
 */
export function rotationDelayMs(uniform: number, policy: ResolvedPolicy): number {
  return (policy.refreshEverySeconds * MS * Math.log(1 + uniform * (Math.E ** 10 - 1))) / 10;
}

/** Orders keys by (activates, id): the later key is the newer one. */
export function compareAge(
  a: { readonly activates: number; readonly id: string },
  b: { readonly activates: number; readonly id: string },
): number {
  if (a.activates !== b.activates) return a.activates - b.activates;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** The newest of some keys by {@link compareAge}. */
export function newest<T extends { readonly activates: number; readonly id: string }>(
  keys: Iterable<T>,
): T | undefined {
  let found: T | undefined;
  for (const key of keys) {
    if (found === undefined || compareAge(key, found) > 0) found = key;
  }
  return found;
}

/** Whether a key's own times let it seal now. */
export function maySeal(key: ScheduledKey, nowMs: number): boolean {
  return !key.revoked && key.activates <= nowMs && nowMs < key.sealsUntil;
}

/** Whether a key's own times let it unseal now. */
export function mayUnseal(key: ScheduledKey, nowMs: number): boolean {
  return !key.revoked && nowMs < key.opensUntil;
}

/** The state of a key at `nowMs`; `sealing` is the key that seals, if any; a newer one may still be propagating. */
export function stateOf(key: ScheduledKey, nowMs: number, sealing: ScheduledKey | undefined): KeyState {
  if (key.revoked) return 'revoked';
  if (nowMs >= key.opensUntil) return 'expired';
  if (key.id === sealing?.id) return 'active';
  const isWaiting = sealing === undefined ? nowMs < key.activates : compareAge(key, sealing) > 0;
  return isWaiting && nowMs < key.sealsUntil ? 'propagating' : 'verify-only';
}

function floorSecond(ms: number): number {
  return Math.floor(ms / MS) * MS;
}

function ceilSecond(ms: number): number {
  return Math.ceil(ms / MS) * MS;
}
