import type { HeldKey } from '../key-cache.ts';
import { MAX_DOCUMENT_BYTES } from '../ring-store.ts';
import {
  areRightAncestors,
  certificateOf,
  isCertified,
  isNewer,
  isRightWrap,
  isVouched,
  newestFirst,
  rightCertificates,
  rightVouchers,
  type Signer,
  type Signers,
  vouchersBy,
  wrapMacOf,
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
  sameWrap,
} from './document.ts';
import { MAX_RING_KEYS } from './policy.ts';
import { compareAge, type KeyTimes } from './schedule.ts';
import { createSnapshot, type KnownWrap, type RingKey, type RingSnapshot, withKeys } from './snapshot.ts';

/** How far `created` may be ahead of what the clocks allow: each key of a full ring is a second newer than the last. */
const CREATED_TOLERANCE_MS: number = MAX_RING_KEYS * 1_000;

/** What judging a document needs to know beside the document. */
export interface Judgement {
  readonly ring: string;
  /** By the member's checked clock. */
  readonly nowMs: number;
  /** Whether that clock is not to be trusted now: by an unconfirmed time nothing has ended. */
  readonly isUnconfirmed?: boolean;
  readonly clockSkewMs: number;
  /** Keys that have ended and can still certify, by id. */
  readonly past: Signers;
  /** Ids of keys that were known to be revoked when their life was over: they are never unwrapped again. */
  readonly over?: ReadonlySet<string>;
  readonly isPinnedOut: (times: KeyTimes) => boolean;
}

/** Everybody who can certify something to this member. */
export function signersOf(keys: Iterable<RingKey>, past: Signers): Signers {
  const signers = new Map(past);
  for (const { id, created, opensUntil, revoked, isLeft, signer } of keys) {
    if (signer !== undefined) signers.set(id, { id, created, opensUntil, revoked, isLeft, key: signer });
  }
  return signers;
}

/** A key that was unwrapped, as its entry certifies it. `opened` is the wrap that the bytes came from. */
export function unwrappedKey(
  ring: string,
  entry: RingEntry,
  held: HeldKey,
  opened: RingWrap | undefined,
  sealsFromSteadyMs: number,
): RingKey {
  const { id, created, activates, sealsUntil, opensUntil } = entry;
  // A MAC follows from the key and the wrap: for what was opened it is made anew, whatever the document says.
  const proved: readonly KnownWrap[] =
    opened === undefined ? [] : [{ ...opened, mac: wrapMacOf(ring, opened, held), isProved: true }];
  return {
    id,
    created,
    activates,
    sealsUntil,
    opensUntil,
    revoked: false,
    revocation: undefined,
    vouchers: new Map(),
    ancestors: areRightAncestors(ring, entry.ancestors, held) ? entry.ancestors : undefined,
    wraps: moreWraps(ring, proved, entry.wraps, held),
    held,
    signer: held,
    sealsFromSteadyMs,
    isLeft: false,
  };
}

/** A key that is known to be revoked and is never unwrapped; without `revocation`, one that this member's pin refuses. */
function tombstone(entry: RingEntry, revocation: Revocation | undefined): RingKey {
  const { id, created, activates, sealsUntil, opensUntil, vouchers } = entry;
  const wraps = entry.wraps.map((wrap) => ({ ...wrap, isProved: false }));
  const times = { created, activates, sealsUntil, opensUntil };
  const nothing = { held: undefined, signer: undefined, sealsFromSteadyMs: Number.POSITIVE_INFINITY, isLeft: false };
  return { id, ...times, revoked: true, revocation, vouchers, wraps, ...nothing };
}

/** The keys that a revocation can be meant for: known ones, and those that could not be unwrapped or that a pin refuses. */
export function revocable({ keys, carried, unreadable, byId }: RingSnapshot): readonly RingKey[] {
  const missing = [...carried, ...unreadable].filter(({ id }) => !byId.has(id));
  const known = keys.filter((key) => !key.isLeft && key.revocation === undefined);
  return [...known, ...missing.map((entry) => tombstone(entry, undefined))];
}

/** Whether a key is known only for being revoked. */
export function isTombstone(key: RingKey): boolean {
  return key.signer === undefined;
}

/**
 * What a member that knows keys learns of a document by itself, before any unwrap: revocations, wraps and vouchers of
 * what it knows, and tombstones. Monotone: nothing known is lost or changed. `wanted` are the entries that are vouched for
 * and not known, newest first; they are worth an unwrap.
 */
export function learn(
  known: RingSnapshot,
  document: RingDocument,
  judgement: Judgement,
): { readonly known: RingSnapshot; readonly wanted: readonly RingEntry[] } {
  const { ring, past } = judgement;
  const keys = new Map(known.byId);
  const entries = document.entries.toSorted(newestFirst);
  for (const entry of entries) {
    const key = keys.get(entry.id);
    if (key?.signer !== undefined) keys.set(key.id, withWrapsAndVouchers(key, entry, judgement, keys));
  }
  // Newest first: once a key is known to be revoked it certifies nothing but its own revocation.
  for (const entry of entries) {
    const key = keys.get(entry.id);
    if (entry.revoked === undefined || key === undefined) continue;
    const learned = withRevocation(ring, key, entry.revoked, signersOf(keys.values(), past));
    if (learned !== key) keys.set(key.id, learned);
  }
  const signers = signersOf(keys.values(), past);
  // A member that started on a document without the older keys learns them by what their successors say.
  const ancestors = new Set([...keys.values()].flatMap((key) => key.ancestors?.ids ?? []));
  const wanted: RingEntry[] = [];
  const candidates = [...entries, ...known.carried, ...known.unreadable];
  const links = linksOf(candidates.filter(({ id }) => !keys.has(id)));
  for (const entry of candidates) {
    const key = keys.get(entry.id);
    // A revoked key may be the only one that a new one comes after.
    const isLink = key?.revocation !== undefined && isTombstone(key) && links.has(entry.id);
    const isKnown = key !== undefined && !isLink && !isWorthUnwrapping(ring, key, entry, signers);
    if (isKnown || wanted.some(({ id }) => id === entry.id) || !isPlausible(entry, judgement)) continue;
    const claims = [entry.revoked, key?.revocation].filter((claim) => claim !== undefined);
    const isKnownAsRevoked = claims.some((claim) => isCertified(ring, entry, claim, signers));
    const isOver = judgement.over?.has(entry.id) === true;
    // What this member's own pin refuses needs no proof: it is kept for the others.
    const isPinnedOut = judgement.isPinnedOut(entry);
    const isOurs = key?.signer !== undefined || ancestors.has(entry.id);
    const vouched = !isPinnedOut && (isOurs || isVouched(ring, entry, signers));
    if (isKnownAsRevoked && key === undefined) keys.set(entry.id, tombstone(entry, entry.revoked));
    else if (isPinnedOut && key === undefined) keys.set(entry.id, tombstone(entry, undefined));
    else if (vouched && (isLink || !(isKnownAsRevoked || isOver))) wanted.push(entry);
  }
  const isSame = keys.size === known.keys.length && known.keys.every((key) => keys.get(key.id) === key);
  const tombstones = [...keys.values()].filter(isTombstone);
  // As many as a document has room for beside the keys in use.
  const inUse = [...keys.values()].filter(({ revocation }) => revocation === undefined).length;
  const room = Math.max(0, MAX_RING_KEYS - inUse);
  const kept = tombstones.filter((key) => !hasEnded(key, judgement)).toSorted(newestFirst);
  for (const key of kept.slice(room)) keys.delete(key.id);
  return { known: isSame ? known : createSnapshot(keys.values(), known.carried, known.unreadable), wanted };
}

/** The ids of those that keys name as their ancestors, and have vouchers of. */
function linksOf(entries: readonly RingEntry[]): ReadonlySet<string> {
  const used = entries.filter(({ revoked }) => revoked === undefined);
  return new Set(used.flatMap(({ ancestors, vouchers }) => ancestors?.ids.filter((id) => vouchers.has(id)) ?? []));
}

/**
 * The times of a tombstone were never proved: another entry of that id may be the right one. And where all who certified
 * it are revoked since, only its own certificate tells the others. A key that ended by a clock that was set back since is
 * needed again.
 */
function isWorthUnwrapping(ring: string, key: RingKey, entry: RingEntry, signers: Signers): boolean {
  if (!isTombstone(key)) return key.held === undefined && !key.revoked && hasSameTimes(key, entry);
  return (
    !hasSameTimes(key, entry) || (key.revocation !== undefined && !isCertified(ring, key, key.revocation, signers))
  );
}

/**
 * Whether a key that was unwrapped is one of this ring: linked to a known key by what the two of them say of each other,
 * whichever is the older. A member that somebody caught at its start must never hold keys of the true ring beside his:
 * it would vouch for his with them.
 */
export function belongs(
  key: RingKey,
  entry: RingEntry,
  document: RingDocument,
  known: RingSnapshot,
  judgement: Judgement,
): boolean {
  const { ring, past } = judgement;
  if (known.byId.get(key.id)?.signer !== undefined) return true;
  const own = { ...entry, ancestors: key.ancestors };
  if (isVouched(ring, own, signersOf(known.keys, past))) return true;
  const asSigner = signersOf([key], new Map());
  const isNamedBy = (heir: RingKey): boolean => !heir.isLeft && heir.ancestors?.ids.includes(key.id) === true;
  return known.keys.filter(isNamedBy).some((heir) => {
    const there = document.entries.find(({ id }) => id === heir.id);
    return there !== undefined && hasSameTimes(heir, there) && rightVouchers(ring, there, asSigner).size > 0;
  });
}

/** What is known, with keys that were unwrapped since. What was known to be revoked by its id is judged by its bytes. */
export function withUnwrapped(known: RingSnapshot, keys: readonly RingKey[], { ring, past }: Judgement): RingSnapshot {
  // Who is revoked by now was not when it was learned.
  const all = signersOf([...known.keys, ...keys], past);
  const signers = new Map([...all].map(([id, signer]) => [id, { ...signer, revoked: false }]));
  const judged = keys.map((key) => {
    const claim = known.byId.get(key.id)?.revocation;
    return claim === undefined ? key : withRevocation(ring, key, claim, signers);
  });
  return withKeys(known, judged);
}

/** Whether the times of an entry can be those of a key in use. */
function isPlausible(entry: KeyTimes, judgement: Judgement): boolean {
  return !hasEnded(entry, judgement) && !isFromTheFuture(entry, judgement);
}

function hasEnded({ opensUntil }: KeyTimes, { nowMs, isUnconfirmed }: Judgement): boolean {
  return isUnconfirmed !== true && nowMs >= opensUntil;
}

/** Whether a key was made later than any clock of the fleet can say. */
export function isFromTheFuture({ created }: KeyTimes, { nowMs, clockSkewMs }: Judgement): boolean {
  return created > nowMs + clockSkewMs + CREATED_TOLERANCE_MS;
}

/** A known key with the revocation that a document claims for it, where that is certified; else `key` itself. */
function withRevocation(ring: string, key: RingKey, claim: Revocation, signers: Signers): RingKey {
  if (key.revoked && key.revocation === undefined && isTombstone(key)) return key;
  if (key.revocation !== undefined) return withCertificates(ring, key, key.revocation, claim, signers);
  if (!isCertified(ring, key, claim, signers)) return key;
  return { ...key, revoked: true, held: undefined, revocation: claim };
}

/** Of two statements of one revocation that with the revoked key's own certificate; further certificates where they fit. */
function withCertificates(ring: string, key: RingKey, mine: Revocation, theirs: Revocation, signers: Signers): RingKey {
  const right = rightCertificates(ring, key.id, theirs, signers);
  if (right.size === 0) return key;
  if (mine.at !== theirs.at) {
    const isBetter = !mine.by.has(key.id) && right.has(key.id);
    return isBetter ? { ...key, revocation: theirs } : key;
  }
  const isNew = [...right.keys()].some((id) => !mine.by.has(id));
  return isNew ? { ...key, revocation: { at: mine.at, by: firstOf(MAX_CERTIFICATES, right, mine.by) } } : key;
}

function withWrapsAndVouchers(
  key: RingKey,
  entry: RingEntry,
  { ring, past }: Judgement,
  keys: ReadonlyMap<string, RingKey>,
): RingKey {
  const { signer } = key;
  if (signer === undefined) return key;
  const wraps = moreWraps(ring, key.wraps, entry.wraps, signer);
  let { vouchers } = key;
  if (hasSameTimes(key, entry) && [...entry.vouchers.keys()].some((id) => !key.vouchers.has(id))) {
    const right = rightVouchers(ring, entry, signersOf(keys.values(), past));
    if ([...right.keys()].some((id) => !key.vouchers.has(id))) vouchers = firstOf(MAX_VOUCHERS, key.vouchers, right);
  }
  const learnsAncestors = key.ancestors === undefined && areRightAncestors(ring, entry.ancestors, signer);
  if (wraps === key.wraps && vouchers === key.vouchers && !learnsAncestors) return key;
  return { ...key, wraps, vouchers, ...(learnsAncestors && { ancestors: entry.ancestors }) };
}

/** `known` and those of `others` whose MAC is right, as many as an entry may have. */
function moreWraps(
  ring: string,
  known: readonly KnownWrap[],
  others: readonly RingWrap[],
  own: HeldKey,
): readonly KnownWrap[] {
  const added = others.filter(
    (wrap) => !known.some((other) => isSameFact(other, wrap)) && isRightWrap(ring, wrap, own),
  );
  if (added.length === 0 || known.length >= MAX_WRAPS) return known;
  return [...known, ...added.map((wrap) => ({ ...wrap, isProved: false }))].slice(0, MAX_WRAPS);
}

/**
 * A known key as revoked: by its own certificate where it can be made, and by that of the newest key that may certify it.
 * Undefined where this member can make neither.
 */
export function revokedKey(ring: string, key: RingKey, atMs: number, signers: Signers): RingKey | undefined {
  const at = key.revocation?.at ?? Math.floor(atMs / 1_000) * 1_000;
  const by = certificatesFor(ring, key, at, signers, key.revocation?.by ?? new Map());
  if (by.size === 0) return undefined;
  return { ...key, revoked: true, held: undefined, revocation: { at, by } };
}

function certificatesFor(ring: string, key: RingKey, at: number, signers: Signers, known: Macs): Macs {
  const newest = [...signers.values()]
    .filter((signer) => !signer.revoked && signer.id !== key.id && isNewer(signer, key))
    .toSorted(newestFirst)[0];
  const own = key.signer;
  const made = new Map<string, Uint8Array>();
  if (own !== undefined) made.set(key.id, certificateOf(ring, key.id, at, own));
  if (newest !== undefined) made.set(newest.id, certificateOf(ring, key.id, at, newest.key));
  return firstOf(MAX_CERTIFICATES, made, known);
}

/** The first `most` of both, `first` before `second`. */
function firstOf(most: number, first: Macs, second: Macs): Macs {
  return new Map([...first, ...[...second].filter(([id]) => !first.has(id))].slice(0, most));
}

function hasSameTimes(a: KeyTimes, b: KeyTimes): boolean {
  return (
    a.created === b.created &&
    a.activates === b.activates &&
    a.sealsUntil === b.sealsUntil &&
    a.opensUntil === b.opensUntil
  );
}

/**
 * Whether a document lacks a fact that this member knows and that has not ended. Where an entry is full of vouchers or
 * wraps that this member cannot judge, one that it can is enough: two members must not take turns for ever. `keys` are those
 * to look for.
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
      // Its revocation is all there is to it, and nothing is lost with an entry that nobody could use.
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
  if (key.signer !== undefined) return !rightCertificates(ring, key.id, entry.revoked, signers).has(key.id);
  // One that does not hold, put there in place of one that does.
  return !isCertified(ring, key, entry.revoked, signers) && isCertified(ring, key, key.revocation, signers);
}

function lacksVouchers(ring: string, key: RingKey, entry: RingEntry, signers: Signers): boolean {
  const right = rightVouchers(ring, entry, signers);
  const missing = [...key.vouchers.keys()].some((id) => !right.has(id));
  // One that is known to be wrong takes no place.
  const taken = [...entry.vouchers.keys()].filter((id) => right.has(id) || !signers.has(id)).length;
  return missing && (taken < MAX_VOUCHERS || right.size === 0);
}

function lacksAncestors(ring: string, { ancestors, signer }: RingKey, entry: RingEntry): boolean {
  return ancestors !== undefined && signer !== undefined && !areRightAncestors(ring, entry.ancestors, signer);
}

function lacksWrap(key: RingKey, entry: RingEntry): boolean {
  const missing = key.wraps.filter((wrap) => !entry.wraps.some((other) => isSameFact(wrap, other)));
  return missing.some((wrap) => wrap.isProved) || (missing.length > 0 && entry.wraps.length < MAX_WRAPS);
}

function isSameFact(a: RingWrap, b: RingWrap): boolean {
  const sameSignature =
    a.signature === undefined || b.signature === undefined
      ? a.signature === b.signature
      : Buffer.compare(a.signature, b.signature) === 0;
  return sameWrap(a, b) && sameSignature && Buffer.compare(a.mac, b.mac) === 0;
}

/**
 * The document of all facts that a member knows, in place of `read`: with what that has of certificates which only others
 * can check, while there is room. Over a limit the oldest revocations are left out; then what is merely carried, then all
 * tombstones, then wraps that this member neither made nor opened, then further certificates: never a key that may be used.
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
  const kept = known.keys.filter((key) => !key.isLeft && !isRemovable(key));
  for (let spared = 0; ; spared++) {
    const carried = spared >= 1 ? [] : [...known.carried, ...known.unreadable];
    // What only this member's pin refuses is in use elsewhere.
    const inUse = kept.filter(({ revocation }) => revocation === undefined);
    const revoked = kept.filter((key) => key.revocation !== undefined && (spared < 2 || !isTombstone(key)));
    const room = Math.max(0, MAX_RING_KEYS - inUse.length - carried.length);
    const links = linksBetween(inUse, known.byId);
    const need = (key: RingKey): number => needOf(key, links, byId);
    const told = revoked.toSorted((a, b) => need(b) - need(a) || latestRevocationFirst(a, b)).slice(0, room);
    const keys = [...inUse, ...told].toSorted(compareAge);
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
 * How much a full document needs a revoked key: most where a starter could not tell without it that the keys in use are of
 * one ring; then where somebody wrote it as live, and has to be told; then where it is there already, so that members do not
 * take turns. What everybody knows to be revoked, or does not know at all, nobody uses.
 */
function needOf({ id }: RingKey, links: ReadonlySet<string>, read: ReadonlyMap<string, RingEntry>): number {
  if (links.has(id)) return 3;
  const there = read.get(id);
  if (there === undefined) return 0;
  return there.revoked === undefined ? 2 : 1;
}

function latestRevocationFirst(a: RingKey, b: RingKey): number {
  return (b.revocation?.at ?? 0) - (a.revocation?.at ?? 0) || newestFirst(a, b);
}

/** Revoked keys that keys in use come after, where these name no other key in use: as few as reach one. The oldest has none. */
function linksBetween(inUse: readonly RingKey[], known: ReadonlyMap<string, RingKey>): ReadonlySet<string> {
  const used = new Set(inUse.map(({ id }) => id));
  const links = new Set<string>();
  for (const key of inUse.toSorted(newestFirst).slice(0, -1)) {
    let from: RingKey | undefined = key;
    while (from !== undefined && from.ancestors?.ids.some((id) => used.has(id)) === false) {
      const named: readonly RingKey[] = from.ancestors.ids.flatMap((id) => known.get(id) ?? []);
      from = named.toSorted(newestFirst).at(-1);
      if (from === undefined || links.has(from.id)) break;
      links.add(from.id);
    }
  }
  return links;
}

/** Of a key that is known for its revocation alone, all else is left as another wrote it. */
function withRest(key: RingKey, read: RingEntry | undefined): RingKey {
  return isTombstone(key) && read !== undefined ? tombstone(read, key.revocation) : key;
}

/** Rounds of {@link documentOf}: all, without what is carried, without tombstones, fewer wraps, fewer certificates. */
const MOST_SPARED = 4;

function entryOf(ring: string, key: RingKey, read: RingEntry | undefined, signers: Signers, spared: number): RingEntry {
  const { id, created, activates, sealsUntil, opensUntil } = key;
  const theirs = read !== undefined && hasSameTimes(key, read) ? read : undefined;
  const isSparing = spared >= MOST_SPARED;
  const known = firstOf(MAX_VOUCHERS, key.vouchers, isSparing ? new Map() : (theirs?.vouchers ?? new Map()));
  // What somebody took out of the store is put back.
  const isNamed = ({ id: signer }: Signer): boolean => key.ancestors?.ids.includes(signer) === true;
  const ancestral = new Map([...signers].filter(([, signer]) => isNamed(signer)));
  const all = isSparing || isTombstone(key) ? known : vouchersBy(ring, key, ancestral, known);
  const vouchers = inOrderOf(theirs?.vouchers, all);
  const revoked = revocationOf(ring, key, theirs?.revoked, signers, isSparing);
  const wraps = spared >= 3 ? withoutUnproved(key.wraps) : wrapsOf(ring, key, theirs?.wraps ?? []);
  // What nobody vouched for here may be known to others as it stands.
  const ancestors = key.ancestors ?? theirs?.ancestors;
  return { id, created, activates, sealsUntil, opensUntil, vouchers, ancestors, revoked, wraps };
}

/** What is written of the revocation of a key where `theirs` is what stands there. */
function revocationOf(
  ring: string,
  key: RingKey,
  theirs: Revocation | undefined,
  signers: Signers,
  isSparing: boolean,
): Revocation | undefined {
  const mine = key.revocation;
  if (mine === undefined) {
    // A claim that only others can check goes on.
    const isUnchecked = theirs !== undefined && [...theirs.by.keys()].some((id) => !signers.has(id));
    return isUnchecked ? theirs : undefined;
  }
  const others: Macs = theirs?.at === mine.at ? theirs.by : new Map();
  if (isTombstone(key)) {
    // Of a key that was never unwrapped the times are not proved, and whether its certifier is newer hangs on them: this
    // member adds no certificate of its own, which would hold whatever the times are. Nor can it check the key's own.
    if (theirs !== undefined && isCertified(ring, key, theirs, signers)) return theirs;
    return { at: mine.at, by: firstOf(MAX_CERTIFICATES, mine.by, others) };
  }
  const all = certificatesFor(ring, key, mine.at, signers, firstOf(MAX_CERTIFICATES, mine.by, others));
  return { at: mine.at, by: inOrderOf(theirs?.by, isSparing ? firstOf(2, all, new Map()) : all) };
}

/** What is the same in another order would be written again and again. */
function inOrderOf(read: Macs | undefined, macs: Macs): Macs {
  const there = [...(read?.keys() ?? [])].flatMap((id) => [...macs].filter(([other]) => other === id));
  return new Map([...there, ...macs]);
}

/**
 * Where there is no room for all: those that this member made or opened, then right ones in the order in which they stand
 * there. Each member moves its own to the front, so those that others opened stay, and no two members take turns.
 */
function wrapsOf(ring: string, { wraps, signer }: RingKey, there: readonly RingWrap[]): readonly RingWrap[] {
  if (signer === undefined || wraps.length < MAX_WRAPS) return wraps;
  const right = there.filter((wrap) => isRightWrap(ring, wrap, signer));
  const all = [...wraps.filter(({ isProved }) => isProved), ...right, ...wraps.filter(({ isProved }) => !isProved)];
  return all.filter((wrap, i) => all.findIndex((other) => isSameFact(other, wrap)) === i).slice(0, MAX_WRAPS);
}

/** Those that this member made or opened; the first where there is none, since an entry has one at least. */
function withoutUnproved(wraps: readonly KnownWrap[]): readonly KnownWrap[] {
  const proved = wraps.filter((wrap) => wrap.isProved);
  return proved.length === 0 ? wraps.slice(0, 1) : proved;
}

/** Keys that hang together by right vouchers of those they name as ancestors: a ring is one such group. Newest first in each. */
export function lineagesOf(ring: string, keys: readonly { entry: RingEntry; signer: Signer }[]): readonly string[][] {
  const signers: Signers = new Map(keys.map(({ signer }) => [signer.id, signer]));
  const groupOf = new Map(keys.map(({ entry }) => [entry.id, new Set([entry.id])]));
  for (const { entry, signer } of keys) {
    const named = areRightAncestors(ring, entry.ancestors, signer.key) ? entry.ancestors?.ids : [];
    for (const voucher of rightVouchers(ring, entry, signers).keys()) {
      // Both ways: anybody's key can vouch for those of a ring, or name them.
      if (named?.includes(voucher) !== true) continue;
      const joined = new Set([...(groupOf.get(entry.id) ?? []), ...(groupOf.get(voucher) ?? [])]);
      for (const id of joined) groupOf.set(id, joined);
    }
  }
  const newest = new Map(keys.toSorted((a, b) => newestFirst(a.entry, b.entry)).map(({ entry }, i) => [entry.id, i]));
  const rank = (id: string): number => newest.get(id) ?? 0;
  return [...new Set(groupOf.values())].map((group) => [...group].toSorted((a, b) => rank(a) - rank(b)));
}
