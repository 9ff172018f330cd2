import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { DataKey } from '../../src/keys/data-key.ts';
import { ancestorsMacOf, certificateOf, voucherOf, wrapMacOf } from '../../src/ring/certificates.ts';
import {
  type Ancestors,
  encodeDocument,
  formatTime,
  type Macs,
  type RingEntry,
  type RingWrap,
} from '../../src/ring/document.ts';

/*
 * node packages/core/test/vectors/make-ring-documents.ts FILE
 *
 * Writes vectors/ring-documents.json: ring documents, their certificates, and what members adopt from them. Everything
 * in it follows from this file: the same output each time.
 */
const RING = 'payments';
const HOUR_MS = 3_600_000;
const T0 = Date.parse('2026-11-21T03:00:00Z');
const SKEW_MS = 300_000;
/** How far beyond the tolerated skew a key may be made: a second for each key of a full ring. */
const AHEAD_MS = 64_000;

type Json = Record<string, unknown>;

/** A key of the vectors: its bytes are the hash of its name. */
interface MadeKey {
  readonly name: string;
  readonly dataKey: Buffer;
  readonly held: DataKey;
  readonly entry: RingEntry;
}

function bytesOf(text: string): Buffer {
  return createHash('sha256').update(`sealring vectors: ${text}`).digest();
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

function wrapOf(held: DataKey, name: string): RingWrap {
  const wrap = { provider: 'local', keyId: 'master-1', wrapped: bytesOf(`wrap of ${name}`) };
  return { ...wrap, mac: wrapMacOf(RING, wrap, held.authenticator) };
}

function keyOf(name: string, createdMs: number, by: readonly MadeKey[], more: Partial<RingEntry> = {}): MadeKey {
  const dataKey = bytesOf(name);
  const held = new DataKey(dataKey, RING);
  const times = {
    created: createdMs,
    activates: createdMs + 2 * HOUR_MS,
    sealsUntil: createdMs + 30 * HOUR_MS,
    opensUntil: createdMs + 32 * HOUR_MS,
    ...more,
  };
  const named = { id: held.id, ...times };
  const vouchers = vouchersOf(named, by);
  const entry = { ...named, vouchers, revoked: undefined, wraps: [wrapOf(held, name)] };
  const key = { name, dataKey, held, entry };
  return by.length === 0 ? key : naming(key, by);
}

function vouchersOf(entry: Parameters<typeof voucherOf>[1], by: readonly MadeKey[]): Macs {
  return new Map(by.map(({ held }) => [held.id, voucherOf(RING, entry, held.authenticator)]));
}

/** A key's certificate of its ancestors. */
function ancestorsOf({ held }: MadeKey, ancestors: readonly MadeKey[]): Ancestors {
  const ids = ancestors.map((key) => key.held.id);
  return { ids, mac: ancestorsMacOf(RING, ids, held.authenticator) };
}

function naming(key: MadeKey, ancestors: readonly MadeKey[]): MadeKey {
  return { ...key, entry: { ...key.entry, ancestors: ancestorsOf(key, ancestors) } };
}

function withoutAncestors(key: MadeKey): MadeKey {
  return { ...key, entry: { ...key.entry, ancestors: undefined } };
}

/** The entry with a revocation that the keys `by` certify. */
function revoked({ entry }: MadeKey, by: readonly MadeKey[], at: number = T0): RingEntry {
  const macs = new Map(by.map(({ held }) => [held.id, certificateOf(RING, entry.id, at, held.authenticator)]));
  return { ...entry, revoked: { at, by: macs } };
}

function textOf(entries: readonly RingEntry[], ring: string = RING): string {
  return encodeDocument({ ring, claim: undefined, entries });
}

const a = keyOf('a', T0 - 10 * HOUR_MS, []);
const b = keyOf('b', T0 - 5 * HOUR_MS, [a]);
const c = keyOf('c', T0 - HOUR_MS, [a, b]);
const ended = keyOf('ended', T0 - 50 * HOUR_MS, []);
const stranger = keyOf('stranger', T0 - HOUR_MS, []);
const heir = naming(keyOf('heir', T0 - HOUR_MS, [a, b]), [b, a]);
const silent = withoutAncestors(keyOf('silent', T0 - HOUR_MS, [a, b]));
const KEYS = [a, b, c, ended, stranger, heir, silent];

/* Documents. */

const ENTRY = JSON.parse(textOf([revoked(a, [a, b])])).keys[0] as Json;
const OTHER = JSON.parse(textOf([b.entry])).keys[0] as Json;
const ANCESTORS = JSON.parse(textOf([heir.entry])).keys[0].ancestors as Json;

function json(keys: readonly unknown[], more: Json = {}): string {
  return JSON.stringify({ format: 'sealring/ring/1', ring: RING, ...more, keys });
}

const withKey = (changes: Json): string => json([changed(ENTRY, changes)]);
const withWrap = (changes: Json): string => withKey({ wraps: [changed((ENTRY['wraps'] as Json[])[0] ?? {}, changes)] });
const withAncestors = (changes: Json): string => withKey({ ancestors: changed(ANCESTORS, changes) });
const withRevocation = (changes: Json): string => withKey({ revoked: changed(ENTRY['revoked'] as Json, changes) });

function changed(object: Json, changes: Json): Json {
  return { ...object, ...changes };
}

/** The same document with the members of every object in reverse order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, reversed(member)] as const);
  return Object.fromEntries(members.toReversed());
}

function macsOf(count: number): Json {
  const macs = Array.from({ length: count }, (_, i) => [
    base64url(bytesOf(`id ${i}`).subarray(0, 9)),
    base64url(bytesOf(`mac ${i}`)),
  ]);
  return Object.fromEntries(macs);
}

function idsOf(count: number): readonly string[] {
  return Object.keys(macsOf(count));
}

function wrapsOf(count: number): readonly Json[] {
  const [wrap = {}] = ENTRY['wraps'] as Json[];
  return Array.from({ length: count }, (_, i) => ({ ...wrap, wrapped: base64url(bytesOf(`wrapped ${i}`)) }));
}

function keysOf(count: number): readonly Json[] {
  return Array.from({ length: count }, (_, i) => ({ ...OTHER, id: base64url(bytesOf(`key ${i}`).subarray(0, 9)) }));
}

const good = json([ENTRY, OTHER]);
const mac = base64url(bytesOf('mac'));

/** For each name: whether the document parses, and its text, or the pieces [text, n] of a long one. */
const DOCUMENTS: Readonly<Record<string, readonly [parses: boolean, text: string | readonly [string, number][]]>> = {
  'two keys, one of them revoked': [true, good],
  'no key': [true, json([])],
  'a claim and no key': [true, json([], { claim: 'A'.repeat(22) })],
  'a claim beside keys': [true, json([OTHER], { claim: 'A'.repeat(22) })],
  'members in another order': [true, JSON.stringify({ keys: [OTHER], ring: RING, format: 'sealring/ring/1' })],
  'a claim in another place': [true, JSON.stringify({ claim: 'A'.repeat(22), ...JSON.parse(json([OTHER])) })],
  'members of a key in another order': [true, json([Object.fromEntries(Object.entries(OTHER).toReversed())])],
  'all members in the opposite order': [
    true,
    JSON.stringify(
      reversed(JSON.parse(textOf([{ ...heir.entry, revoked: revoked(heir, [heir, c]).revoked }, b.entry]))),
    ),
  ],
  'members in another order, with a space': [
    false,
    JSON.stringify({ keys: [OTHER], ring: RING, format: 'sealring/ring/1' }).replace('"ring":', '"ring": '),
  ],
  'members in another order, one of them twice': [
    false,
    JSON.stringify({ ring: RING, keys: [OTHER], format: 'sealring/ring/1' }).replace(
      '"keys":',
      '"ring":"payments","keys":',
    ),
  ],
  'vouchers in another order': [
    true,
    withKey({ vouchers: Object.fromEntries(Object.entries(macsOf(3)).toReversed()) }),
  ],
  '64 keys': [true, json(keysOf(64))],
  '65 keys': [false, json(keysOf(65))],
  '16 wraps': [true, withKey({ wraps: wrapsOf(16) })],
  '17 wraps': [false, withKey({ wraps: wrapsOf(17) })],
  'no wrap': [false, withKey({ wraps: [] })],
  '8 vouchers': [true, withKey({ vouchers: macsOf(8) })],
  '9 vouchers': [false, withKey({ vouchers: macsOf(9) })],
  '8 certificates': [true, withRevocation({ by: macsOf(8) })],
  '9 certificates': [false, withRevocation({ by: macsOf(9) })],
  ancestors: [true, withAncestors({})],
  'no ancestor': [true, withAncestors({ ids: [] })],
  '8 ancestors': [true, withAncestors({ ids: idsOf(8) })],
  '9 ancestors': [false, withAncestors({ ids: idsOf(9) })],
  'ancestors that their key did not certify': [true, withAncestors({ mac })],
  'ancestors that are null': [false, withKey({ ancestors: null })],
  'ancestors that are an array': [false, withKey({ ancestors: ANCESTORS['ids'] })],
  'ancestors without ids': [false, withAncestors({ ids: undefined })],
  'ancestors by id': [false, withAncestors({ ids: macsOf(1) })],
  'an ancestor that is no key id': [false, withAncestors({ ids: ['AAAA'] })],
  'an ancestor that is a number': [false, withAncestors({ ids: [1] })],
  'ancestors without a mac': [false, withAncestors({ mac: undefined })],
  'a mac of ancestors of 31 bytes': [false, withAncestors({ mac: 'A'.repeat(42) })],
  'an unknown member of ancestors': [false, withAncestors({ at: '2026-11-21T03:00:00Z' })],
  'a revocation that nobody certifies': [true, withRevocation({ by: {} })],
  'an empty text': [false, ''],
  'no JSON': [false, '{"format":'],
  'an array': [false, '[]'],
  null: [false, 'null'],
  'two lines': [false, `${good}\n{"macs":{}}`],
  'a line feed at the end': [false, `${good}\n`],
  'a space at the end': [false, `${good} `],
  'a space inside': [false, good.replace('"ring":', '"ring": ')],
  'a byte order mark': [false, `\ufeff${good}`],
  'a character outside of ASCII': [false, withWrap({ keyId: 'schl\u00fcssel' })],
  'a character outside of ASCII, escaped': [true, escaped(withWrap({ keyId: 'schl\u00fcssel \u{1f511} \u007f' }))],
  'an escape that is not needed': [false, withWrap({ keyId: '@' }).replace('"@"', '"\\u0040"')],
  'an escaped solidus': [false, good.replace('sealring/ring', 'sealring\\/ring')],
  'a member twice, alike': [false, good.replace('"ring":', '"ring":"payments","ring":')],
  'a member twice, the second another': [false, good.replace('"keys":', '"ring":"orders","keys":')],
  'another format': [false, good.replace('sealring/ring/1', 'sealring/ring/2')],
  'the name of another ring': [false, good.replace('payments', 'refunds1')],
  'no ring name': [false, JSON.stringify({ format: 'sealring/ring/1', keys: [] })],
  'a ring name that is a number': [false, JSON.stringify({ format: 'sealring/ring/1', ring: 1, keys: [] })],
  'an unknown member': [false, json([OTHER], { epoch: '17' })],
  '1e400': [false, json([OTHER]).replace('"keys":', '"epoch":1e400,"keys":')],
  '1e400 as a time': [false, withKey({ created: 0 }).replace('"created":0', '"created":1e400')],
  NaN: [false, json([OTHER]).replace('"keys":', '"epoch":NaN,"keys":')],
  __proto__: [false, json([OTHER]).replace('"keys":', '"__proto__":{},"keys":')],
  'keys is an object': [false, JSON.stringify({ format: 'sealring/ring/1', ring: RING, keys: {} })],
  'keys is null': [false, JSON.stringify({ format: 'sealring/ring/1', ring: RING, keys: null })],
  'a key that is null': [false, json([null])],
  'nested deeply': [
    false,
    [
      ['{"format":"sealring/ring/1","ring":"payments","keys":', 1],
      ['[', 100_000],
      [']', 100_000],
      ['}', 1],
    ],
  ],
  'a claim of 21 characters': [false, json([], { claim: 'A'.repeat(21) })],
  'a claim that is null': [false, json([], { claim: null })],
  'two keys with one id': [false, json([OTHER, OTHER])],
  'an unknown member of a key': [false, withKey({ state: 'active' })],
  '__proto__ of a key': [false, withKey({ x: 1 }).replace('"x":1', '"__proto__":{}')],
  'no vouchers': [false, withKey({ vouchers: undefined })],
  'vouchers are an array': [false, withKey({ vouchers: [] })],
  'revoked is null': [false, withKey({ revoked: null })],
  'revoked is a time': [false, withKey({ revoked: '2026-11-21T03:00:00Z' })],
  'an unknown member of a revocation': [false, withRevocation({ why: 'stolen' })],
  'a revocation without a time': [false, withRevocation({ at: undefined })],
  'a revocation in the year 0': [true, withRevocation({ at: '0000-02-29T00:00:00Z' })],
  'a revocation in the year 9999': [true, withRevocation({ at: '9999-12-31T23:59:59Z' })],
  'a revocation at a time that does not exist': [false, withRevocation({ at: '2100-02-29T00:00:00Z' })],
  'a key id of 8 bytes': [false, withKey({ id: 'AAAAAAAAAAA' })],
  'a key id that is padded': [false, withKey({ id: 'AAAAAAAAAAA=' })],
  'a key id of the other alphabet': [false, withKey({ id: 'AAAAAAAAAA+/' })],
  'a voucher id that is no key id': [false, withKey({ vouchers: { AAAA: mac } })],
  'a voucher of 31 bytes': [false, withKey({ vouchers: { AAAAAAAAAAAA: 'A'.repeat(42) } })],
  'a voucher that is not canonical': [false, withKey({ vouchers: { AAAAAAAAAAAA: `${'A'.repeat(42)}B` } })],
  'a voucher that is a number': [false, withKey({ vouchers: { AAAAAAAAAAAA: 1 } })],
  'no created': [false, withKey({ created: undefined })],
  'a fraction of a second': [false, withKey({ created: '2026-11-20T17:00:00.000Z' })],
  'another time zone': [false, withKey({ created: '2026-11-20T17:00:00+00:00' })],
  'the 30th of February': [false, withKey({ created: '2026-02-30T03:00:00Z' })],
  'a leap second': [false, withKey({ created: '2026-06-30T23:59:60Z' })],
  'hour 24': [false, withKey({ created: '2026-11-20T24:00:00Z' })],
  'digits of another script': [false, withKey({ created: '2026-11-20T17:00:0\u0660Z' })],
  'seals until it activates': [false, withKey({ sealsUntil: ENTRY['activates'] })],
  'opens until it seals no more': [false, withKey({ opensUntil: ENTRY['sealsUntil'] })],
  'activates before it was created': [true, withKey({ activates: formatTime(a.entry.created - HOUR_MS) })],
  'the longest life': [true, withKey({ opensUntil: formatTime(a.entry.created + 5 * 366 * 24 * HOUR_MS) })],
  'a life that is too long': [
    false,
    withKey({ opensUntil: formatTime(a.entry.created + 5 * 366 * 24 * HOUR_MS + 1_000) }),
  ],
  'the longest lead': [true, lead(366 * 24 * HOUR_MS)],
  'a lead that is too long': [false, lead(366 * 24 * HOUR_MS + 1_000)],
  'an activation too long before': [
    false,
    withKey({ activates: formatTime(a.entry.created - 366 * 24 * HOUR_MS - 1_000) }),
  ],
  'a wrap with a signature': [true, withWrap({ signature: 'AAAA' })],
  'a signature that is null': [false, withWrap({ signature: null })],
  'an empty signature': [false, withWrap({ signature: '' })],
  'an unknown member of a wrap': [false, withWrap({ region: 'eu-west-1' })],
  'no mac of a wrap': [false, withWrap({ mac: undefined })],
  'a mac of 33 bytes': [false, withWrap({ mac: 'A'.repeat(44) })],
  'a provider in capitals': [false, withWrap({ provider: 'AWS' })],
  'a provider of 64 characters': [true, withWrap({ provider: 'a'.repeat(64) })],
  'a provider of 65 characters': [false, withWrap({ provider: 'a'.repeat(65) })],
  'an empty KMS key id': [false, withWrap({ keyId: '' })],
  'a KMS key id of 2048 UTF-16 units': [true, escaped(withWrap({ keyId: '\u{1f511}'.repeat(1_024) }))],
  'a KMS key id of 2049 UTF-16 units': [false, escaped(withWrap({ keyId: `${'\u{1f511}'.repeat(1_024)}k` }))],
  'a KMS key id with a lone surrogate': [true, escaped(withWrap({ keyId: '\ud800' }))],
  'an empty wrapped': [false, withWrap({ wrapped: '' })],
  'a wrapped that is padded': [false, withWrap({ wrapped: 'AA==' })],
  'a wrapped that is not canonical': [false, withWrap({ wrapped: 'AB' })],
  'a wrapped that is a number': [false, withWrap({ wrapped: 5 })],
  'a wrapped of 2048 bytes': [true, withWrap({ wrapped: base64url(Buffer.alloc(2_048, 1)) })],
  'a wrapped of 2049 bytes': [false, withWrap({ wrapped: base64url(Buffer.alloc(2_049, 1)) })],
  'over 256 KiB': [false, [[' ', 262_145]]],
};

function lead(ms: number): string {
  const activates = a.entry.created + ms;
  return withKey({
    activates: formatTime(activates),
    sealsUntil: formatTime(activates + HOUR_MS),
    opensUntil: formatTime(activates + 2 * HOUR_MS),
  });
}

/** ASCII only, in canonical form. */
function escaped(text: string): string {
  return text.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/* Certificates. */

function certificates(): readonly Json[] {
  const [plain] = b.entry.wraps as readonly [RingWrap];
  const signed = { ...plain, keyId: 'k\u00fc\u{1f511}"\\\u007f', signature: bytesOf('signature') };
  const wrapCase = (name: string, wrap: RingWrap): Json => ({
    name,
    kind: 'wrap',
    signer: 'b',
    provider: wrap.provider,
    keyId: wrap.keyId,
    wrapped: base64url(wrap.wrapped),
    ...(wrap.signature === undefined ? {} : { signature: base64url(wrap.signature) }),
    mac: base64url(wrapMacOf(RING, wrap, b.held.authenticator)),
  });
  return [
    ...[b, c, ended].map(({ name, entry }) => ({
      name: `a vouches for ${name}`,
      kind: 'voucher',
      signer: 'a',
      key: name,
      mac: base64url(voucherOf(RING, entry, a.held.authenticator)),
    })),
    ...[[b, a], []].map((ancestors) => ({
      name: `heir names ${ancestors.map(({ name }) => name).join(' and ') || 'nobody'}`,
      kind: 'ancestors',
      signer: 'heir',
      keys: ancestors.map(({ name }) => name),
      mac: base64url(ancestorsOf(heir, ancestors).mac),
    })),
    wrapCase('a wrap', plain),
    wrapCase('a wrap with a signature, and a KMS key id that is escaped', signed),
    ...[a, b].map((signer) => ({
      name: `${signer.name} certifies that a is revoked`,
      kind: 'revocation',
      signer: signer.name,
      key: 'a',
      at: formatTime(T0),
      mac: base64url(certificateOf(RING, a.held.id, T0, signer.held.authenticator)),
    })),
  ];
}

/* Adoption. */

interface LearnCase {
  readonly known?: readonly MadeKey[];
  /** Of the known keys, those that are known to be revoked. */
  readonly revoked?: readonly MadeKey[];
  readonly past?: readonly MadeKey[];
  readonly pinMs?: number;
  readonly nowMs?: number;
  readonly entries: readonly RingEntry[];
  /** The known keys that are revoked then; tombstones; keys worth an unwrap, newest first. */
  readonly expect: Partial<Record<'revoked' | 'tombstones' | 'wanted', readonly MadeKey[]>>;
}

const otherTimes = { ...c.entry, sealsUntil: c.entry.sealsUntil + 1_000 };
const atLimit = keyOf('at the limit', T0 + SKEW_MS + AHEAD_MS, [a]);
const beyond = keyOf('beyond the limit', T0 + SKEW_MS + AHEAD_MS + 1_000, [a]);
const [older, newer] = ['twin 1', 'twin 2']
  .map((name) => keyOf(name, T0 - 2 * HOUR_MS, [a]))
  .toSorted((one, other) => (one.held.id < other.held.id ? -1 : 1)) as [MadeKey, MadeKey];
const hasty = keyOf('hasty', T0 - 1_000, [a], { activates: T0 - 30 * HOUR_MS });
const many = Array.from({ length: 17 }, (_, i) => keyOf(`revoked ${i}`, T0 - 4 * HOUR_MS + i * 1_000, [a]));
const selfVouched = keyOf('vouched for by itself', T0 - HOUR_MS, []);
const namingA = ancestorsOf(silent, [a]);
const wrongMac = new Map([[a.held.id, bytesOf('wrong')]]);

const LEARN: Readonly<Record<string, LearnCase>> = {
  'nothing of an empty document': { entries: [], expect: {} },
  'nothing of what is known': { known: [a, b], entries: [a.entry, b.entry], expect: {} },
  'a key that a known one vouches for': { entries: [a.entry, c.entry], expect: { wanted: [c] } },
  'two keys, the newer first': { entries: [b.entry, c.entry], expect: { wanted: [c, b] } },
  'a key that a revoked one vouches for': { revoked: [a], entries: [c.entry], expect: { revoked: [a], wanted: [c] } },
  'a key that an ended one vouches for': {
    known: [],
    past: [ended],
    entries: [{ ...c.entry, vouchers: vouchersOf(c.entry, [ended]), ancestors: ancestorsOf(c, [ended]) }],
    expect: { wanted: [c] },
  },
  'no key that nobody vouches for': { entries: [stranger.entry], expect: {} },
  'no key that only a stranger vouches for': {
    entries: [{ ...c.entry, vouchers: vouchersOf(c.entry, [stranger]) }, stranger.entry],
    expect: {},
  },
  'no key that vouches for itself': {
    entries: [{ ...selfVouched.entry, vouchers: vouchersOf(selfVouched.entry, [selfVouched]) }],
    expect: {},
  },
  'no key that does not name who vouches for it': {
    entries: [{ ...b.entry, ancestors: ancestorsOf(b, [stranger]) }],
    expect: {},
  },
  'no key without ancestors': { entries: [{ ...b.entry, ancestors: undefined }], expect: {} },
  'no key with a wrong voucher': { entries: [{ ...c.entry, vouchers: wrongMac }], expect: {} },
  'no key with a voucher for other times': { entries: [otherTimes], expect: {} },
  'no key whose life is over': { nowMs: c.entry.opensUntil, known: [b], entries: [c.entry], expect: {} },
  'a key in the last second of its life': {
    nowMs: c.entry.opensUntil - 1_000,
    known: [b],
    entries: [c.entry],
    expect: { wanted: [c] },
  },
  'a key made as far ahead as the clocks allow': { entries: [atLimit.entry], expect: { wanted: [atLimit] } },
  'no key made further ahead': { entries: [beyond.entry], expect: {} },
  'a revocation that the key itself certifies': { entries: [revoked(a, [a])], expect: { revoked: [a] } },
  'a revocation that a newer key certifies': {
    known: [a, b],
    entries: [revoked(a, [b]), b.entry],
    expect: { revoked: [a] },
  },
  'no revocation that an older key certifies': { known: [a, b], entries: [a.entry, revoked(b, [a])], expect: {} },
  'no revocation that an unknown key certifies': { entries: [revoked(a, [c]), stranger.entry], expect: {} },
  'no revocation that nobody certifies': { entries: [revoked(a, [])], expect: {} },
  'no revocation of another moment': {
    entries: [{ ...a.entry, revoked: { at: T0 + 1_000, by: revoked(a, [a]).revoked?.by ?? new Map() } }],
    expect: {},
  },
  'no revocation by the certificate of another key': {
    known: [a, b],
    entries: [{ ...a.entry, revoked: { at: T0, by: revoked(b, [b]).revoked?.by ?? new Map() } }, b.entry],
    expect: {},
  },
  'no revocation that a revoked key certifies of another': {
    known: [a, b],
    revoked: [b],
    entries: [revoked(a, [b])],
    expect: { revoked: [b] },
  },
  'the newest revocation first, so that its key certifies nothing then': {
    known: [a, b],
    entries: [revoked(a, [b]), revoked(b, [b])],
    expect: { revoked: [b] },
  },
  'a revocation by a key that an ended one stands for': {
    known: [a],
    past: [c],
    entries: [revoked(a, [c])],
    expect: { revoked: [a] },
  },
  'no revocation by an ended key that is older': {
    known: [b],
    past: [ended],
    entries: [revoked(b, [ended])],
    expect: {},
  },
  'what is revoked stays so': { revoked: [a], entries: [a.entry], expect: { revoked: [a] } },
  'of one second, the greater id is the newer': {
    known: [older, newer],
    entries: [revoked(older, [newer]), revoked(newer, [older])],
    expect: { revoked: [older] },
  },
  'newer by what was made later, not by what is active later': {
    known: [a, hasty],
    entries: [revoked(a, [hasty]), revoked(hasty, [a])],
    expect: { revoked: [a] },
  },
  'a tombstone of a key that a newer one revoked': {
    known: [a, c],
    entries: [revoked(b, [c])],
    expect: { tombstones: [b] },
  },
  'a tombstone needs no voucher': {
    known: [a, c],
    entries: [{ ...revoked(b, [c]), vouchers: new Map() }],
    expect: { tombstones: [b] },
  },
  'a key of which only itself says that it is revoked is unwrapped': {
    entries: [revoked(b, [b])],
    expect: { wanted: [b] },
  },
  'no tombstone of a key whose life is over': {
    nowMs: b.entry.opensUntil,
    known: [c],
    entries: [revoked(b, [c])],
    expect: {},
  },
  'a tombstone of every key of a ring of many': {
    known: [a, c],
    entries: many.map((key) => revoked(key, [c])),
    expect: { tombstones: many },
  },
  'a tombstone of a key that the pin refuses': {
    known: [a],
    pinMs: T0 - 2 * HOUR_MS,
    entries: [b.entry, c.entry],
    expect: { tombstones: [b], wanted: [c] },
  },
  'what the pin refuses needs no voucher, and no certificate': {
    known: [c],
    pinMs: T0 - 2 * HOUR_MS,
    entries: [a.entry, revoked(b, [])],
    expect: { tombstones: [a, b] },
  },
  'a known key that the pin refuses stays known': { known: [a], pinMs: T0, entries: [a.entry], expect: {} },
  'no tombstone of a key that the pin refuses and whose life is over': {
    nowMs: b.entry.opensUntil,
    known: [c],
    pinMs: T0 - 2 * HOUR_MS,
    entries: [b.entry],
    expect: {},
  },
  'a tombstone of every key that the pin refuses, of many': {
    known: [a, c],
    pinMs: T0 - 2 * HOUR_MS,
    entries: many.map((key) => key.entry),
    expect: { tombstones: many },
  },
  'an older key that a known one names': {
    known: [heir],
    entries: [a.entry, heir.entry],
    expect: { wanted: [a] },
  },
  'two that a known one names, the newer first': {
    known: [heir],
    entries: [a.entry, b.entry],
    expect: { wanted: [b, a] },
  },
  'what a known key names only now': {
    known: [silent],
    entries: [a.entry, { ...silent.entry, ancestors: namingA }],
    expect: { wanted: [a] },
  },
  'what a revoked key names': { revoked: [heir], entries: [a.entry], expect: { revoked: [heir], wanted: [a] } },
  'no key that a known one names under a wrong mac': {
    known: [silent],
    entries: [a.entry, { ...silent.entry, ancestors: { ...namingA, mac: bytesOf('wrong') } }],
    expect: {},
  },
  'no key that was added to those a known one names': {
    known: [silent],
    entries: [a.entry, b.entry, { ...silent.entry, ancestors: { ...namingA, ids: [...namingA.ids, b.held.id] } }],
    expect: {},
  },
  'no key that another certifies to be named': {
    known: [silent],
    entries: [a.entry, { ...silent.entry, ancestors: ancestorsOf(stranger, [a]) }],
    expect: {},
  },
  'no key that only a stranger names': { known: [silent], entries: [a.entry, naming(stranger, [a]).entry], expect: {} },
  'no key that is named and whose life is over': {
    nowMs: a.entry.opensUntil,
    known: [heir],
    entries: [a.entry],
    expect: {},
  },
  'a tombstone of a key that is named and that a newer one revoked': {
    known: [heir],
    entries: [revoked(a, [heir])],
    expect: { tombstones: [a] },
  },
  'a tombstone of a key that is named and that the pin refuses': {
    known: [heir],
    pinMs: T0 - 2 * HOUR_MS,
    entries: [a.entry],
    expect: { tombstones: [a] },
  },
};

function learnCase([name, given]: [string, LearnCase]): Json {
  const revokedKeys = given.revoked ?? [];
  const known = given.known ?? (revokedKeys.length > 0 ? [] : [a]);
  const names = (keys: readonly MadeKey[]): readonly string[] => keys.map((key) => key.name);
  const ids = (keys: readonly MadeKey[] = []): readonly string[] => keys.map(({ held }) => held.id);
  return {
    name,
    now: formatTime(given.nowMs ?? T0),
    known: names([...new Set([...known, ...revokedKeys])]),
    revoked: names(revokedKeys),
    past: names(given.past ?? []),
    ...(given.pinMs === undefined ? {} : { acceptKeysCreatedAfter: formatTime(given.pinMs) }),
    document: textOf(given.entries),
    expect: {
      revoked: ids(given.expect.revoked),
      tombstones: ids(given.expect.tombstones),
      wanted: ids(given.expect.wanted),
    },
  };
}

/** A list with one member per line. */
function lines(values: readonly unknown[]): string {
  return `[\n${values.map((value) => `    ${escaped(JSON.stringify(value))}`).join(',\n')}\n  ]`;
}

/** The text of vectors/ring-documents.json. */
export function ringDocumentVectors(): string {
  const keys = [...KEYS, atLimit, beyond, older, newer, hasty, selfVouched, ...many];
  const members = {
    keys: keys.map(({ name, dataKey, entry }) => ({
      name,
      dataKey: base64url(dataKey),
      entry: JSON.parse(textOf([entry])).keys[0],
    })),
    documents: Object.entries(DOCUMENTS).map(([name, [parses, text]]) => ({
      name,
      expect: { parses },
      ...(typeof text === 'string' ? { text } : { textPieces: text }),
    })),
    certificates: certificates(),
    learn: Object.entries(LEARN).map(learnCase),
  };
  const head = {
    description: 'Ring documents: which parse, what certifies their facts, what is learned of them',
    format: 1,
  };
  const facts = { ...head, ring: RING, clockSkewSeconds: SKEW_MS / 1_000 };
  const text = Object.entries(facts).map(([name, value]) => `  "${name}": ${JSON.stringify(value)}`);
  const lists = Object.entries(members).map(([name, values]) => `  "${name}": ${lines(values)}`);
  return `{\n${[...text, ...lists].join(',\n')}\n}\n`;
}

const [, program = '', file] = process.argv;
if (program.endsWith('make-ring-documents.ts') && file !== undefined) writeFileSync(file, ringDocumentVectors());
