import {
  areRightAncestors,
  isCertified,
  isVouched,
  newestFirst,
  rightCertificates,
  rightVouchers,
  type Signer,
  type Signers,
} from './certificates.ts';
import { MAX_CERTIFICATES, MAX_VOUCHERS, type Revocation, type RingDocument, type RingEntry } from './document.ts';
import {
  firstOf,
  hasEnded,
  hasSameTimes,
  isFromTheFuture,
  isTombstone,
  type Judgement,
  moreWraps,
  signersOf,
  tombstone,
} from './facts.ts';
import { MAX_RING_KEYS } from './policy.ts';
import type { KeyTimes } from './schedule.ts';
import { createSnapshot, type RingKey, type RingSnapshot, withKeys } from './snapshot.ts';

/* The facts that a member adopts from a document. */

/**
 * The facts that a member with keys adopts from a document before any unwrap: revocations, wraps and vouchers of known
 * keys, and tombstones. A known fact is never lost or changed. `wanted` contains the entries to unwrap: unknown ones
 * that a known key vouches for, newest first.
 */
export function learn(
  known: RingSnapshot,
  document: RingDocument,
  judgement: Judgement,
): { readonly known: RingSnapshot; readonly wanted: readonly RingEntry[] } {
  const { ring, past } = judgement;
  const keys = new Map(known.byId);
  const entries = document.entries.toSorted(newestFirst);
  const before = signersOf(known.keys, past);
  for (const entry of entries) {
    const key = keys.get(entry.id);
    if (key !== undefined) keys.set(key.id, withWrapsAndVouchers(ring, key, entry, before));
  }
  // Newest first: once a key is known to be revoked, it certifies nothing but its own revocation.
  for (const entry of entries) {
    const key = keys.get(entry.id);
    if (entry.revoked === undefined || key === undefined) continue;
    keys.set(key.id, withRevocation(ring, key, entry.revoked, signersOf(keys.values(), past)));
  }
  const signers = signersOf(keys.values(), past);
  // A member that started from a document without the older keys learns them from their successors.
  const ancestors = new Set([...keys.values()].flatMap((key) => key.ancestors?.ids ?? []));
  const wanted: RingEntry[] = [];
  const candidates = [...entries, ...known.carried, ...known.unreadable];
  const links = linksOf(candidates.filter(({ id }) => !keys.has(id)));
  for (const entry of candidates) {
    const key = keys.get(entry.id);
    // A revoked key may be the only ancestor of a new one.
    const isLink = key?.revocation !== undefined && isTombstone(key) && links.has(entry.id);
    const isKnown = key !== undefined && !isLink && !isWorthUnwrapping(ring, key, entry, signers);
    if (isKnown || wanted.some(({ id }) => id === entry.id) || !isPlausible(entry, judgement)) continue;
    const claims = [entry.revoked, key?.revocation].filter((claim) => claim !== undefined);
    const isKnownAsRevoked = claims.some((claim) => isCertified(ring, entry, claim, signers));
    const isOver = judgement.over?.has(entry.id) === true;
    // An entry that this member's own pin refuses needs no certificate: it is kept for the other members.
    const isPinnedOut = judgement.isPinnedOut(entry);
    const isOurs = key?.authenticator !== undefined || ancestors.has(entry.id);
    const vouched = !isPinnedOut && (isOurs || isVouched(ring, entry, signers));
    if (isKnownAsRevoked && key === undefined) keys.set(entry.id, tombstone(entry, entry.revoked));
    else if (isPinnedOut && key === undefined) keys.set(entry.id, tombstone(entry, undefined));
    else if (vouched && (isLink || !(isKnownAsRevoked || isOver))) wanted.push(entry);
  }
  const isSame = keys.size === known.keys.length && known.keys.every((key) => keys.get(key.id) === key);
  const tombstones = [...keys.values()].filter(isTombstone);
  // As many tombstones are kept as a document has room for besides the keys in use.
  const inUse = [...keys.values()].filter(({ revocation }) => revocation === undefined).length;
  const room = Math.max(0, MAX_RING_KEYS - inUse);
  const kept = tombstones.filter((key) => !hasEnded(key, judgement)).toSorted(newestFirst);
  for (const key of kept.slice(room)) keys.delete(key.id);
  return { known: isSame ? known : createSnapshot(keys.values(), known.carried, known.unreadable), wanted };
}

/** The ids of the ancestors that the keys name and whose vouchers they have. */
function linksOf(entries: readonly RingEntry[]): ReadonlySet<string> {
  const used = entries.filter(({ revoked }) => revoked === undefined);
  return new Set(used.flatMap(({ ancestors, vouchers }) => ancestors?.ids.filter((id) => vouchers.has(id)) ?? []));
}

/**
 * Whether to unwrap a known key. The times of a tombstone were never authenticated: another entry with its id may be
 * the genuine one. If all certifiers of a tombstone have been revoked since, other members accept only a certificate by
 * the key itself. A key that expired according to a clock that was later set back is needed again.
 */
function isWorthUnwrapping(ring: string, key: RingKey, entry: RingEntry, signers: Signers): boolean {
  if (!isTombstone(key)) return key.held === undefined && !key.revoked && hasSameTimes(key, entry);
  return (
    !hasSameTimes(key, entry) || (key.revocation !== undefined && !isCertified(ring, key, key.revocation, signers))
  );
}

/**
 * Whether a key that was unwrapped belongs to this ring: linked to a known key by a voucher and an ancestor, whichever
 * of the two keys is older. A member that an attacker deceived at its start must never hold keys of the genuine ring
 * alongside the attacker's, because it would use them to vouch for the attacker's keys.
 */
export function belongs(
  key: RingKey,
  entry: RingEntry,
  document: RingDocument,
  known: RingSnapshot,
  judgement: Judgement,
): boolean {
  const { ring, past } = judgement;
  if (known.byId.get(key.id)?.authenticator !== undefined) return true;
  const own = { ...entry, ancestors: key.ancestors };
  if (isVouched(ring, own, signersOf(known.keys, past))) return true;
  const asSigner = signersOf([key], new Map());
  const isNamedBy = (heir: RingKey): boolean => !heir.isLeft && heir.ancestors?.ids.includes(key.id) === true;
  return known.keys.filter(isNamedBy).some((heir) => {
    const there = document.entries.find(({ id }) => id === heir.id);
    return there !== undefined && hasSameTimes(heir, there) && rightVouchers(ring, there, asSigner).size > 0;
  });
}

/**
 * The known keys, with keys that were unwrapped since. If one of these was already known to be revoked, its revocation
 * is checked again, now that the bytes of the key are known.
 */
export function withUnwrapped(known: RingSnapshot, keys: readonly RingKey[], { ring, past }: Judgement): RingSnapshot {
  // A certifier that is revoked now may not have been revoked yet when that revocation was learned.
  const all = signersOf([...known.keys, ...keys], past);
  const signers = new Map([...all].map(([id, signer]) => [id, { ...signer, revoked: false }]));
  const checked = keys.map((key) => {
    const claim = known.byId.get(key.id)?.revocation;
    return claim === undefined ? key : withRevocation(ring, key, claim, signers);
  });
  return withKeys(known, checked);
}

/** Whether the times of an entry can belong to a key in use. */
function isPlausible(entry: KeyTimes, judgement: Judgement): boolean {
  return !hasEnded(entry, judgement) && !isFromTheFuture(entry, judgement);
}

/** A known key with the revocation that a document claims for it, if that is certified; otherwise `key` itself. */
function withRevocation(ring: string, key: RingKey, claim: Revocation, signers: Signers): RingKey {
  if (key.revoked && key.revocation === undefined) return key;
  if (key.revocation !== undefined) return withCertificates(ring, key, key.revocation, claim, signers);
  if (!isCertified(ring, key, claim, signers)) return key;
  return { ...key, revoked: true, held: undefined, revocation: claim };
}

/**
 * Of two records of one revocation, chooses the one with the revoked key's own certificate, and adds further
 * certificates if there is room.
 */
function withCertificates(ring: string, key: RingKey, mine: Revocation, theirs: Revocation, signers: Signers): RingKey {
  const right = rightCertificates(ring, key.id, theirs, signers);
  if (mine.at !== theirs.at) {
    const isBetter = !mine.by.has(key.id) && right.has(key.id);
    return isBetter ? { ...key, revocation: theirs } : key;
  }
  const isNew = [...right.keys()].some((id) => !mine.by.has(id));
  return isNew ? { ...key, revocation: { at: mine.at, by: firstOf(MAX_CERTIFICATES, right, mine.by) } } : key;
}

function withWrapsAndVouchers(ring: string, key: RingKey, entry: RingEntry, signers: Signers): RingKey {
  const { authenticator } = key;
  if (authenticator === undefined) return key;
  const wraps = moreWraps(ring, key.wraps, entry.wraps, authenticator);
  const unknown = new Map([...entry.vouchers].filter(([id]) => !key.vouchers.has(id)));
  const right = hasSameTimes(key, entry) ? rightVouchers(ring, { ...entry, vouchers: unknown }, signers) : undefined;
  const vouchers = firstOf(MAX_VOUCHERS, key.vouchers, right);
  const learnsAncestors = key.ancestors === undefined && areRightAncestors(ring, entry.ancestors, authenticator);
  if (wraps === key.wraps && vouchers.size === key.vouchers.size && !learnsAncestors) return key;
  return { ...key, wraps, vouchers, ...(learnsAncestors && { ancestors: entry.ancestors }) };
}

/**
 * Groups of keys linked by valid vouchers of the ancestors they name: a ring is one such group. Each group has its
 * newest key first.
 */
export function lineagesOf(ring: string, keys: readonly { entry: RingEntry; signer: Signer }[]): readonly string[][] {
  const signers: Signers = new Map(keys.map(({ signer }) => [signer.id, signer]));
  const groupOf = new Map(keys.map(({ entry }) => [entry.id, new Set([entry.id])]));
  for (const { entry, signer } of keys) {
    if (!areRightAncestors(ring, entry.ancestors, signer.authenticator)) continue;
    // A link needs a voucher and a matching ancestor: an attacker's key can provide either of them, but not both.
    const linked = [...rightVouchers(ring, entry, signers).keys()].filter((id) => entry.ancestors?.ids.includes(id));
    const joined = new Set([entry.id, ...linked].flatMap((id) => [...(groupOf.get(id) as ReadonlySet<string>)]));
    for (const id of joined) groupOf.set(id, joined);
  }
  const sorted = keys.map(({ entry }) => entry).toSorted(newestFirst);
  return [...new Set(groupOf.values())].map((group) => sorted.map(({ id }) => id).filter((id) => group.has(id)));
}
