import { canonicalJson, createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { bytes, Fault, fuzzKey, internal, named, type Parser, text } from '../parser.ts';
import { frozen } from './tokens.ts';

interface Held {
  readonly id: string;
}
interface Document {
  readonly ring: string;
  readonly epoch: number;
  readonly entries: readonly {
    readonly id: string;
    readonly activates: number;
    readonly revoked: number | undefined;
  }[];
  readonly unknown: object;
  readonly body: string;
  readonly macs: ReadonlyMap<string, Uint8Array>;
}
interface DocumentModule {
  readonly parseDocument: (text: string, ring: string) => Document;
  readonly encodeBody: (content: object) => string;
  readonly encodeDocument: (body: string, macs: ReadonlyMap<string, Uint8Array>) => string;
}
interface AuthenticationModule {
  readonly authenticate: (body: string, keys: Iterable<Held>) => Map<string, Uint8Array>;
  readonly judge: (document: Document, own: readonly object[], past: readonly Held[]) => string;
}
interface MergeModule {
  readonly lacks: (seen: Document, known: Document, nowMs: number) => boolean;
  readonly union: (known: Document, seen: Document) => Document;
}
interface KeyCacheModule {
  readonly HeldKey: new (dataKey: Uint8Array, ring: string) => Held;
}
interface RingTextModule {
  readonly readRingText: (document: string) => object | undefined;
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
  '"epoch":',
  '"critical":[]',
  '"critical":["x"]',
  '"keys":[]',
  '"id":',

  '"created":',
  '"activates":',
  '"sealsUntil":',
  '"opensUntil":',
  '"revoked":',
  '"wraps":[',
  '"provider":"local"',
  '"keyId":',

  '"wrapped":',
  '"signature":',
  '"macs":{',
  '"2026-11-22T00:00:00Z"',
  '"2026-02-30T00:00:00Z"',
  '"9999-12-31T23:59:59Z"',
  '\n',
];

/** The ring document, before and behind its MACs, canonical JSON, and what the command line reads of a document. */
export async function ringParsers(): Promise<readonly Parser[]> {
  const { parseDocument, encodeBody, encodeDocument } = await internal<DocumentModule>('core/src/ring/document.ts');
  const { authenticate, judge } = await internal<AuthenticationModule>('core/src/ring/authentication.ts');
  const { lacks, union } = await internal<MergeModule>('core/src/ring/merge.ts');
  const { HeldKey } = await internal<KeyCacheModule>('core/src/key-cache.ts');
  const { readRingText } = await internal<RingTextModule>('cli/src/ring-text.ts');

  const documents = await rings();
  const held = new HeldKey(fuzzKey('data key'), 'default');
  const [first = ''] = documents;
  const known = parseDocument(first, 'default');
  const now = frozen.wallMs();
  const own = known.entries.map(({ activates }) => ({ id: held.id, activates, held }));
  const refuses = (error: Error): boolean =>
    error.name === 'RingStoreError' && 'kind' in error && (error.kind === 'corrupt' || error.kind === 'too-large');
  return [
    {
      name: 'ring-document',
      seeds: documents.map(bytes),
      words,
      refuses,
      parse: (input) => {
        const document = parseDocument(text(input), 'default');
        const again = parseDocument(encodeDocument(encodeBody(document), document.macs), 'default');
        if (encodeBody(again) !== encodeBody(document)) throw new Fault('is another document once it was written');
      },
    },
    {
      name: 'signed-ring-document',
      seeds: documents.map((document) => bytes(document.split('\n')[0] ?? '')),
      words,
      refuses,
      parse: (input) => {
        const body = text(input);
        const document = parseDocument(encodeDocument(body, authenticate(body, [held])), 'default');
        if (judge(document, own, [held]) !== 'accepted') throw new Fault('a right MAC is not accepted');
        const both = union(known, document);
        if (lacks(both, known, now) || lacks(both, document, now)) throw new Fault('a union lacks something');
        encodeBody(both);
      },
    },
    {
      name: 'ring-text',
      seeds: documents.map(bytes),
      words,
      refuses: named(),
      parse: (input) => readRingText(text(input)),
    },
    {
      name: 'canonical-json',
      seeds: [
        '{"b":[1,2.5,-0,1e21,"é\\u0000"],"a":{"__proto__":null}}',
        '[[],{},"",0,true]',
        '1e400',
        first.split('\n')[0] ?? '',
      ].map(bytes),
      words: [...words, '1e400', '-0', '5e-324', '\\ud800', '1.7976931348623157e308'],
      refuses: (error) =>
        error.name === 'SyntaxError' ||
        (error instanceof TypeError && error.message.startsWith('not a JSON value')) ||
        (error instanceof RangeError && error.message.startsWith('JSON nested deeper')),
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

/** Documents as members write them: of one key, of several, with a revoked one. */
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
