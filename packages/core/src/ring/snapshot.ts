import type { HeldKey } from '../key-cache.ts';
import type { RingDocument, RingEntry } from './document.ts';
import { compareAge, type KeyState, mayOpen, maySeal, type ScheduledKey, stateOf } from './schedule.ts';

/** A key of the ring as this member sees it. */
export interface RingKey extends ScheduledKey {
  readonly entry: RingEntry;
  /** What seals and opens; undefined while it could not be unwrapped, and for a revoked key. */
  readonly held: HeldKey | undefined;
  /** What signs and checks ring documents: the held key, or what is left of a revoked one. */
  readonly signer: HeldKey | undefined;
}

/**
 * The ring at one moment: immutable, and swapped by a single assignment, so that a seal or an unseal never sees half
 * of a change.
 */
export interface RingSnapshot {
  readonly document: RingDocument;
  /** The store's revision of the document; undefined for one that is not stored any more. */
  readonly revision: string | undefined;
  /** Oldest first by (activates, id). */
  readonly keys: readonly RingKey[];
  readonly byId: ReadonlyMap<string, RingKey>;
}

export function createSnapshot(
  document: RingDocument,
  revision: string | undefined,
  heldOf: (entry: RingEntry) => HeldKey | undefined,
  isRevoked: (entry: RingEntry) => boolean,
): RingSnapshot {
  const keys = document.entries
    .map((entry): RingKey => {
      const signer = heldOf(entry);
      const revoked = isRevoked(entry);
      if (revoked) signer?.limitToRing();
      const { id, created, activates, sealsUntil, opensUntil } = entry;
      const held = revoked ? undefined : signer;
      return Object.freeze({ id, created, activates, sealsUntil, opensUntil, revoked, entry, held, signer });
    })
    .toSorted(compareAge);
  return Object.freeze({
    document,
    revision,
    keys: Object.freeze(keys),
    byId: new Map(keys.map((key) => [key.id, key])),
  });
}

/** A key that can be used: its bytes are here. */
export type UsableKey = RingKey & { readonly held: HeldKey };

/**
 * The key that seals at `nowMs`: the newest that is held and whose times allow it, but never an older one than
 * `lastSealed`, the id of the key that sealed last: a clock that stepped back must not bring an old key back. So the
 * last one itself goes on sealing though such a clock says that it is not active yet; else nothing could. A key that was
 * revoked since binds nothing: its successor is active at once, so it may well be the older by its times.
 */
export function sealingKeyOf(
  snapshot: RingSnapshot,
  nowMs: number,
  lastSealed: string | undefined,
): UsableKey | undefined {
  const last = lastSealed === undefined ? undefined : snapshot.byId.get(lastSealed);
  const notBefore = last?.revoked === true ? undefined : last;
  for (let i = snapshot.keys.length - 1; i >= 0; i--) {
    const key = snapshot.keys[i] as RingKey;
    if (notBefore !== undefined && compareAge(key, notBefore) < 0) return undefined;
    if (isUsable(key) && maySeal(key, key === notBefore ? Math.max(nowMs, key.activates) : nowMs)) return key;
  }
  return undefined;
}

/** The keys that must be held to open whatever the fleet sealed. */
export function liveKeys(snapshot: RingSnapshot, nowMs: number): readonly RingKey[] {
  return snapshot.keys.filter((key) => mayOpen(key, nowMs));
}

export function isUsable(key: RingKey): key is UsableKey {
  return key.held !== undefined;
}

/** The states of all keys, oldest first. */
export function statesOf(
  snapshot: RingSnapshot,
  nowMs: number,
  lastSealed: string | undefined,
): readonly { readonly key: RingKey; readonly state: KeyState }[] {
  const sealing = sealingKeyOf(snapshot, nowMs, lastSealed);
  return snapshot.keys.map((key) => ({ key, state: stateOf(key, nowMs, sealing?.id) }));
}
