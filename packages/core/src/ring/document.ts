import { canonicalJson } from '../base/canonical-json.ts';
import { LABEL } from '../base/options.ts';
import type { WrappedKey } from '../contracts/key-wrapper.ts';
import { MAX_DOCUMENT_BYTES, RingStoreError } from '../contracts/ring-store.ts';
import { KEY_ID_BYTES } from '../formats/derivation.ts';
import { decodeBase64url } from '../formats/token.ts';
import { MAX_RING_KEYS } from './policy.ts';
import type { KeyTimes } from './schedule.ts';

const RING_FORMAT = 'sealring/ring/1';
/** Bounds of the format, not of a policy: every reader of the format refuses a document that exceeds them. */
export const MAX_WRAPS = 16;
export const MAX_VOUCHERS = 8;
export const MAX_CERTIFICATES = 8;
const MAX_WRAPPED_BYTES = 2_048;
const MAX_KEY_ID_CHARS = 2_048;
const MAC_BYTES = 32;
const DAY_MS = 86_400_000;
/**
 * Longest life of an entry, `opensUntil` − `created`: five years. The longest life that a policy allows is under four
 * years.
 */
const MAX_LIFE_MS: number = 5 * 366 * DAY_MS;
/** Longest time between `created` and `activates`, either way. */
const MAX_LEAD_MS: number = 366 * DAY_MS;

type JsonObject = Readonly<Record<string, unknown>>;

/** HMACs of 32 bytes, by the id of the key that made them. */
export type Macs = ReadonlyMap<string, Uint8Array>;

/** The revocation of a key, and the keys that certify it. */
export interface Revocation {
  /**
   * Shown to operators, and used to decide which entries a full ring leaves out; never used to decide which key is
   * revoked. Milliseconds since the epoch, a whole second.
   */
  readonly at: number;
  /** Certificates, at most 8, made by the revoked key itself or by newer keys. */
  readonly by: Macs;
}

/** One wrap of a ring entry; `mac` shows that the member which added it held the entry's key. */
export interface RingWrap extends WrappedKey {
  readonly mac: Uint8Array;
}

/** The keys that vouch for a key and that its publisher held; certified by the key itself. */
export interface Ancestors {
  /** Key ids, at most 8, newest first. */
  readonly ids: readonly string[];
  readonly mac: Uint8Array;
}

/** One key of the ring, as stored. Its times and vouchers are written once; a revocation and wraps can be added. */
export interface RingEntry extends KeyTimes {
  readonly id: string;
  /** At most 8: made at publication with the keys that the publisher could sign with. */
  readonly vouchers: Macs;
  /** Absent if they are not known. */
  readonly ancestors?: Ancestors | undefined;
  readonly revoked: Revocation | undefined;
  /** 1 to 16. */
  readonly wraps: readonly RingWrap[];
}

/** A parsed ring document: well-formed, but only its authenticated facts are trusted. */
export interface RingDocument {
  readonly ring: string;
  /** Claim of a member that is about to create the first key; 16 bytes in base64url. */
  readonly claim: string | undefined;
  /** At most 64, each with a different id. */
  readonly entries: readonly RingEntry[];
}

const corrupt = (detail: string): RingStoreError => new RingStoreError('corrupt', detail);

/**
 * Parses the document text of the expected ring, or of any ring if no name is given. Pure: other code decides whether
 * to trust the facts.
 * @throws {RingStoreError} `too-large`, or `corrupt` for any unknown or missing JSON member, or for a text longer than
 * {@link encodeDocument} would write. Unknown members need not be tolerated, because a new format uses another place in
 * the store.
 */
export function parseDocument(text: string, expectedRing?: string): RingDocument {
  if (text.length > MAX_DOCUMENT_BYTES) throw new RingStoreError('too-large', 'the document is larger than 256 KiB');
  if (!/^[\x20-\x7e]+$/.test(text)) throw corrupt('not one line of ASCII');
  const { format, ring, claim, keys, ...unknown } = asObject(parsedJson(text), 'document');
  refuseUnknown(unknown);
  if (format !== RING_FORMAT) throw corrupt('unknown format');
  if (typeof ring !== 'string' || !LABEL.test(ring)) throw corrupt('the ring has no valid name');
  if (expectedRing !== undefined && ring !== expectedRing) {
    throw corrupt(`the ring has a different name: it is "${ring}", but ringName is "${expectedRing}"`);
  }
  if (claim !== undefined && (typeof claim !== 'string' || !/^[\w-]{22}$/.test(claim)))
    throw corrupt('claim is invalid');
  if (!Array.isArray(keys)) throw corrupt('keys is not an array');
  if (keys.length > MAX_RING_KEYS)
    throw new RingStoreError('too-large', `the ring has more than ${MAX_RING_KEYS} keys`);
  const entries = keys.map(parseEntry);
  if (new Set(entries.map((entry) => entry.id)).size !== entries.length) throw corrupt('two keys have the same id');
  const document = { ring, claim, entries };
  // JSON members may come in any order. A repeated name, white space, or another spelling of a number or escape makes the
  // text longer.
  if (encodeDocument(document).length !== text.length) throw corrupt('not in canonical form');
  return document;
}

/** The text of a document: one line of ASCII. Its length is not checked against the limit of 256 KiB. */
export function encodeDocument({ ring, claim, entries }: RingDocument): string {
  return canonicalJson({
    format: RING_FORMAT,
    ring,
    ...(claim === undefined ? {} : { claim }),
    keys: entries.map((entry) => ({
      id: entry.id,
      created: formatTime(entry.created),
      activates: formatTime(entry.activates),
      sealsUntil: formatTime(entry.sealsUntil),
      opensUntil: formatTime(entry.opensUntil),
      vouchers: encodeMacs(entry.vouchers),
      ...(entry.ancestors === undefined
        ? {}
        : { ancestors: { ids: entry.ancestors.ids, mac: base64url(entry.ancestors.mac) } }),
      ...(entry.revoked === undefined
        ? {}
        : { revoked: { at: formatTime(entry.revoked.at), by: encodeMacs(entry.revoked.by) } }),
      wraps: entry.wraps.map(encodeWrap),
    })),
  });
}

/** The context that every wrap of a key is bound to: ring, purpose and the key's times. */
export function wrapContext(ring: string, times: KeyTimes): Readonly<Record<string, string>> {
  return Object.freeze({
    'sealring:ring': ring,
    'sealring:purpose': 'data-key',
    'sealring:times': timesOf(times).join('/'),
  });
}

/** The text that a wrap's signature covers, if an unwrap does not authenticate the origin. */
export function signedBytes(ring: string, entry: KeyTimes & { readonly id: string }, wrap: WrappedKey): Uint8Array {
  const text = canonicalJson(
    {
      ring,
      id: entry.id,
      created: formatTime(entry.created),
      activates: formatTime(entry.activates),
      sealsUntil: formatTime(entry.sealsUntil),
      opensUntil: formatTime(entry.opensUntil),
      provider: wrap.provider,
      keyId: wrap.keyId,
      wrapped: base64url(wrap.wrapped),
    },
    { sortKeys: true },
  );
  return Buffer.from(text);
}

/** Whether two wraps are the same ciphertext under the same key version. */
export function sameWrap(a: WrappedKey, b: WrappedKey): boolean {
  return a.provider === b.provider && a.keyId === b.keyId && Buffer.compare(a.wrapped, b.wrapped) === 0;
}

/** created, activates, sealsUntil and opensUntil as they are written. */
export function timesOf(times: KeyTimes): readonly string[] {
  return [times.created, times.activates, times.sealsUntil, times.opensUntil].map(formatTime);
}

const TIME_CHARS = 20;

/** Exactly `YYYY-MM-DDTHH:MM:SSZ`, so that each second has only one spelling. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}

function parseEntry(value: unknown): RingEntry {
  const { id, created, activates, sealsUntil, opensUntil, vouchers, ancestors, revoked, wraps, ...unknown } = asObject(
    value,
    'key',
  );
  refuseUnknown(unknown);
  const times = {
    created: parseTime(created, 'created'),
    activates: parseTime(activates, 'activates'),
    sealsUntil: parseTime(sealsUntil, 'sealsUntil'),
    opensUntil: parseTime(opensUntil, 'opensUntil'),
  };
  if (!(times.activates < times.sealsUntil && times.sealsUntil < times.opensUntil))
    throw corrupt('the times of a key are out of order');
  if (times.opensUntil - times.created > MAX_LIFE_MS) throw corrupt('the life of a key is too long');
  if (Math.abs(times.activates - times.created) > MAX_LEAD_MS)
    throw corrupt('a key becomes active too early or too late');
  if (!Array.isArray(wraps) || wraps.length === 0 || wraps.length > MAX_WRAPS) throw corrupt('wraps is invalid');
  return {
    id: parseKeyId(id),
    ...times,
    vouchers: parseMacs(vouchers, 'vouchers', MAX_VOUCHERS),
    ancestors: ancestors === undefined ? undefined : parseAncestors(ancestors),
    revoked: revoked === undefined ? undefined : parseRevocation(revoked),
    wraps: wraps.map(parseWrap),
  };
}

function parseAncestors(value: unknown): Ancestors {
  const { ids, mac, ...unknown } = asObject(value, 'ancestors');
  refuseUnknown(unknown);
  if (!Array.isArray(ids) || ids.length > MAX_VOUCHERS) throw corrupt('ancestors.ids is invalid');
  return { ids: ids.map(parseKeyId), mac: parseMac(mac) };
}

function parseRevocation(value: unknown): Revocation {
  const { at, by, ...unknown } = asObject(value, 'revoked');
  refuseUnknown(unknown);
  return { at: parseTime(at, 'revoked.at'), by: parseMacs(by, 'certificates', MAX_CERTIFICATES) };
}

function parseWrap(value: unknown): RingWrap {
  const { provider, keyId, wrapped, signature, mac, ...unknown } = asObject(value, 'wrap');
  refuseUnknown(unknown);
  if (typeof provider !== 'string' || !/^[a-z0-9-]{1,64}$/.test(provider)) throw corrupt('provider is invalid');
  if (typeof keyId !== 'string' || keyId === '' || keyId.length > MAX_KEY_ID_CHARS) throw corrupt('keyId is invalid');
  return {
    provider,
    keyId,
    wrapped: parseBytes(wrapped, 'wrapped'),
    ...(signature === undefined ? {} : { signature: parseBytes(signature, 'signature') }),
    mac: parseMac(mac),
  };
}

function encodeWrap(wrap: RingWrap): object {
  return {
    provider: wrap.provider,
    keyId: wrap.keyId,
    wrapped: base64url(wrap.wrapped),
    ...(wrap.signature === undefined ? {} : { signature: base64url(wrap.signature) }),
    mac: base64url(wrap.mac),
  };
}

function parseMacs(value: unknown, what: string, atMost: number): Macs {
  const members = Object.entries(asObject(value, what));
  if (members.length > atMost) throw corrupt(`too many ${what}`);
  return new Map(members.map(([id, mac]) => [parseKeyId(id), parseMac(mac)]));
}

function encodeMacs(macs: Macs): object {
  return Object.fromEntries([...macs].map(([id, mac]) => [id, base64url(mac)]));
}

function parseKeyId(value: unknown): string {
  if (typeof value !== 'string' || decodeBase64url(value)?.length !== KEY_ID_BYTES) throw corrupt('key id is invalid');
  return value;
}

function parseMac(value: unknown): Buffer {
  const mac = parseBytes(value, 'mac');
  if (mac.length !== MAC_BYTES) throw corrupt('mac is invalid');
  return mac;
}

function parseTime(value: unknown, what: string): number {
  if (typeof value !== 'string') throw corrupt(`${what} is invalid`);
  const ms = Date.parse(value);
  // Date.parse accepts the 30th of February as a day in March. A fraction of a second, or a year beyond 9999, makes the
  // text longer.
  if (Number.isNaN(ms) || formatTime(ms) !== value || value.length !== TIME_CHARS) throw corrupt(`${what} is invalid`);
  return ms;
}

function parseBytes(value: unknown, what: string): Buffer {
  const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined;
  if (bytes === undefined || bytes.length === 0 || bytes.length > MAX_WRAPPED_BYTES)
    throw corrupt(`${what} is invalid`);
  return bytes;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw corrupt('not JSON');
  }
}

function refuseUnknown(unknown: JsonObject): void {
  if (Object.keys(unknown).length > 0) throw corrupt('an unknown property');
}

function asObject(value: unknown, what: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw corrupt(`${what} is not an object`);
  return value as JsonObject;
}
