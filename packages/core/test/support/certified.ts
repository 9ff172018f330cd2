import { createHash } from 'node:crypto';
import { DataKey } from '../../src/keys/data-key.ts';
import {
  ancestorsMacOf,
  certificateOf,
  type Signer,
  type Signers,
  voucherOf,
  wrapMacOf,
} from '../../src/ring/certificates.ts';
import type { Ancestors, Macs, Revocation, RingDocument, RingEntry, RingWrap } from '../../src/ring/document.ts';
import type { Judgement } from '../../src/ring/facts.ts';
import type { KeyTimes } from '../../src/ring/schedule.ts';

/* Keys, and the facts that they certify, without a KMS: the parts of a ring document. */

export const RING = 'payments';
export const T0: number = Date.parse('2026-11-21T03:00:00Z');
const HOUR = 3_600_000;

/** One data key of the ring; each later one was created a minute later. */
export interface TestKey extends KeyTimes {
  readonly id: string;
  readonly held: DataKey;
}

/** The key number `n`: the same one for the same number. */
export function testKey(n: number, ring: string = RING): TestKey {
  const held = new DataKey(createHash('sha256').update(`key ${n}`).digest(), ring);
  const created = T0 + n * 60_000;
  return {
    id: held.id,
    held,
    created,
    activates: created + HOUR,
    sealsUntil: created + 24 * HOUR,
    opensUntil: created + 48 * HOUR,
  };
}

/** A wrap of a key, with the MAC of the key's holder. */
export function wrapBy(key: TestKey, more: Partial<RingWrap> = {}): RingWrap {
  const wrap = { provider: 'local', keyId: 'k', wrapped: Buffer.from(`${key.id} wrapped`), ...more };
  return { ...wrap, mac: more.mac ?? wrapMacOf(RING, wrap, key.held.authenticator) };
}

/** An entry as its publisher writes it, with vouchers of `by`. */
export function entryBy(key: TestKey, by: readonly TestKey[], more: Partial<RingEntry> = {}): RingEntry {
  const { id, created, activates, sealsUntil, opensUntil } = key;
  const entry = { id, created, activates, sealsUntil, opensUntil, ...more };
  const vouchers: Macs = new Map(by.map((each) => [each.id, voucherOf(RING, entry, each.held.authenticator)]));
  return { vouchers, ancestors: ancestorsBy(key, by), revoked: undefined, wraps: [wrapBy(key)], ...entry };
}

/** The statement of a key about the keys that its publisher held. */
export function ancestorsBy(key: TestKey, ancestors: readonly TestKey[]): Ancestors {
  const ids = ancestors.map(({ id }) => id);
  return { ids, mac: ancestorsMacOf(RING, ids, key.held.authenticator) };
}

/** A revocation of the key `id`, certified by `by`. */
export function revocationBy(id: string, by: readonly TestKey[], at: number = T0): Revocation {
  return { at, by: new Map(by.map((each) => [each.id, certificateOf(RING, id, at, each.held.authenticator)])) };
}

export function documentWith(...entries: readonly RingEntry[]): RingDocument {
  return { ring: RING, claim: undefined, entries };
}

export function signerOf({ id, created, opensUntil, held }: TestKey, revoked = false): Signer {
  return { id, created, opensUntil, revoked, authenticator: held.authenticator };
}

export function signersWith(...keys: readonly TestKey[]): Signers {
  return new Map(keys.map((key) => [key.id, signerOf(key)]));
}

/** A member with the clock at `nowMs`, two hours after the first key was made. */
export function judgementOf(more: Partial<Judgement> = {}): Judgement {
  return {
    ring: RING,
    nowMs: T0 + 2 * HOUR,
    clockSkewMs: 300_000,
    past: new Map(),
    isPinnedOut: () => false,
    ...more,
  };
}
