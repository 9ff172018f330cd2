import type { RingContent, RingEntry } from './document.ts';
import { MAX_RING_KEYS, type ResolvedPolicy } from './policy.ts';
import { removableFrom } from './schedule.ts';
import { unionOfWraps } from './wraps.ts';

/**
 * Whether `seen` lacks a live key or a revocation that `known` has. A writer removes a key only when even the slowest
 * clock of the fleet has passed its end, so a live key that is missing was lost, not removed.
 */
export function lacks(seen: RingContent, known: RingContent, nowMs: number): boolean {
  const byId = new Map(seen.entries.map((entry) => [entry.id, entry]));
  return known.entries.some((entry) => {
    if (nowMs >= entry.opensUntil) return false;
    const there = byId.get(entry.id);
    return there === undefined || (entry.revoked !== undefined && there.revoked === undefined);
  });
}

/**
 * Everything that either document knows: all keys, all revocations, all wraps. The epoch is the higher one. Times of
 * one key id cannot differ: they are bound into its wraps, and the key's own document is preferred.
 */
export function union(known: RingContent, seen: RingContent): RingContent {
  const byId = new Map(known.entries.map((entry) => [entry.id, entry]));
  for (const entry of seen.entries) {
    const mine = byId.get(entry.id);
    byId.set(entry.id, mine === undefined ? entry : mergeEntry(mine, entry));
  }
  return {
    ring: known.ring,
    epoch: Math.max(known.epoch, seen.epoch),
    entries: [...byId.values()],
    unknown: { ...known.unknown, ...seen.unknown },
  };
}

/** The entries without those whose life is over on every clock. */
export function withoutRemovable(
  entries: readonly RingEntry[],
  nowMs: number,
  policy: ResolvedPolicy,
): readonly RingEntry[] {
  return entries.filter((entry) => nowMs < removableFrom(entry, policy));
}

export function isFull(entries: readonly RingEntry[]): boolean {
  return entries.length >= MAX_RING_KEYS;
}

function mergeEntry(mine: RingEntry, theirs: RingEntry): RingEntry {
  const revoked =
    mine.revoked === undefined || theirs.revoked === undefined
      ? (mine.revoked ?? theirs.revoked)
      : Math.min(mine.revoked, theirs.revoked);
  return {
    ...mine,
    revoked,
    wraps: unionOfWraps(mine.wraps, theirs.wraps),
    unknown: { ...mine.unknown, ...theirs.unknown },
  };
}
