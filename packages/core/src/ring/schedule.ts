import type { ResolvedPolicy } from './policy.ts';

/** What a key may do at a moment. A pure function of its times and the clock. */
export type KeyState = 'propagating' | 'active' | 'verify-only' | 'retired' | 'revoked';

/** The times of a key, milliseconds since the epoch, whole seconds. Written once and never changed. */
export interface KeyTimes {
  readonly created: number;
  /** From here on it may seal. */
  readonly activates: number;
  /** From here on it opens only. */
  readonly sealsUntil: number;
  /** From here on it does nothing. */
  readonly opensUntil: number;
}

/** A key as far as the schedule is concerned. */
export interface ScheduledKey extends KeyTimes {
  readonly id: string;
  readonly revoked: boolean;
}

/**
 * Why a key is made. `initial` and `revocation`: active on every clock at once, since nothing else can seal.
 * `emergency`: as soon as every member that reads the ring can have it. `scheduled`, `requested`: after propagation.
 */
export type RotationReason = 'scheduled' | 'requested' | 'initial' | 'emergency' | 'revocation';

const MS = 1_000;

/** The times of a key made at `nowMs`. Rounded to seconds away from harm: activation late, the ends late. */
export function timesOfNewKey(reason: RotationReason, nowMs: number, policy: ResolvedPolicy): KeyTimes {
  const skew = policy.clockSkewSeconds * MS;
  let activates: number;
  switch (reason) {
    case 'initial':
    case 'revocation':
      activates = floorSecond(nowMs - skew);
      break;
    case 'emergency':
      activates = ceilSecond(nowMs + (policy.refreshEverySeconds + policy.backoffCapSeconds) * MS + skew);
      break;
    case 'scheduled':
    case 'requested':
      activates = ceilSecond(nowMs + policy.propagationSeconds * MS);
      break;
  }
  const sealsUntil = ceilSecond(activates + (policy.rotateEverySeconds + policy.graceSeconds) * MS);
  const opensUntil = ceilSecond(sealsUntil + policy.tokenLifetimeSeconds * MS + 2 * skew);
  return { created: floorSecond(nowMs), activates, sealsUntil, opensUntil };
}

/** When the successor of a key becomes due. */
export function rotateAt(key: KeyTimes, policy: ResolvedPolicy): number {
  return key.activates + (policy.rotateEverySeconds - policy.propagationSeconds) * MS;
}

/** When a writer may drop a key from the document. */
export function removableFrom(key: KeyTimes, policy: ResolvedPolicy): number {
  return key.opensUntil + policy.clockSkewSeconds * MS;
}

/**
 * How long a member waits before it publishes a due successor: R × ln(1 + u(e^10 − 1)) / 10, u uniform in [0, 1).
 * Most members draw a wait near R, so that of ten thousand only one to three come first.
 */
export function rotationDelayMs(uniform: number, policy: ResolvedPolicy): number {
  return (policy.refreshEverySeconds * MS * Math.log(1 + uniform * (Math.E ** 10 - 1))) / 10;
}

/** Orders keys by (activates, id): the later is the newer. */
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

/** Whether a key's own times let it open now. */
export function mayOpen(key: ScheduledKey, nowMs: number): boolean {
  return !key.revoked && nowMs < key.opensUntil;
}

/** The state of a key at `nowMs`; `sealingId` names the one that seals. */
export function stateOf(key: ScheduledKey, nowMs: number, sealingId: string | undefined): KeyState {
  if (key.revoked) return 'revoked';
  if (nowMs >= key.opensUntil) return 'retired';
  if (key.id === sealingId) return 'active';
  return nowMs < key.activates ? 'propagating' : 'verify-only';
}

function floorSecond(ms: number): number {
  return Math.floor(ms / MS) * MS;
}

function ceilSecond(ms: number): number {
  return Math.ceil(ms / MS) * MS;
}
