import type { DataKey } from '../keys/data-key.ts';
import type { RingAuthenticator } from '../keys/ring-authenticator.ts';
import type { Ancestors, Macs, Revocation, RingEntry, RingWrap } from './document.ts';
import type { ResolvedPolicy } from './policy.ts';
import {
  compareAge,
  emergencyWaitMs,
  type KeyState,
  type KeyTimes,
  maySeal,
  mayUnseal,
  type ScheduledKey,
  stateOf,
} from './schedule.ts';

/** A wrap whose MAC is correct under the entry's own key. */
export interface KnownWrap extends RingWrap {
  /** Whether this member made or unwrapped the wrap. If so, it is never dropped. */
  readonly isUnwrapped: boolean;
}

/** A key of the ring as this member knows it: authenticated facts only. */
export interface RingKey extends ScheduledKey {
  /** Vouchers that this member could check; they stay valid. */
  readonly vouchers: Macs;
  /**
   * The keys that vouch for this key, as the key itself certifies: they also belong to the ring. Undefined while they
   * are not known.
   */
  readonly ancestors?: Ancestors | undefined;
  /** Undefined while `revoked` is false, and if the key is refused only by this member's own pin. */
  readonly revocation: Revocation | undefined;
  readonly wraps: readonly KnownWrap[];
  /** The key that seals and unseals; undefined if it is revoked or has expired. */
  readonly held: DataKey | undefined;
  /** Authenticates facts of the ring; undefined for a key that was never unwrapped. */
  readonly authenticator: RingAuthenticator | undefined;
  /** The monotonic time from which this member seals with the key: later for a planned key that was written late. */
  readonly sealsFromSteadyMs: number;
  /**
   * Whether the key belongs to a ring that this member left for an older one: it unseals its own tokens, and is never
   * written again.
   */
  readonly isLeft: boolean;
}

/**
 * A member's view of the ring at one moment: immutable, and swapped by a single assignment, so that no seal or
 * unseal sees half of a change.
 */
export interface RingSnapshot {
  /** Oldest first by (activates, id). */
  readonly keys: readonly RingKey[];
  readonly byId: ReadonlyMap<string, RingKey>;
  /** Entries that are vouched for but not unwrapped yet. They are kept in the document, but not used. */
  readonly carried: readonly RingEntry[];
  /**
   * Entries that are vouched for, but corrupt or without a wrap by this member's wrappers. They are kept in the
   * document.
   */
  readonly unreadable: readonly RingEntry[];
}

/** Maximum number of entries of a document that are kept although they could not be unwrapped. */
const MAX_CARRIED = 4;

export function createSnapshot(
  keys: Iterable<RingKey>,
  carried: readonly RingEntry[] = [],
  unreadable: readonly RingEntry[] = [],
): RingSnapshot {
  const sorted = [...keys].map((key) => Object.freeze(key)).toSorted(compareAge);
  return Object.freeze({
    keys: Object.freeze(sorted),
    byId: new Map(sorted.map((key) => [key.id, key])),
    carried: Object.freeze(carried.slice(0, MAX_CARRIED)),
    unreadable: Object.freeze(unreadable.slice(0, Math.max(0, MAX_CARRIED - carried.length))),
  });
}

/** The same snapshot with further keys. Each of them replaces an earlier record with the same id. */
export function withKeys(known: RingSnapshot, keys: readonly RingKey[]): RingSnapshot {
  const byId = new Map([...known.keys, ...keys].map((key) => [key.id, key]));
  return createSnapshot(byId.values(), known.carried, known.unreadable);
}

/** The snapshot after revocations; entries that were not unwrapped are replaced by them. */
export function withRevoked(known: RingSnapshot, revoked: readonly RingKey[]): RingSnapshot {
  const { keys, carried, unreadable } = withKeys(known, revoked);
  const left = [carried, unreadable].map((entries) =>
    entries.filter(({ id }) => !revoked.some((key) => key.id === id)),
  );
  return createSnapshot(keys, ...left);
}

/** A key that can be used: this member holds its bytes. */
export type UsableKey = RingKey & { readonly held: DataKey };

/**
 * The key that seals at `nowMs`: the newest key that is held and whose times allow it, but never a key older than
 * `lastSealed`, the id of the key that sealed last, because a clock that stepped back must not bring an old key back.
 * The key that sealed last therefore keeps sealing even if such a clock shows that it is not active yet; otherwise no
 * key could seal. If that key has been revoked, this limit does not apply: its successor is active at once, although
 * the successor's times may make it the older key.
 *
 * A planned key that was written late is not used while another key may seal, until its delay has passed.
 */
export function sealingKeyOf(
  snapshot: RingSnapshot,
  nowMs: number,
  steadyMs: number,
  lastSealed: string | undefined,
): UsableKey | undefined {
  const last = snapshot.byId.get(lastSealed ?? '');
  const notBefore = last?.revoked === true ? undefined : last;
  let late: UsableKey | undefined;
  for (let i = snapshot.keys.length - 1; i >= 0; i--) {
    const key = snapshot.keys[i] as RingKey;
    if (notBefore !== undefined && compareAge(key, notBefore) < 0) break;
    if (!isUsable(key) || key.isLeft) continue;
    if (!maySeal(key, key === notBefore ? Math.max(nowMs, key.activates) : nowMs)) continue;
    if (steadyMs >= key.sealsFromSteadyMs || key === notBefore) return key;
    late ??= key;
  }
  return late;
}

/** The keys that must be held to unseal every token of the fleet. */
export function liveKeys(snapshot: RingSnapshot, nowMs: number): readonly RingKey[] {
  return snapshot.keys.filter((key) => mayUnseal(key, nowMs));
}

/** Whether this member can unseal the tokens that others may be sealing now, and their earlier, unexpired tokens. */
export function holdsNewest(
  { keys, carried }: RingSnapshot,
  nowMs: number,
  { tokenLifetimeSeconds, clockSkewSeconds }: ResolvedPolicy,
): boolean {
  const held = keys.filter((key) => isUsable(key) && !key.isLeft);
  const skewMs = clockSkewSeconds * 1_000;
  const tokensLiveMs = tokenLifetimeSeconds * 1_000 + 2 * skewMs;
  // A key that was active at once may have sealed until a planned one, published before it, took its place.
  const isMissed = (entry: KeyTimes): boolean => {
    const newer = held.filter(({ activates }) => activates > entry.activates);
    const lastSealMs = Math.min(entry.sealsUntil, ...newer.map(({ activates }) => activates));
    return entry.activates - skewMs <= nowMs && nowMs < lastSealMs + tokensLiveMs;
  };
  const isUsed = held.some((key) => key.activates <= nowMs && nowMs < key.sealsUntil);
  return isUsed && !carried.some(isMissed);
}

/**
 * For how many milliseconds from `nowMs` there is always a key that may seal. A key that is not unwrapped yet counts only
 * until the emergency wait after its creation has passed.
 */
export function coveredMs({ keys, carried }: RingSnapshot, nowMs: number, policy: ResolvedPolicy): number {
  const mine = keys.filter((key) => !key.isLeft && !key.revoked && isUsable(key));
  const awaited = carried.filter(({ created }) => created + emergencyWaitMs(policy) > nowMs);
  let untilMs = nowMs;
  for (const { activates, sealsUntil } of [...mine, ...awaited].toSorted((a, b) => a.activates - b.activates)) {
    if (activates <= untilMs) untilMs = Math.max(untilMs, sealsUntil);
  }
  return untilMs - nowMs;
}

export function isUsable(key: RingKey): key is UsableKey {
  return key.held !== undefined;
}

/**
 * The part of a key that can be shown: `held` is undefined if the key is not unwrapped, is revoked or has expired.
 */
export type ShownKey = ScheduledKey & { readonly held: DataKey | undefined };

/** The states of all keys, oldest first, including keys that are not unwrapped. */
export function statesOf(
  snapshot: RingSnapshot,
  nowMs: number,
  steadyMs: number,
  lastSealed: string | undefined,
): readonly { readonly key: ShownKey; readonly state: KeyState }[] {
  const sealing = sealingKeyOf(snapshot, nowMs, steadyMs, lastSealed);
  const missing = [...snapshot.carried, ...snapshot.unreadable].filter(({ id }) => !snapshot.byId.has(id));
  const shown = missing.map((entry): ShownKey => ({ ...entry, revoked: false, held: undefined }));
  const keys: readonly ShownKey[] = [...snapshot.keys, ...shown];
  return keys.toSorted(compareAge).map((key) => ({ key, state: stateOf(key, nowMs, sealing) }));
}
