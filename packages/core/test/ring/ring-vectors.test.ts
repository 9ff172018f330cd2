import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DataKey } from '../../src/keys/data-key.ts';
import { ancestorsMacOf, certificateOf, type Signer, voucherOf, wrapMacOf } from '../../src/ring/certificates.ts';
import { encodeDocument, parseDocument, type RingEntry } from '../../src/ring/document.ts';
import { isTombstone, type Judgement, unwrappedKey } from '../../src/ring/facts.ts';
import { learn } from '../../src/ring/learn.ts';
import { createSnapshot, type RingKey } from '../../src/ring/snapshot.ts';
import { ringDocumentVectors } from '../vectors/make-ring-documents.ts';

interface VectorKey {
  readonly name: string;
  readonly dataKey: string;
  readonly entry: object;
}

interface Document {
  readonly name: string;
  readonly expect: { readonly parses: boolean };
  readonly text?: string;
  readonly textPieces?: readonly (readonly [string, number])[];
}

interface Certificate {
  readonly name: string;
  readonly kind: 'voucher' | 'ancestors' | 'wrap' | 'revocation';
  readonly signer: string;
  readonly key?: string;
  readonly keys?: readonly string[];
  readonly at?: string;
  readonly provider?: string;
  readonly keyId?: string;
  readonly wrapped?: string;
  readonly signature?: string;
  readonly mac: string;
}

interface Learn {
  readonly name: string;
  readonly now: string;
  readonly known: readonly string[];
  readonly revoked: readonly string[];
  readonly past: readonly string[];
  readonly acceptKeysCreatedAfter?: string;
  readonly document: string;
  readonly expect: Readonly<Record<'revoked' | 'tombstones' | 'wanted', readonly string[]>>;
}

interface Vectors {
  readonly ring: string;
  readonly clockSkewSeconds: number;
  readonly keys: readonly VectorKey[];
  readonly documents: readonly Document[];
  readonly certificates: readonly Certificate[];
  readonly learn: readonly Learn[];
}

const text = readFileSync(new URL('../../../../vectors/ring-documents.json', import.meta.url), 'utf8');
const { ring, clockSkewSeconds, keys, documents, certificates, learn: learning }: Vectors = JSON.parse(text);
const bytes = (encoded: string): Buffer => Buffer.from(encoded, 'base64url');

function heldOf(name: string): DataKey {
  const key = keys.find((one) => one.name === name);
  return new DataKey(bytes(key?.dataKey ?? ''), ring);
}

function entryOf(name: string): RingEntry {
  const key = keys.find((one) => one.name === name);
  const document = JSON.stringify({ format: 'sealring/ring/1', ring, keys: [key?.entry] });
  const [entry] = parseDocument(document, ring).entries;
  if (entry === undefined) throw new Error(name);
  return entry;
}

const textOf = (document: Document): string =>
  document.text ?? (document.textPieces ?? []).map(([piece, count]) => piece.repeat(count)).join('');

test('the file of vectors is the output of the generator', () => {
  expect(ringDocumentVectors()).toBe(text);
});

describe('documents', () => {
  test.each(documents.filter((document) => document.expect.parses))(
    'a valid document is parsed, and printed without a change: $name',
    (document) => {
      const parsed = parseDocument(textOf(document), ring);
      expect(parseDocument(encodeDocument(parsed), ring)).toEqual(parsed);
    },
  );

  test.each(documents.filter((document) => !document.expect.parses))(
    'an invalid document is refused: $name',
    (document) => {
      const refused = expect.objectContaining({ name: 'RingStoreError' });
      expect(() => parseDocument(textOf(document), ring)).toThrow(refused);
    },
  );
});

describe('certificates', () => {
  test.each(certificates)('a certificate has the recorded MAC: $name', (certificate) => {
    expect(macOf(certificate)).toEqual(bytes(certificate.mac));
  });
});

function macOf(certificate: Certificate): Buffer {
  const { kind, key = '', keys: named = [], at = '', provider = '', keyId = '', wrapped = '', signature } = certificate;
  const signer = heldOf(certificate.signer);
  if (kind === 'voucher') return voucherOf(ring, entryOf(key), signer.authenticator);
  if (kind === 'ancestors')
    return ancestorsMacOf(
      ring,
      named.map((name) => heldOf(name).id),
      signer.authenticator,
    );
  if (kind === 'revocation') return certificateOf(ring, heldOf(key).id, Date.parse(at), signer.authenticator);
  const wrap = { provider, keyId, wrapped: bytes(wrapped) };
  return wrapMacOf(
    ring,
    signature === undefined ? wrap : { ...wrap, signature: bytes(signature) },
    signer.authenticator,
  );
}

describe('the facts that a member adopts', () => {
  test.each(learning)(
    'a member adopts the recorded facts: $name',
    ({ now, known, revoked, past, acceptKeysCreatedAfter = now, document, expect: wish }) => {
      const pinMs = acceptKeysCreatedAfter === now ? Number.NEGATIVE_INFINITY : Date.parse(acceptKeysCreatedAfter);
      const judgement: Judgement = {
        ring,
        nowMs: Date.parse(now),
        clockSkewMs: clockSkewSeconds * 1_000,
        past: new Map(past.map((name) => [heldOf(name).id, signerOf(name)])),
        isPinnedOut: ({ created }) => created < pinMs,
      };
      const before = createSnapshot(
        known.map((name) => keyOf(name, revoked.includes(name))),
        [],
      );
      const learned = learn(before, parseDocument(document, ring), judgement);
      const after = learned.known.keys;
      const ids = (some: readonly { readonly id: string }[]): readonly string[] => some.map(({ id }) => id).toSorted();
      expect(ids(after.filter((key) => key.revoked && !isTombstone(key)))).toEqual(wish.revoked.toSorted());
      expect(ids(after.filter(isTombstone))).toEqual(wish.tombstones.toSorted());
      expect(learned.wanted.map(({ id }) => id)).toEqual(wish.wanted);
    },
  );
});

function keyOf(name: string, isRevoked: boolean): RingKey {
  const entry = entryOf(name);
  const key = unwrappedKey(ring, entry, heldOf(name), entry.wraps[0], 0);
  return isRevoked ? { ...key, revoked: true, held: undefined } : key;
}

function signerOf(name: string): Signer {
  const { id, created, opensUntil } = entryOf(name);
  return { id, created, opensUntil, revoked: false, authenticator: heldOf(name).authenticator };
}

test('the example in the guide on the wire format follows from the formulas and from our code', () => {
  const guide = readFileSync(new URL('../../../../docs/guides/wire-format.md', import.meta.url), 'utf8');
  const [, table = ''] = /^Check an implementation against this example\..*?\n\n(.*?)\n\n/ms.exec(guide) ?? [];
  const values = [...table.matchAll(/^\| [^|]+ \| `(.+)` \|$/gm)].map(([, value = '']) => value);
  const data = (from: number): Buffer => Buffer.from(Array.from({ length: 32 }, (_, i) => from + i));
  const [a, b] = [data(0), data(32)];
  // This computes the values by the formulas of the guide, without this project's code.
  const idOf = (key: Buffer): string =>
    createHash('sha256').update('sealring/v1/key-id').update(key).digest().subarray(0, 9).toString('base64url');
  const macKeyOf = (key: Buffer): Buffer => {
    const label = Buffer.from('sealring/v1/ring-mac\0\0\x08payments', 'latin1');
    return createHmac('sha512', key).update(label).digest().subarray(0, 32);
  };
  const mac = (key: Buffer, input: string): string =>
    createHmac('sha256', macKeyOf(key)).update(input).digest('base64url');
  const [, , , vouched = '', , named = '', , wrapped = '', , revoked = ''] = values;
  expect(values).toEqual([
    idOf(a),
    idOf(b),
    macKeyOf(a).toString('base64url'),
    vouched,
    mac(a, vouched),
    named,
    mac(b, named),
    wrapped,
    mac(b, wrapped),
    revoked,
    mac(b, revoked),
  ]);
  // This project's code must give the same values.
  const [older, newer] = [new DataKey(a, 'payments'), new DataKey(b, 'payments')];
  expect([older.id, newer.id]).toEqual(values.slice(0, 2));
  const [, , id = '', ...stamps] = JSON.parse(vouched) as readonly string[];
  const [created = 0, activates = 0, sealsUntil = 0, opensUntil = 0] = stamps.map((stamp) => Date.parse(stamp));
  const entry = { id, created, activates, sealsUntil, opensUntil };
  const at = Date.parse((JSON.parse(revoked) as readonly string[]).at(-1) ?? '');
  expect(voucherOf('payments', entry, older.authenticator)).toEqual(bytes(values[4] ?? ''));
  expect(ancestorsMacOf('payments', [older.id], newer.authenticator)).toEqual(bytes(values[6] ?? ''));
  expect(certificateOf('payments', older.id, at, newer.authenticator)).toEqual(bytes(values[10] ?? ''));
});
