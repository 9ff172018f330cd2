import { setTimeout as pause } from 'node:timers/promises';
import type { StoredRing } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';
import { CLOSE_MS, type Outcome, within } from '../trial.ts';
import { documentText, expectDoneOrNot, expectOneOf, isFailure } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

/**
 * Texts that languages, formats and backends change. Each has its own document, since mixed text often passes
 * unchanged.
 */
const DOCUMENTS: readonly string[] = [
  // JSON, and words that formats interpret.
  '{"keys":[]}\n{}\n',
  '{"b":1,"a":1.0,"a":"\\u00e9",  "c":[ ]}',
  '{"b":null,"a":"\\/","c":12345678901234567890,"__proto__":{}}',
  ...'null true yes 0010 1e3 2024-01-01 NaN __proto__ AAAA SGVsbG8h 48656c6c6f \\x41 "x" [] x'.split(' '),
  // White space, line ends, control characters.
  ' \t spaces around \n\n',
  'trailing \t\nspaces \nin\tlines\t\n',
  ...'one\r\n¦one\r¦\none¦\n¦ ¦one\rtwo\r\nthree\n\rfour¦one\v\f\u0085\u2028\u2029two'.split('¦'),
  String.fromCharCode(...Array.from({ length: 31 }, (_, i) => i + 1), 0x7f, 0x80, 0x9f),
  // Unicode.
  '\ufeff{}\r\n\t\u0001é€😀\ufeff',
  ...'e\u0301 é¦ﬁ fi¦ß ss¦İ i¦Ａ１ A1¦\u212b Å¦² ½ ㎏'.split('¦'),
  'a\u00a0b\u200bc\u200dd\u2060e\u00adf\u202eg\u3000h',
  '\ufdd0\u{1fffe}\u2764\ufe0f\ufffd\ufffe\uffff\ue000\u{1f468}\u200d\u{1f469}\u{10fffd}\u{10ffff}',
  // Text that looks like UTF-8, a byte order mark, UTF-16 or UTF-7 that was read as Latin-1 or Windows-1252.
  ...['é', '€', '😀', '\ufeff{}', 'é €😀'].map((text) => Buffer.from(text).toString('latin1')),
  ...'Ã© â‚¬ ðŸ˜€¦ÿþa¦+AOk- xn--9ca'.split('¦'),
  // Escape sequences of URLs, forms, markup, SQL, CSV, shells and templates.
  ...'a+b ++¦%41%2B%2541%25¦%% %25¦a%20b+%C3%A9&c=%e9¦$1 %s %00 %d \\n \\ `{{x}}` "'.split('¦'),
  ...'&amp;&lt;&#65;&quot;&nbsp;¦<b>text</b><script>1</script><!-- x --><![CDATA[y]]>'.split('¦'),
  "$& $$ $` $' ${x} $(x) {0} %(x)s :name @p1 ?",
  "'; DROP TABLE ring; -- ''''",
  '#x\n//y\n/* z */\n;',
  'one\n# two\n#three\n  #four\n',
  ...'@x =1 -x --x 0 false undefined {}'.split(' '),
  '"" """" ,"",\\\\ \\\\\\\\ \\" \\u0041 \\x41 \\101',
  '=?utf-8?B?QQ==?= =41=\n.\n..\nFrom x\n--boundary--',
  // Prefixes of compressed, encoded or versioned data, and lines that end a text.
  ...'gz: gzip: zip: zstd: br: b64: base64: enc: json: s: v1: 1: data:, H4sI \x1f\x8b'
    .split(' ')
    .map((mark) => `${mark}eA==`),
  ...['\n', '\r\n'].map((line) => 'a END b EOF EOT QUIT --- *** \\. \x04 \x1a c'.split(' ').join(line)),
  String.fromCharCode(...Array.from({ length: 95 }, (_, i) => i + 32)),
];

const RANDOM_DOCUMENTS = 5;
/** How long to wait until short-lived data has expired, in milliseconds. */
const A_WHILE_MS = 1_200;

const SHARED = 'é€😀'.repeat(20);
/**
 * Versions that share a beginning and an end with several bytes per character. A store that saves differences may
 * miscount these characters.
 */
const SIMILAR: readonly string[] = ['a', 'b', '', 'ab', 'ac', 'é', 'è', '😀', '😁'].flatMap((one) => [
  `${SHARED}${one}`,
  `${SHARED}${one}${SHARED}`,
]);

/** Texts that a collation or a conversion to numbers may regard as equal, each written over the one before. */
const EQUATED: readonly string[] = ['case', 'CASE', 'cäse', 'case ', 'case', '1', '1.0', '01', '1'];

/** Names of members that every object has, which also exist in a store that keeps its rings in an object. */
const OBJECT_NAMES: readonly string[] = ['constructor', '__proto__'];

export const DOCUMENT_CHECKS: RingStoreChecks = {
  'RING-ABSENT': async (trial) => {
    for (const store of await trial.openPair()) {
      for (let i = 0; i < 2; i++) await trial.expectAbsent(store, 'a read of a ring that was never created');
    }
    for (const name of OBJECT_NAMES) {
      await trial.expectAbsent(await trial.open(name), `a read of a ring that was never created, ${name},`);
    }
  },
  'RING-ROUNDTRIP': async (trial) => {
    const [store, other] = await trial.openPair();
    const random = Array.from({ length: RANDOM_DOCUMENTS }, () => randomDocument(trial));
    const long = ['one line '.repeat(8_000), 'line\n'.repeat(8_000)].filter(
      ({ length }) => length <= trial.supports.maxDocumentBytes,
    );
    const documents = [...DOCUMENTS, ...SIMILAR, ...EQUATED, ...random, ...long].map(
      (one) => [one, documentText(one)] as const,
    );
    await trial.expectWhole(documents, store, store, other);
  },
  'RING-NUL': async (trial) => {
    for (const document of ['a\0b', 'a\0', '\0', '']) {
      for (const before of [undefined, 'one']) {
        const [store, other] = await trial.openPair();
        const expected = before === undefined ? undefined : await trial.write(store, before, undefined);
        const what = `a write of ${documentText(document)}${before === undefined ? '' : ' over a document'}`;
        const written = await trial.promised(() => store.write(document, { expected }), what);
        const ring = before === undefined ? undefined : { document: before, revision: expected ?? '' };
        if ('error' in written) await trial.expectFound(other, ring, `a read after ${what} was refused`);
        else if (document !== '') await trial.expectDocument(other, document, `a read after ${what}`);
        else {
          const found = await trial.promised(() => other.read(), `a read after ${what}`);
          expectThat('error' in found || found.value !== undefined, `after ${what} the ring is absent`);
        }
      }
    }
  },
  'RING-DURABLE': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const first = await trial.write(store, 'one', undefined);
    const revision = await trial.write(other, 'two', first);
    for (const one of [store, other]) await trial.closeEarly(one);
    const again = await trial.open(name);
    await trial.expectStored(again, 'two', revision, 'a read after every store was closed');
    await pause(A_WHILE_MS);
    await trial.expectStored(again, 'two', revision, 'a read a second after the write');
    await trial.write(again, 'three', revision, 'a write after every store was closed');
  },
  'RING-INSTANCE-CLOSES': async (trial) => {
    // The second store stays unused.
    const [used, , watching] = await trial.openMany();
    await trial.write(used, 'one', undefined);
    if (trial.supports.push !== false) watching.watch?.(() => undefined);
    await trial.expectCloses();
    if (trial.target.breakConnection === undefined) return;
    await trial.write(await trial.open(), 'two', undefined);
    await trial.breakConnection();
    await trial.expectCloses();
  },
  'RING-CLOSE-OTHERS': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const third = await trial.open();
    const revision = await trial.write(store, 'one', undefined);
    const elsewhere = await trial.write(third, 'elsewhere', undefined);
    await trial.all([
      trial.expectStored(other, 'one', revision, 'a read while another store was closing'),
      trial.expectStored(third, 'elsewhere', elsewhere, 'a read of another ring while a store was closing'),
      trial.closeEarly(store),
    ]);
    await trial.closesAgain(store);
    await trial.expectStored(other, 'one', revision, 'a read after another store was closed');
    await trial.write(other, 'two', revision, 'a write after another store was closed');
    await trial.expectStored(third, 'elsewhere', elsewhere, 'a read of another ring after a store was closed');
  },
  'RING-CLOSED': async (trial) => {
    for (const isUnderWay of [true, false]) {
      const { what, before, read, write, found } = await closedCalls(trial, isUnderWay);
      if ('value' in read) expectOneOf(read.value, [before, { document: 'closed' }], `a read ${what}`);
      expectDoneOrNot(found, before, 'closed', write, `a write ${what}`);
      for (const [call, outcome] of Object.entries({ read, write })) {
        if ('value' in outcome || isFailure(outcome.error)) continue;
        throw new Finding(`a ${call} ${what} rejected with ${describeThrown(outcome.error)}, not RingStoreError`);
      }
    }
  },
  'RING-CLOSED-UNAVAILABLE': async (trial) => {
    for (const isUnderWay of [true, false]) {
      const { what, read, write } = await closedCalls(trial, isUnderWay);
      if ('error' in read) trial.expectUnavailable(read.error, `a read ${what}`);
      if ('error' in write) trial.expectUnavailable(write.error, `a write ${what}`);
    }
    const store = await trial.open();
    await trial.read(store);
    for (const what of ['close', 'a second close']) expectThat(await trial.closesAgain(store), `${what} did not end`);
  },
};

/** The outcomes of calls that begin before or after the close of their store. */
async function closedCalls(
  trial: RingStoreTrial,
  isUnderWay: boolean,
): Promise<{
  readonly what: string;
  readonly before: StoredRing;
  readonly read: Outcome;
  readonly write: Outcome;
  readonly found: StoredRing | undefined;
}> {
  const [store, other] = await trial.openPair();
  const own = await trial.write(store, 'zero', undefined);
  let before = { document: 'one', revision: await trial.write(other, 'one', own) };
  await trial.read(store);
  const what = isUnderWay ? 'that a close interrupts' : 'after the close of its store';
  const start = (expected: string): Promise<readonly Outcome[]> =>
    trial.all([
      trial.promised(() => store.read(), `a read ${what}`),
      trial.promised(() => store.write('closed', { expected }), `a write ${what}`),
    ]);
  const begun = isUnderWay ? start(before.revision) : undefined;
  // This promise is awaited below. The handler prevents an unhandled rejection until then.
  begun?.catch(() => undefined);
  await trial.closeEarly(store);
  if (!isUnderWay) await trial.expectFound(other, before, 'a read after the close of a store that wrote before');
  // The store must not answer from its cache.
  if (!isUnderWay) before = { document: 'two', revision: await trial.write(other, 'two', before.revision) };
  const ended = await within(CLOSE_MS, begun ?? start(before.revision), undefined);
  expectThat(ended !== undefined, `a call ${what} had not ended after ${CLOSE_MS} ms`);
  const [read, write] = ended as readonly [Outcome, Outcome];
  return { what, before, read, write, found: await trial.read(other, 'a read after the close of another store') };
}

/** A document of characters from the whole range of Unicode, except NUL and surrogates. */
function randomDocument({ random }: RingStoreTrial): string {
  const ranges = [
    [1, 0x7f],
    [0x80, 0x7ff],
    [0x800, 0xd7ff],
    [0x1_0000, 0x1_f9ff],
  ] as const;
  return Array.from({ length: 1 + random.below(200) }, () => {
    const [from, to] = random.pick(ranges);
    return String.fromCodePoint(from + random.below(to - from));
  }).join('');
}
