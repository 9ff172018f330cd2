import { canonicalJson, createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { bytes, Fault, fuzzKey, internal, type Parser, text } from '../parser.ts';
import { frozen } from './tokens.ts';

interface Authenticator {
  readonly id: string;
}
interface Held {
  readonly id: string;
  readonly authenticator: Authenticator;
}
type Macs = ReadonlyMap<string, Uint8Array>;
interface Wrap {
  readonly provider: string;
  readonly mac: Uint8Array;
}
interface Entry {
  readonly id: string;
  readonly created: number;
  readonly activates: number;
  readonly sealsUntil: number;
  readonly opensUntil: number;
  readonly vouchers: Macs;
  readonly ancestors?: { readonly ids: readonly string[]; readonly mac: Uint8Array } | undefined;
  readonly revoked: { readonly at: number; readonly by: Macs } | undefined;
  readonly wraps: readonly Wrap[];
}
interface Document {
  readonly ring: string;
  readonly claim: string | undefined;
  readonly entries: readonly Entry[];
}
interface DocumentModule {
  readonly parseDocument: (text: string, ring: string) => Document;
  readonly encodeDocument: (document: Document) => string;
}
interface CertificatesModule {
  readonly voucherOf: (ring: string, entry: Entry, signer: Authenticator) => Buffer;
  readonly wrapMacOf: (ring: string, wrap: Wrap, own: Authenticator) => Buffer;
  readonly ancestorsMacOf: (ring: string, ids: readonly string[], own: Authenticator) => Buffer;
  readonly certificateOf: (ring: string, id: string, at: number, signer: Authenticator) => Buffer;
}
interface Key extends Entry {
  readonly held: Held | undefined;
}
interface Snapshot {
  readonly keys: readonly Key[];
  readonly byId: ReadonlyMap<string, { readonly revoked: boolean }>;
}
interface FactsModule {
  readonly unwrappedKey: (ring: string, entry: Entry, held: Held, opened: Wrap | undefined, from: number) => Key;
}
interface LearnModule {
  readonly learn: (known: Snapshot, document: Document, judgement: object) => { known: Snapshot; wanted: Entry[] };
  readonly withUnwrapped: (known: Snapshot, keys: readonly Key[], judgement: object) => Snapshot;
}
interface WrittenDocumentModule {
  readonly lacks: (document: Document, known: Snapshot, judgement: object) => boolean;
  readonly documentOf: (known: Snapshot, read: Document, options: object) => Document;
}
interface SnapshotModule {
  readonly createSnapshot: (keys: readonly Key[]) => Snapshot;
}
interface DataKeyModule {
  readonly DataKey: new (dataKey: Uint8Array, ring: string) => Held;
}

const words = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\u0000',
  'null',
  'true',
  '__proto__',
  '[[[[[[[[',
  '{"a":{"a":',

  '"format":"sealring/ring/1"',
  '"ring":"default"',
  '"claim":"AAAAAAAAAAAAAAAAAAAAAA"',
  '"keys":[]',
  '"id":',

  '"created":',
  '"activates":',
  '"sealsUntil":',
  '"opensUntil":',
  '"vouchers":{',
  '"ancestors":{"ids":[',
  '"revoked":{"at":',
  '"by":{',
  '"wraps":[',
  '"provider":"local"',
  '"keyId":',

  '"wrapped":',
  '"signature":',
  '"mac":',
  `"${'A'.repeat(12)}":"${'A'.repeat(43)}"`,
  '"2026-11-22T00:00:00Z"',
  '"2026-02-30T00:00:00Z"',
  '"9999-12-31T23:59:59Z"',
  '\n',
];

const RING = 'default';

/** The ring document, before and after its MACs are checked, and canonical JSON. */
export async function ringParsers(): Promise<readonly Parser[]> {
  const { parseDocument, encodeDocument } = await internal<DocumentModule>('core/src/ring/document.ts');

  const documents = await rings();
  const [first = ''] = documents;
  const { certified, member, keys } = await certification();
  const refuses = (error: Error): boolean =>
    error.name === 'RingStoreError' && 'kind' in error && (error.kind === 'corrupt' || error.kind === 'too-large');
  return [
    {
      name: 'ring-document',
      seeds: documents.map(bytes),
      words,
      refuses,
      parse: (input) => {
        const document = parseDocument(text(input), RING);
        const printed = encodeDocument(document);
        if (encodeDocument(parseDocument(printed, RING)) !== printed)
          throw new Fault('is another document once written');
        if (printed.length !== input.length) throw new Fault('was longer than necessary');
      },
    },
    {
      name: 'signed-ring-document',
      seeds: documents.map((document) => bytes(withIds(document, keys))),
      words: [
        ...words,
        ...keys.map(({ id }) => `"id":"${id}"`),
        ...keys.map(({ id }) => `"${id}":"${'A'.repeat(43)}"`),
      ],
      refuses,
      parse: (input) => member(certified(parseDocument(text(input), RING))),
    },
    {
      name: 'canonical-json',
      seeds: ['{"b":[1,2.5,-0,1e21,"é\\u0000"],"a":{"__proto__":null}}', '[[],{},"",0,true]', '1e400', first].map(
        bytes,
      ),
      words: [...words, '1e400', '-0', '5e-324', '\\ud800', '1.7976931348623157e308'],
      refuses: (error) =>
        error.name === 'SyntaxError' ||
        (error instanceof TypeError && error.message.startsWith('not a JSON value')) ||
        (error instanceof RangeError && error.message.startsWith('the JSON is nested deeper')),
      parse: (input) => {
        const value: unknown = JSON.parse(text(input));
        for (const sortKeys of [false, true]) {
          const printed = canonicalJson(value, { sortKeys });
          if (canonicalJson(JSON.parse(printed), { sortKeys }) !== printed)
            throw new Fault('prints another text the second time');
        }
      },
    },
  ];
}

/** Documents as members write them: with one key, with several, with a revoked one. */
async function rings(): Promise<readonly string[]> {
  const ring = memoryRing();
  const codec = await createKmsCodec({
    keyWrapper: [
      localKeyWrapper({ masterKey: fuzzKey('master key') }),
      localKeyWrapper({ masterKey: fuzzKey('other master key') }),
    ],
    ring,
    create: 'now',
    clock: frozen,
  });
  const stored = async (): Promise<string> => (await ring.read())?.document ?? '';
  const documents = [await stored()];
  await codec.rotate({ emergency: true });
  documents.push(await stored());
  const { keyId } = codec.inspect(codec.seal(new Uint8Array(1)));
  await codec.revoke(keyId);
  documents.push(await stored());
  await codec.close();
  return documents;
}

/** The same document with known keys in place of its own, in their order. */
function withIds(document: string, keys: readonly Held[]): string {
  const ids = [...document.matchAll(/"id":"([^"]+)"/g)].map(([, id = '']) => id);
  return ids.reduce((changed, id, i) => changed.replaceAll(id, keys[i]?.id ?? id), document);
}

/**
 * Covers the code behind the MACs: computes the valid MACs that known keys can make, and has a member read and write.
 */
async function certification() {
  const { parseDocument, encodeDocument } = await internal<DocumentModule>('core/src/ring/document.ts');
  const { voucherOf, wrapMacOf, ancestorsMacOf, certificateOf } = await internal<CertificatesModule>(
    'core/src/ring/certificates.ts',
  );
  const { unwrappedKey } = await internal<FactsModule>('core/src/ring/facts.ts');
  const { learn, withUnwrapped } = await internal<LearnModule>('core/src/ring/learn.ts');
  const { lacks, documentOf } = await internal<WrittenDocumentModule>('core/src/ring/written-document.ts');
  const { createSnapshot } = await internal<SnapshotModule>('core/src/ring/snapshot.ts');
  const { DataKey } = await internal<DataKeyModule>('core/src/keys/data-key.ts');
  // The member holds the first two; the third one is unwrapped if the member asks for it.
  const keys = [0, 1, 2].map((n) => new DataKey(fuzzKey(`data key ${n}`), RING));
  const held = new Map(keys.map((key) => [key.id, key]));
  const past = new Map();
  const judgement = { ring: RING, nowMs: frozen.wallMs(), clockSkewMs: 300_000, past, isPinnedOut: () => false };

  const certified = (document: Document): Document => ({
    ...document,
    entries: document.entries.map((entry) => {
      const { id, vouchers, ancestors, revoked, wraps } = entry;
      const own = held.get(id);
      const made = (macs: Macs, make: (signer: Held) => Uint8Array): Macs =>
        new Map([...macs].map(([by, mac]) => [by, held.has(by) ? make(held.get(by) as Held) : mac]));
      return {
        ...entry,
        vouchers: made(vouchers, (signer) => voucherOf(RING, entry, signer.authenticator)),
        ancestors: own &&
          ancestors && { ids: ancestors.ids, mac: ancestorsMacOf(RING, ancestors.ids, own.authenticator) },
        revoked: revoked && {
          ...revoked,
          by: made(revoked.by, (signer) => certificateOf(RING, id, revoked.at, signer.authenticator)),
        },
        wraps:
          own === undefined ? wraps : wraps.map((wrap) => ({ ...wrap, mac: wrapMacOf(RING, wrap, own.authenticator) })),
      };
    }),
  });

  const [document = ''] = await rings();
  const [sample] = parseDocument(withIds(document, keys), RING).entries;
  if (sample === undefined) throw new Error('a ring has a key');
  const start = createSnapshot(
    keys.slice(0, 2).map((key, i) => {
      const entry = { ...sample, id: key.id, created: sample.created + i * 1_000 };
      return unwrappedKey(RING, entry, key, entry.wraps[0], 0);
    }),
  );

  const member = (read: Document): void => {
    let { known, wanted } = learn(start, read, judgement);
    const opened = wanted.flatMap((entry) => {
      const key = held.get(entry.id);
      return key === undefined ? [] : [unwrappedKey(RING, entry, key, entry.wraps[0], 0)];
    });
    ({ known, wanted } = learn(withUnwrapped(known, opened, judgement), read, judgement));
    if (!start.keys.every(({ id }) => known.byId.has(id))) throw new Fault('a known key was lost');
    const options = { ring: RING, past, isRemovable: () => false };
    const written = parseDocument(encodeDocument(documentOf(known, read, options)), RING);
    const again = learn(known, written, judgement);
    if (known.keys.some(({ id }) => known.byId.get(id)?.revoked === true && again.known.byId.get(id)?.revoked !== true))
      throw new Fault('a revocation was lost');
    const isSettled = encodeDocument(documentOf(again.known, written, options)) === encodeDocument(written);
    if (lacks(written, again.known, judgement) && !isSettled) throw new Fault('the written document lacks a fact');
  };
  return { certified, member, keys };
}
