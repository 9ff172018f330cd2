import { MAX_DOCUMENT_BYTES } from '../contracts/ring-store.ts';
import {
  areRightAncestors,
  isCertified,
  isRightWrap,
  newestFirst,
  rightCertificates,
  rightVouchers,
  type Signer,
  type Signers,
  vouchersBy,
} from './certificates.ts';
import {
  encodeDocument,
  MAX_CERTIFICATES,
  MAX_VOUCHERS,
  MAX_WRAPS,
  type Macs,
  type Revocation,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from './document.ts';
import {
  certificatesFor,
  firstOf,
  hasSameTimes,
  isSameFact,
  isTombstone,
  type Judgement,
  signersOf,
  tombstone,
} from './facts.ts';
import { MAX_RING_KEYS } from './policy.ts';
import { compareAge } from './schedule.ts';
import type { KnownWrap, RingKey, RingSnapshot } from './snapshot.ts';

/* The document that a member writes, and the facts that a stored document lacks. */

/**
 * Whether a document lacks a fact that this member knows and that still matters. If an entry is full of vouchers or
 * wraps that this member cannot check, one that it can check is enough: two members must not overwrite each other's
 * documents endlessly. `keys` are the keys to look for.
 */
export function lacks(
  document: RingDocument,
  known: RingSnapshot,
  judgement: Judgement,
  keys: readonly RingKey[] = known.keys,
): boolean {
  const { ring, nowMs, past } = judgement;
  const signers = signersOf(known.keys, past);
  const byId = new Map(document.entries.map((entry) => [entry.id, entry]));
  return keys.some((key) => {
    if (key.isLeft || nowMs >= key.opensUntil) return false;
    const entry = byId.get(key.id);
    if (isTombstone(key)) {
      // Only its revocation matters, and nothing is lost with an entry that no member can use.
      return entry !== undefined && lacksRevocation(ring, key, entry, signers);
    }
    if (entry === undefined || !hasSameTimes(key, entry)) return true;
    return (
      lacksRevocation(ring, key, entry, signers) ||
      lacksVouchers(ring, key, entry, signers) ||
      lacksAncestors(ring, key, entry) ||
      lacksWrap(key, entry)
    );
  });
}

function lacksRevocation(ring: string, key: RingKey, entry: RingEntry, signers: Signers): boolean {
  if (key.revocation === undefined) return false;
  if (entry.revoked === undefined) return true;
  if (key.authenticator !== undefined) return !rightCertificates(ring, key.id, entry.revoked, signers).has(key.id);
  // The stored revocation is wrong, and has replaced a correct one.
  return !isCertified(ring, key, entry.revoked, signers) && isCertified(ring, key, key.revocation, signers);
}

function lacksVouchers(ring: string, key: RingKey, entry: RingEntry, signers: Signers): boolean {
  const right = rightVouchers(ring, entry, signers);
  const missing = [...key.vouchers.keys()].some((id) => !right.has(id));
  // A voucher that is known to be wrong does not count.
  const taken = [...entry.vouchers.keys()].filter((id) => right.has(id) || !signers.has(id)).length;
  return missing && (taken < MAX_VOUCHERS || right.size === 0);
}

function lacksAncestors(ring: string, { ancestors, authenticator }: RingKey, entry: RingEntry): boolean {
  if (ancestors === undefined || authenticator === undefined) return false;
  return !areRightAncestors(ring, entry.ancestors, authenticator);
}

function lacksWrap(key: RingKey, entry: RingEntry): boolean {
  const missing = key.wraps.filter((wrap) => !entry.wraps.some((other) => isSameFact(wrap, other)));
  return missing.some((wrap) => wrap.isUnwrapped) || (missing.length > 0 && entry.wraps.length < MAX_WRAPS);
}

/**
 * The keys that a member writes: not those of a ring that it has left. A key that only its pin refuses is in use
 * elsewhere, but a writer without any key can invent such entries: they are written only if a known key names them as
 * ancestors or vouches for them.
 */
export function writtenKeys(ring: string, known: RingSnapshot, past: Signers): readonly RingKey[] {
  const signers = signersOf(known.keys, past);
  const named = new Set(known.keys.flatMap((key) => (key.isLeft ? [] : (key.ancestors?.ids ?? []))));
  const isLinked = (key: RingKey): boolean => named.has(key.id) || rightVouchers(ring, key, signers).size > 0;
  return known.keys.filter((key) => !key.isLeft && (!isOnlyPinnedOut(key) || isLinked(key)));
}

function isOnlyPinnedOut(key: RingKey): boolean {
  return isTombstone(key) && key.revocation === undefined;
}

/**
 * The document with all facts that a member knows, to replace `read`. While there is room, it keeps the certificates
 * of `read` that only other members can check. Over a limit, the oldest revocations are left out first, then entries
 * that are merely carried, then all tombstones, then wraps that this member neither made nor unwrapped, then further
 * certificates and keys that only the pin of this member refuses, but never a key that it may use.
 */
export function documentOf(
  known: RingSnapshot,
  read: RingDocument | undefined,
  options: {
    readonly ring: string;
    readonly past: Signers;
    readonly isRemovable: (key: RingKey) => boolean;
  },
): RingDocument {
  const { ring, past, isRemovable } = options;
  const signers = signersOf(known.keys, past);
  const byId = new Map(read?.entries.map((entry) => [entry.id, entry]));
  const kept = writtenKeys(ring, known, past).filter((key) => !isRemovable(key));
  const current = signersOf(kept, new Map());
  for (let spared = 0; ; spared++) {
    const carried = spared >= 1 ? [] : [...known.carried, ...known.unreadable];
    // A key that only this member's pin refuses is in use elsewhere.
    const inUse = kept.filter(
      (key) => key.revocation === undefined && !(spared >= MOST_SPARED && isOnlyPinnedOut(key)),
    );
    const room = Math.max(0, MAX_RING_KEYS - inUse.length - carried.length);
    const links = linksBetween(inUse, known.keys);
    const told = kept.flatMap((key) => {
      const { revocation } = key;
      if (revocation === undefined || (spared >= 2 && isTombstone(key))) return [];
      const isDoubtful = isTombstone(key) && !isCertified(ring, key, revocation, current);
      return [{ key, at: revocation.at, need: needOf(key, links, byId, isDoubtful) }];
    });
    told.sort((a, b) => b.need - a.need || b.at - a.at || newestFirst(a.key, b.key));
    const keys = [...inUse, ...told.slice(0, room).map(({ key }) => key)].toSorted(compareAge);
    const mine = keys.map((key) => {
      const there = byId.get(key.id);
      const rest = carried.find(({ id }) => id === key.id) ?? there;
      return entryOf(ring, withRest(key, rest), there, signers, spared);
    });
    const entries = [...mine, ...carried.filter(({ id }) => !keys.some((key) => key.id === id))];
    const document = { ring, claim: undefined, entries };
    const fits = entries.length <= MAX_RING_KEYS && encodeDocument(document).length <= MAX_DOCUMENT_BYTES;
    if (fits || spared >= MOST_SPARED) return document;
  }
}

/**
 * The priority of a revoked key in a full document: highest if a starting member needs the key to see that the keys in
 * use belong to one ring; next if another writer wrote the key as live, and must read its revocation; next if the
 * document already has the key, so that members do not overwrite each other's documents. No member uses a key that all
 * of them know to be revoked, or that none of them knows. Any other key comes before a doubtful one, which was never
 * unwrapped and whose revocation only expired keys certify. An attacker who stole an expired key can make any number of
 * doubtful keys; members that started later ignore them.
 */
function needOf(
  { id }: RingKey,
  links: ReadonlySet<string>,
  read: ReadonlyMap<string, RingEntry>,
  isDoubtful: boolean,
): number {
  if (links.has(id)) return 5;
  const there = read.get(id);
  if (there !== undefined && there.revoked === undefined) return 4;
  return (isDoubtful ? 0 : 2) + (there === undefined ? 0 : 1);
}

/**
 * The revoked ancestors that link keys in use: for each key that names no other key in use as its ancestor, as few as
 * are needed to reach one. The oldest key in use needs none.
 */
function linksBetween(inUse: readonly RingKey[], known: readonly RingKey[]): ReadonlySet<string> {
  const used = new Set(inUse.map(({ id }) => id));
  const sorted = known.toSorted(newestFirst);
  const links = new Set<string>();
  for (const key of inUse.toSorted(newestFirst).slice(0, -1)) {
    let ids = key.ancestors?.ids;
    while (ids?.some((id) => used.has(id)) === false) {
      const link = sorted.findLast(({ id }) => ids?.includes(id));
      if (link === undefined || links.has(link.id)) break;
      links.add(link.id);
      ids = link.ancestors?.ids;
    }
  }
  return links;
}

/** If only the revocation of a key is known, everything else stays as another member wrote it. */
function withRest(key: RingKey, read: RingEntry | undefined): RingKey {
  return isTombstone(key) && read !== undefined ? tombstone(read, key.revocation) : key;
}

/**
 * The last round of {@link documentOf}. Round 0 writes everything. Each further round also leaves something out: carried
 * entries, tombstones, wraps and, in the last round, vouchers, certificates and keys that only the pin refuses.
 */
const MOST_SPARED = 4;

function entryOf(ring: string, key: RingKey, read: RingEntry | undefined, signers: Signers, spared: number): RingEntry {
  const { id, created, activates, sealsUntil, opensUntil } = key;
  const theirs = read !== undefined && hasSameTimes(key, read) ? read : undefined;
  const isSparing = spared >= MOST_SPARED;
  const known = firstOf(MAX_VOUCHERS, key.vouchers, isSparing ? undefined : theirs?.vouchers);
  // Vouchers by the ancestors are added again if they were removed from the store.
  const isNamed = ({ id: signer }: Signer): boolean => key.ancestors?.ids.includes(signer) === true;
  const ancestral = new Map([...signers].filter(([, signer]) => isNamed(signer)));
  const all = isSparing ? known : vouchersBy(ring, key, ancestral, known);
  const vouchers = inOrderOf(all, theirs?.vouchers);
  const revoked = revocationOf(ring, key, theirs?.revoked, signers, isSparing);
  const wraps = spared >= 3 ? withoutForeignWraps(key.wraps) : wrapsOf(ring, key, theirs?.wraps ?? []);
  // Ancestors that this member does not know are kept as they were read, because other members may know them.
  const ancestors = key.ancestors ?? theirs?.ancestors;
  return { id, created, activates, sealsUntil, opensUntil, vouchers, ancestors, revoked, wraps };
}

/** The revocation of a key as it is written if the document has `theirs`. */
function revocationOf(
  ring: string,
  key: RingKey,
  theirs: Revocation | undefined,
  signers: Signers,
  isSparing: boolean,
): Revocation | undefined {
  const mine = key.revocation;
  if (mine === undefined) {
    // A claimed revocation that only others can check is kept.
    const isUnchecked = theirs !== undefined && [...theirs.by.keys()].some((id) => !signers.has(id));
    return isUnchecked ? theirs : undefined;
  }
  const others = theirs?.at === mine.at ? theirs.by : undefined;
  if (isTombstone(key)) {
    // The times of a key that was never unwrapped are not authenticated, and decide whether its certifier is newer:
    // this member adds no certificate, because one would be valid for any times. Nor can it check the key's own
    // certificate.
    if (theirs !== undefined && isCertified(ring, key, theirs, signers)) return theirs;
    return { at: mine.at, by: firstOf(MAX_CERTIFICATES, mine.by, others) };
  }
  const all = certificatesFor(ring, key, mine.at, signers, firstOf(MAX_CERTIFICATES, mine.by, others));
  return { at: mine.at, by: inOrderOf(isSparing ? firstOf(2, all) : all, theirs?.by) };
}

/** Keeps the order of the document: the same set in a different order would be written repeatedly. */
function inOrderOf(macs: Macs, read: Macs = new Map()): Macs {
  return new Map([...read].filter(([id]) => macs.has(id)).concat([...macs]));
}

/**
 * The wraps to write. If there is no room for all of them, those that this member made or unwrapped come first, then
 * valid ones in the order of the document. Each member moves its own wraps to the front, so the wraps that other
 * members unwrapped are kept, and no two members overwrite each other's documents.
 */
function wrapsOf(ring: string, { wraps, authenticator }: RingKey, there: readonly RingWrap[]): readonly RingWrap[] {
  if (authenticator === undefined || wraps.length < MAX_WRAPS) return wraps;
  const right = there.filter((wrap) => isRightWrap(ring, wrap, authenticator));
  const all = [...wraps.filter(({ isUnwrapped }) => isUnwrapped), ...right, ...wraps];
  return all.filter((wrap, i) => all.findIndex((other) => isSameFact(other, wrap)) === i).slice(0, MAX_WRAPS);
}

/** The wraps that this member made or unwrapped; the first wrap if there is none, because an entry has at least one. */
function withoutForeignWraps(wraps: readonly KnownWrap[]): readonly KnownWrap[] {
  const own = wraps.filter((wrap) => wrap.isUnwrapped);
  return own.length === 0 ? wraps.slice(0, 1) : own;
}
