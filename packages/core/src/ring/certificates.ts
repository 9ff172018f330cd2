import { timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../base/canonical-json.ts';
import type { WrappedKey } from '../contracts/key-wrapper.ts';
import type { RingAuthenticator } from '../keys/ring-authenticator.ts';
import {
  type Ancestors,
  base64url,
  formatTime,
  MAX_VOUCHERS,
  type Macs,
  type Revocation,
  type RingEntry,
  type RingWrap,
  timesOf,
} from './document.ts';
import type { KeyTimes } from './schedule.ts';

/**
 * A key that can authenticate facts, whether it is live, revoked or expired. A member remembers the authenticators of all
 * keys that it knew, because the voucher of the next key can come from any of them.
 */
export interface Signer {
  readonly id: string;
  readonly created: number;
  readonly opensUntil: number;
  readonly revoked: boolean;
  /** Whether the key belongs to a ring that this member left. If so, it vouches for nothing in the current ring. */
  readonly isLeft?: boolean;
  readonly authenticator: RingAuthenticator;
}

/** Signers by key id. */
export type Signers = ReadonlyMap<string, Signer>;

/**
 * Whether `a` is newer than `b`: by (created, id), never by activation, which is earlier for an emergency key than for
 * a planned one.
 */
export function isNewer(
  a: { readonly created: number; readonly id: string },
  b: { readonly created: number; readonly id: string },
): boolean {
  return a.created > b.created || (a.created === b.created && a.id > b.id);
}

/** For `toSorted`: newest first by {@link isNewer}. */
export function newestFirst(
  a: { readonly created: number; readonly id: string },
  b: { readonly created: number; readonly id: string },
): number {
  return isNewer(a, b) ? -1 : 1;
}

/** HMAC-SHA-256 by which `signer` vouches for a new key, 32 bytes. */
export function voucherOf(ring: string, entry: KeyTimes & { readonly id: string }, signer: RingAuthenticator): Buffer {
  return signer.mac(textOfKey(ring, entry));
}

/** `known`, plus as many vouchers by keys older than the entry as there is room for, newest first. */
export function vouchersBy(
  ring: string,
  entry: KeyTimes & { readonly id: string },
  signers: Signers,
  known: Macs = new Map(),
): Macs {
  const older = [...signers.values()].filter(
    (signer) => signer.isLeft !== true && isNewer(entry, signer) && !known.has(signer.id),
  );
  const added = older.toSorted(newestFirst).slice(0, MAX_VOUCHERS - known.size);
  return new Map([
    ...known,
    ...added.map(({ id, authenticator }) => [id, voucherOf(ring, entry, authenticator)] as const),
  ]);
}

function textOfKey(ring: string, entry: KeyTimes & { readonly id: string }): string {
  return canonicalJson(['key', ring, entry.id, ...timesOf(entry)]);
}

/** HMAC-SHA-256 under an entry's own key over one of its wraps, 32 bytes. */
export function wrapMacOf(ring: string, wrap: WrappedKey, own: RingAuthenticator): Buffer {
  const { provider, keyId, wrapped, signature } = wrap;
  const signed = signature === undefined ? null : base64url(signature);
  return own.mac(canonicalJson(['wrap', ring, own.id, provider, keyId, base64url(wrapped), signed]));
}

/** HMAC-SHA-256 under an entry's own key over the ids of the keys that vouch for it, 32 bytes. */
export function ancestorsMacOf(ring: string, ids: readonly string[], own: RingAuthenticator): Buffer {
  return own.mac(canonicalJson(['ancestors', ring, own.id, ...ids]));
}

export function areRightAncestors(ring: string, ancestors: Ancestors | undefined, own: RingAuthenticator): boolean {
  return ancestors !== undefined && timingSafeEqual(ancestors.mac, ancestorsMacOf(ring, ancestors.ids, own));
}

/** HMAC-SHA-256 by which `signer` certifies that the key `id` is revoked, 32 bytes. */
export function certificateOf(ring: string, id: string, at: number, signer: RingAuthenticator): Buffer {
  return signer.mac(textOfRevocation(ring, id, at));
}

function textOfRevocation(ring: string, id: string, at: number): string {
  return canonicalJson(['revoked', ring, id, formatTime(at)]);
}

/** The vouchers of an entry that are correct under a known key of this ring. */
export function rightVouchers(
  ring: string,
  entry: KeyTimes & Pick<RingEntry, 'id' | 'vouchers'>,
  signers: Signers,
): Macs {
  const ours = new Map([...signers].filter(([, { isLeft }]) => isLeft !== true));
  return rightOnes(entry.vouchers, ours, () => textOfKey(ring, entry));
}

/**
 * Whether an entry is linked to a known key: the known key vouches for the entry, and the entry names it as an
 * ancestor. Both are required, because attackers can vouch for the keys of a ring with their own key. Until the key
 * of the entry is unwrapped, `ancestors` is not authenticated.
 */
export function isVouched(ring: string, entry: RingEntry, signers: Signers): boolean {
  const vouchers = rightVouchers(ring, entry, signers);
  return entry.ancestors?.ids.some((id) => vouchers.has(id)) === true;
}

export function isRightWrap(ring: string, wrap: RingWrap, own: RingAuthenticator): boolean {
  return timingSafeEqual(wrap.mac, wrapMacOf(ring, wrap, own));
}

/** The certificates with a correct MAC by a known key, whether or not that key is allowed to certify the revocation. */
export function rightCertificates(ring: string, id: string, { at, by }: Revocation, signers: Signers): Macs {
  return rightOnes(by, signers, () => textOfRevocation(ring, id, at));
}

/**
 * Whether a key is revoked: its revocation is certified by the key itself, or by a newer known key that is not revoked.
 * A revoked key certifies only its own revocation.
 */
export function isCertified(
  ring: string,
  key: { readonly id: string; readonly created: number },
  revocation: Revocation,
  signers: Signers,
): boolean {
  const right = rightCertificates(ring, key.id, revocation, signers);
  return [...right.keys()].some((id) => {
    const signer = signers.get(id) as Signer;
    return id === key.id || (!signer.revoked && isNewer(signer, key));
  });
}

function rightOnes(macs: Macs, signers: Signers, textOf: () => string): Map<string, Uint8Array> {
  const right = new Map<string, Uint8Array>();
  let text: string | undefined;
  for (const [id, mac] of macs) {
    const signer = signers.get(id);
    if (signer === undefined) continue;
    text ??= textOf();
    if (timingSafeEqual(mac, signer.authenticator.mac(text))) right.set(id, mac);
  }
  return right;
}
