import { isDeepStrictEqual } from 'node:util';
import { canonicalJson } from '../canonical-json.ts';
import { KEY_ID_BYTES } from '../formats/derivation.ts';
import { decodeBase64url } from '../formats/token.ts';
import type { WrappedKey } from '../key-wrapper.ts';
import { MAX_RING_KEYS } from './policy.ts';
import type { KeyTimes } from './schedule.ts';
import { MAX_DOCUMENT_BYTES, RingStoreError } from './store.ts';

const RING_FORMAT = 'sealring/ring/1';
/** Epochs only grow; the head room keeps arithmetic on them exact. */
export const MAX_EPOCH: number = 2 ** 53 - 2 ** 20;
const MAX_WRAPS = 16;
const MAX_KEY_ID_CHARS = 2_048;

type JsonObject = Readonly<Record<string, unknown>>;

/** One key of the ring, as stored. An entry never changes; it can only gain `revoked` or further wraps. */
export interface RingEntry extends KeyTimes {
  readonly id: string;
  /** Since when it is revoked, milliseconds since the epoch. */
  readonly revoked: number | undefined;
  readonly wraps: readonly RingWrap[];
  /** The members of the entry that this version does not know; kept on every rewrite. */
  readonly unknown: JsonObject;
}

/** One wrap of a ring entry, with what a newer version may have added to it. */
export interface RingWrap extends WrappedKey {
  readonly unknown: JsonObject;
}

/** A parsed ring document. Well-formed, not yet authentic. */
export interface RingDocument {
  readonly ring: string;
  readonly epoch: number;
  readonly entries: readonly RingEntry[];
  readonly unknown: JsonObject;
  /** The first line, whose bytes the MACs authenticate. */
  readonly body: string;
  /** By key id, 32 bytes each. */
  readonly macs: ReadonlyMap<string, Buffer>;
}

/** What is written: a document without its text. */
export type RingContent = Pick<RingDocument, 'ring' | 'epoch' | 'entries' | 'unknown'>;

const corrupt = (detail: string): RingStoreError => new RingStoreError('corrupt', detail);

/**
 * Parses the text of a ring document. Pure: authenticity is another step.
 * @throws {RingStoreError} `too-large` or `corrupt`: whatever is unknown or unexpected is refused, except members
 * that a newer version may have added.
 */
export function parseDocument(text: string, expectedRing: string): RingDocument {
  if (text.length > MAX_DOCUMENT_BYTES) throw new RingStoreError('too-large', 'over 256 KiB');
  if (!/^[\x20-\x7e]+\n[\x20-\x7e]+$/.test(text)) throw corrupt('not two lines of ASCII');
  const newline = text.indexOf('\n');
  const body = text.slice(0, newline);
  const { format, ring, epoch, critical, keys, ...unknown } = parseObject(body, 'first line');
  if (format !== RING_FORMAT) throw corrupt('unknown format');
  if (ring !== expectedRing) throw corrupt('the ring has another name');
  if (typeof epoch !== 'number' || !Number.isSafeInteger(epoch) || epoch < 0 || epoch > MAX_EPOCH) {
    throw corrupt('epoch out of range');
  }
  // Nothing is critical in this version: every name in the list is one that we do not know.
  if (!Array.isArray(critical) || critical.length > 0) throw corrupt('unknown critical member');
  if (!Array.isArray(keys)) throw corrupt('keys is not an array');
  if (keys.length > MAX_RING_KEYS) throw new RingStoreError('too-large', `more than ${MAX_RING_KEYS} keys`);
  const entries = keys.map(parseEntry);
  if (new Set(entries.map((entry) => entry.id)).size !== entries.length) throw corrupt('two keys with one id');
  const document = { ring: expectedRing, epoch, entries, unknown, body, macs: parseMacs(text.slice(newline + 1)) };
  refuseUnwritable(document);
  return document;
}

/** What could be read and not be written again would be a ring that nobody can rotate any more: `1e400`, deep nesting. */
function refuseUnwritable(content: RingContent): void {
  try {
    encodeBody(content);
  } catch {
    throw corrupt('a member that cannot be written again');
  }
}

/** The text of the first line, ASCII. */
export function encodeBody(content: RingContent): string {
  return canonicalJson({
    ...content.unknown,
    format: RING_FORMAT,
    ring: content.ring,
    epoch: content.epoch,
    critical: [],
    keys: content.entries.map((entry) => ({
      ...entry.unknown,
      id: entry.id,
      created: formatTime(entry.created),
      activates: formatTime(entry.activates),
      sealsUntil: formatTime(entry.sealsUntil),
      opensUntil: formatTime(entry.opensUntil),
      ...(entry.revoked === undefined ? {} : { revoked: formatTime(entry.revoked) }),
      wraps: entry.wraps.map(encodeWrap),
    })),
  });
}

/** Joins the first line and its MACs into the stored text. */
export function encodeDocument(body: string, macs: ReadonlyMap<string, Uint8Array>): string {
  const lines = `${body}\n${canonicalJson({
    macs: Object.fromEntries([...macs].map(([id, mac]) => [id, Buffer.from(mac).toString('base64url')])),
  })}`;
  if (lines.length > MAX_DOCUMENT_BYTES) throw new RingStoreError('too-large', 'over 256 KiB');
  return lines;
}

/** The context every wrap of a key is bound to: ring, purpose and the key's times. */
export function wrapContext(ring: string, times: KeyTimes): Readonly<Record<string, string>> {
  return Object.freeze({
    'sealring:ring': ring,
    'sealring:purpose': 'data-key',
    'sealring:times': [times.created, times.activates, times.sealsUntil, times.opensUntil].map(formatTime).join('/'),
  });
}

/** What a wrap's signature covers, where an unwrap proves no origin. */
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
      wrapped: Buffer.from(wrap.wrapped).toString('base64url'),
    },
    { sortKeys: true },
  );
  return Buffer.from(text, 'ascii');
}

/** Whether two wraps are the same ciphertext under the same key version. */
export function sameWrap(a: WrappedKey, b: WrappedKey): boolean {
  return a.provider === b.provider && a.keyId === b.keyId && isDeepStrictEqual([...a.wrapped], [...b.wrapped]);
}

function parseEntry(value: unknown): RingEntry {
  const { id, created, activates, sealsUntil, opensUntil, revoked, wraps, ...unknown } = asObject(value, 'key');
  if (typeof id !== 'string' || decodeBase64url(id)?.length !== KEY_ID_BYTES) throw corrupt('key id');
  const times = {
    created: parseTime(created, 'created'),
    activates: parseTime(activates, 'activates'),
    sealsUntil: parseTime(sealsUntil, 'sealsUntil'),
    opensUntil: parseTime(opensUntil, 'opensUntil'),
  };
  if (!(times.activates < times.sealsUntil && times.sealsUntil < times.opensUntil)) throw corrupt('times out of order');
  if (!Array.isArray(wraps) || wraps.length === 0 || wraps.length > MAX_WRAPS) throw corrupt('wraps');
  return {
    id,
    ...times,
    revoked: revoked === undefined ? undefined : parseTime(revoked, 'revoked'),
    wraps: wraps.map(parseWrap),
    unknown,
  };
}

function parseWrap(value: unknown): RingWrap {
  const { provider, keyId, wrapped, signature, ...unknown } = asObject(value, 'wrap');
  if (typeof provider !== 'string' || !/^[a-z0-9-]{1,64}$/.test(provider)) throw corrupt('provider');
  if (typeof keyId !== 'string' || keyId === '' || keyId.length > MAX_KEY_ID_CHARS) throw corrupt('KMS key id');
  return {
    provider,
    keyId,
    wrapped: parseBytes(wrapped, 'wrapped'),
    ...(signature === undefined ? {} : { signature: parseBytes(signature, 'signature') }),
    unknown,
  };
}

function encodeWrap(wrap: RingWrap): object {
  return {
    ...wrap.unknown,
    provider: wrap.provider,
    keyId: wrap.keyId,
    wrapped: Buffer.from(wrap.wrapped).toString('base64url'),
    ...(wrap.signature === undefined ? {} : { signature: Buffer.from(wrap.signature).toString('base64url') }),
  };
}

function parseMacs(line: string): ReadonlyMap<string, Buffer> {
  const { macs } = parseObject(line, 'second line');
  const entries = Object.entries(asObject(macs, 'macs'));
  if (entries.length > MAX_RING_KEYS) throw corrupt('macs');
  return new Map(
    entries.map(([id, mac]): [string, Buffer] => {
      const bytes = parseBytes(mac, 'mac');
      if (bytes.length !== 32) throw corrupt('mac');
      return [id, bytes];
    }),
  );
}

/** Exactly `YYYY-MM-DDTHH:MM:SSZ`: one spelling for one second. */
function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

function parseTime(value: unknown, what: string): number {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) throw corrupt(what);
  const ms = Date.parse(value);
  // Date.parse takes the 30th of February for a day in March.
  if (!Number.isFinite(ms) || formatTime(ms) !== value) throw corrupt(what);
  return ms;
}

function parseBytes(value: unknown, what: string): Buffer {
  const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined;
  if (bytes === undefined || bytes.length === 0) throw corrupt(what);
  return bytes;
}

function parseObject(text: string, what: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw corrupt(`${what} is not JSON`);
  }
  return asObject(value, what);
}

function asObject(value: unknown, what: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw corrupt(`${what} is not an object`);
  return value as JsonObject;
}
