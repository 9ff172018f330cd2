import { createHmac, timingSafeEqual } from 'node:crypto';
import type { HeldKey } from '../key-cache.ts';
import type { RingDocument } from './document.ts';
import { newest } from './schedule.ts';

/** A data key that this member holds, as it stood in the ring before the document in question was read. */
export interface OwnKey {
  readonly id: string;
  readonly activates: number;
  readonly held: HeldKey;
}

/**
 * - `accepted`: the document comes from somebody who holds this member's newest key.
 * - `older branch`: from somebody who holds one of its keys, not the newest: a store rolled back, or a second lineage.
 *   Not to be adopted as it is, but to be healed by a union.
 * - `ended branch`: from somebody who holds only keys that have ended or were revoked since: an old copy of the ring, or
 *   the work of whoever such a key leaked to. To be written over; nothing is taken from it.
 * - `forged`: anything else.
 */
export type Authenticity = 'accepted' | 'older branch' | 'ended branch' | 'forged';

/** MACs of the body under each key, by key id. */
export function authenticate(body: string, keys: Iterable<HeldKey>): Map<string, Buffer> {
  const macs = new Map<string, Buffer>();
  for (const key of keys) macs.set(key.id, macOf(body, key));
  return macs;
}

/**
 * Judges a document by the keys this member already holds and has not seen revoked or expired; at least one.
 *
 * The newest of them that the document does not list as revoked must have signed it. A document that revokes every
 * one of them must still be signed by the newest: a revocation is made by a member that holds the revoked key, so
 * somebody who may merely wrap and write the store cannot revoke a fleet into a ring of his own.
 */
export function judge(document: RingDocument, own: readonly OwnKey[], past: readonly HeldKey[]): Authenticity {
  if (own.some((key) => contradicts(document, key.held))) return 'forged';
  const listed = new Set(document.entries.filter((entry) => entry.revoked !== undefined).map((entry) => entry.id));
  const decisive = newest(own.filter((key) => !listed.has(key.id))) ?? newest(own);
  if (decisive !== undefined && isSignedBy(document, decisive.held)) return 'accepted';
  if (own.some((key) => isSignedBy(document, key.held))) return 'older branch';
  return past.some((key) => isSignedBy(document, key)) ? 'ended branch' : 'forged';
}

/** Whether the document carries a right MAC under `key`. */
export function isSignedBy(document: RingDocument, key: HeldKey): boolean {
  const mac = document.macs.get(key.id);
  return mac !== undefined && isMac(mac, document.body, key);
}

/** Whether no MAC in the document contradicts a key. */
export function contradicts(document: RingDocument, key: HeldKey): boolean {
  const mac = document.macs.get(key.id);
  return mac !== undefined && !isMac(mac, document.body, key);
}

function macOf(body: string, key: HeldKey): Buffer {
  return createHmac('sha256', key.secret('ring-mac')).update(body, 'ascii').digest();
}

function isMac(mac: Buffer, body: string, key: HeldKey): boolean {
  return timingSafeEqual(mac, macOf(body, key));
}
