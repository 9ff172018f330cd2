import type { DataKey } from '../keys/data-key.ts';
import type { RingAuthenticator } from '../keys/ring-authenticator.ts';
import {
  areRightAncestors,
  certificateOf,
  isNewer,
  isRightWrap,
  newestFirst,
  type Signers,
  wrapMacOf,
} from './certificates.ts';
import {
  MAX_CERTIFICATES,
  MAX_WRAPS,
  type Macs,
  type Revocation,
  type RingEntry,
  type RingWrap,
  sameWrap,
} from './document.ts';
import { MAX_RING_KEYS } from './policy.ts';
import { type KeyTimes } from './schedule.ts';
import { type KnownWrap, type RingKey, type RingSnapshot } from './snapshot.ts';

/** How far `created` may be ahead of the clocks: in a full ring, each key can be a second newer than the one before. */
const CREATED_TOLERANCE_MS: number = MAX_RING_KEYS * 1_000;

const NO_BYTES = new Uint8Array(0);

/** The inputs of a check besides the document. */
export interface Judgement {
  readonly ring: string;
  /** The time according to the member's checked clock. */
  readonly nowMs: number;
  /** Whether that clock is unconfirmed now. If so, nothing has expired. */
  readonly isUnconfirmed?: boolean;
  readonly clockSkewMs: number;
  /** Keys that have expired and can still certify, by id. */
  readonly past: Signers;
  /** Ids of keys that were known to be revoked when their lifetime ended: they are never unwrapped again. */
  readonly over?: ReadonlySet<string>;
  readonly isPinnedOut: (times: KeyTimes) => boolean;
}

/** All keys that can certify something to this member. */
export function signersOf(keys: Iterable<RingKey>, past: Signers): Signers {
  const signers = new Map(past);
  for (const { id, created, opensUntil, revoked, isLeft, authenticator } of keys) {
    if (authenticator !== undefined) signers.set(id, { id, created, opensUntil, revoked, isLeft, authenticator });
  }
  return signers;
}

/** An unwrapped key, with the facts of its entry that the key authenticates. `opened` is the wrap it came from. */
export function unwrappedKey(
  ring: string,
  entry: RingEntry,
  held: DataKey,
  opened: RingWrap | undefined,
  sealsFromSteadyMs: number,
): RingKey {
  const { id, created, activates, sealsUntil, opensUntil } = entry;
  const { authenticator } = held;
  // A MAC follows from the key and the wrap: for the wrap that was unwrapped it is computed, not taken from the document.
  const own: readonly KnownWrap[] =
    opened === undefined ? [] : [{ ...opened, mac: wrapMacOf(ring, opened, authenticator), isUnwrapped: true }];
  return {
    id,
    created,
    activates,
    sealsUntil,
    opensUntil,
    revoked: false,
    revocation: undefined,
    vouchers: new Map(),
    ancestors: areRightAncestors(ring, entry.ancestors, authenticator) ? entry.ancestors : undefined,
    wraps: moreWraps(ring, own, entry.wraps, authenticator),
    held,
    authenticator,
    sealsFromSteadyMs,
    isLeft: false,
  };
}

/** A key that is known to be revoked and is never unwrapped; without `revocation`, one that this member's pin refuses. */
export function tombstone(entry: RingEntry, revocation: Revocation | undefined): RingKey {
  const { id, created, activates, sealsUntil, opensUntil, vouchers } = entry;
  const wraps = entry.wraps.map((wrap) => ({ ...wrap, isUnwrapped: false }));
  const times = { created, activates, sealsUntil, opensUntil };
  const nothing = {
    held: undefined,
    authenticator: undefined,
    sealsFromSteadyMs: Number.POSITIVE_INFINITY,
    isLeft: false,
  };
  return { id, ...times, revoked: true, revocation, vouchers, wraps, ...nothing };
}

/** The keys that can be revoked: known ones, and those that could not be unwrapped or that a pin refuses. */
export function revocable({ keys, carried, unreadable, byId }: RingSnapshot): readonly RingKey[] {
  const missing = [...carried, ...unreadable].filter(({ id }) => !byId.has(id));
  const known = keys.filter((key) => !key.isLeft && key.revocation === undefined);
  return [...known, ...missing.map((entry) => tombstone(entry, undefined))];
}

/** Whether only the revocation of a key is known. */
export function isTombstone(key: RingKey): boolean {
  return key.authenticator === undefined;
}

export function hasEnded({ opensUntil }: KeyTimes, { nowMs, isUnconfirmed }: Judgement): boolean {
  return isUnconfirmed !== true && nowMs >= opensUntil;
}

/** Whether a key was created later than any clock of the fleet can show. */
export function isFromTheFuture({ created }: KeyTimes, { nowMs, clockSkewMs }: Judgement): boolean {
  return created > nowMs + clockSkewMs + CREATED_TOLERANCE_MS;
}

/** `known`, and those of `others` with a valid MAC, up to the limit of an entry. */
export function moreWraps(
  ring: string,
  known: readonly KnownWrap[],
  others: readonly RingWrap[],
  own: RingAuthenticator,
): readonly KnownWrap[] {
  const added = others.filter(
    (wrap) => !known.some((other) => isSameFact(other, wrap)) && isRightWrap(ring, wrap, own),
  );
  if (added.length === 0 || known.length >= MAX_WRAPS) return known;
  return [...known, ...added.map((wrap) => ({ ...wrap, isUnwrapped: false }))].slice(0, MAX_WRAPS);
}

/**
 * A known key after its revocation, with the key's own certificate, if this member can make it, and with a certificate
 * by the newest key that may certify the revocation. Undefined if this member can make neither.
 */
export function revokedKey(ring: string, key: RingKey, atMs: number, signers: Signers): RingKey | undefined {
  const at = key.revocation?.at ?? Math.floor(atMs / 1_000) * 1_000;
  const by = certificatesFor(ring, key, at, signers, key.revocation?.by);
  if (by.size === 0) return undefined;
  return { ...key, revoked: true, held: undefined, revocation: { at, by } };
}

export function certificatesFor(ring: string, key: RingKey, at: number, signers: Signers, known?: Macs): Macs {
  const newest = [...signers.values()]
    .filter((signer) => !signer.revoked && isNewer(signer, key))
    .toSorted(newestFirst)[0];
  const own = key.authenticator;
  const made = new Map<string, Uint8Array>();
  if (own !== undefined) made.set(key.id, certificateOf(ring, key.id, at, own));
  if (newest !== undefined) made.set(newest.id, certificateOf(ring, key.id, at, newest.authenticator));
  return firstOf(MAX_CERTIFICATES, made, known);
}

/** The first `most` entries of both maps, those of `first` before those of `second`. */
export function firstOf(most: number, first: Macs, second: Macs = new Map()): Macs {
  return new Map([...first, ...[...second].filter(([id]) => !first.has(id))].slice(0, most));
}

export function hasSameTimes(a: KeyTimes, b: KeyTimes): boolean {
  return (
    a.created === b.created &&
    a.activates === b.activates &&
    a.sealsUntil === b.sealsUntil &&
    a.opensUntil === b.opensUntil
  );
}

export function isSameFact(a: RingWrap, b: RingWrap): boolean {
  // A signature has at least one byte.
  const sameSignature = Buffer.compare(a.signature ?? NO_BYTES, b.signature ?? NO_BYTES) === 0;
  return sameWrap(a, b) && sameSignature && Buffer.compare(a.mac, b.mac) === 0;
}
