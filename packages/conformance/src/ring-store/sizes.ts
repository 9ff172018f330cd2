import type { RingStore, RingStoreErrorKind } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import { expectOneOf, revisionOf } from './stored-ring.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

/** Common sizes of lines, packets, rows, pages, parts and buffers, in bytes. */
const PART_BYTES: readonly number[] = [
  16, 32, 57, 64, 76, 78, 80, 100, 127, 128, 200, 255, 256, 400, 500, 512, 998, 1_000, 1_024, 1_460, 1_500, 2_000,
  2_048, 3_000, 4_000, 4_096, 5_000, 6_000, 8_000, 8_192, 10_000, 12_000, 16_000, 16_384, 20_000, 25_000, 30_000,
  32_000, 32_768, 40_000, 50_000, 60_000, 64_000, 65_536, 80_000, 100_000, 102_400, 128_000, 131_072, 150_000, 196_608,
  200_000, 250_000,
];

/** Runs of characters: the first code point, the UTF-8 length of a character, and the number of code points. */
const RUNS = [
  [0x100, 2, 0x600],
  [0x4e00, 3, 0x5000],
  [0x2_0000, 4, 0xa000],
] as const;

export const SIZE_CHECKS: RingStoreChecks = {
  'RING-LENGTHS': async (trial) => {
    const [store, other] = await trial.openPair();
    const sizes = PART_BYTES.filter((one) => isWithin(trial, one));
    const lengths = [sizes, sizes.map((one) => one - 1), sizes.map((one) => one + 1)].flatMap(byTurns);
    const documents = lengths
      .filter((length) => isWithin(trial, length))
      .map((length) => [labelled(length), `${length} bytes`] as const);
    await trial.expectWhole(trial.inTime(documents, sizes.length), store, other);
  },
  'RING-BOUNDARIES': async (trial) => {
    const [store, other] = await trial.openPair();
    const most = trial.supports.maxDocumentBytes;
    const documents = RUNS.flatMap(([first, bytes, count]) =>
      [0, 1].map((shift) => {
        const characters = Array.from({ length: Math.floor((most - shift) / bytes) }, (_, i) => first + (i % count));
        const document = 'x'.repeat(shift) + characters.map((code) => String.fromCodePoint(code)).join('');
        return [document, `${Buffer.byteLength(document)} bytes, in characters of ${bytes} after ${shift}`] as const;
      }),
    );
    await trial.expectWhole(documents, store, other);
  },
  'RING-LARGEST': async (trial) => {
    const stores = await trial.openPair();
    const most = trial.supports.maxDocumentBytes;
    const documents = ['x', '\n', 'é', '😀'].map((one) => one.repeat(most / Buffer.byteLength(one)));
    documents.push(Buffer.from(trial.random.bytes(most)).toString('base64').slice(0, most), labelled(most));
    // Comparing only the length and both ends would miss this change.
    const [half, last] = [Math.floor(most / 2), documents.at(-1) ?? ''];
    documents.push(`${last.slice(0, half)}x${last.slice(half + 1)}`);
    const named = documents.map((document) => [document, `${most} bytes`] as const);
    await trial.expectWhole(named, stores[0], ...stores);
  },
  'RING-TOO-LARGE': async (trial) => {
    const most = trial.supports.maxDocumentBytes;
    const [store, other] = await trial.openPair();
    const longer = [
      'x'.repeat(most + 1),
      `${'é'.repeat(Math.floor(most / 2))}é`,
      labelled(most + 1),
      'x'.repeat(4 * most),
    ];
    const refuse = async (expected: string | undefined): Promise<void> => {
      for (const document of longer) {
        const what = `a write of ${Buffer.byteLength(document)} bytes`;
        await trial.expectFailure(() => store.write(document, { expected }), 'too-large', what);
      }
    };
    await refuse(undefined);
    await trial.expectAbsent(other, 'a read after writes that were too large');
    const revision = await trial.write(store, 'one', undefined);
    await refuse(revision);
    await trial.expectStored(other, 'one', revision, 'a read after writes that were too large');
    // The store must not return a document that it cached while it refused writes.
    const later = await trial.write(other, 'two', revision);
    await trial.expectStored(store, 'two', later, 'a later read by the store that refused writes');
  },
  'RING-TOO-LARGE-THERE': (trial) => expectDamage(trial, tooLarge(trial), 'too-large'),
  'RING-TOO-LARGE-REPLACED': (trial) => expectReplaceable(trial, tooLarge(trial), 'too-large'),
  'RING-EMPTY-THERE': (trial) => expectDamage(trial, '', undefined),
  'RING-EMPTY-CORRUPT': (trial) => expectReplaceable(trial, '', 'corrupt'),
};

/**
 * Expects that a planted document is never read as absent or as the earlier document, and that only a write with its
 * revision replaces it.
 */
async function expectDamage(
  trial: RingStoreTrial,
  document: string,
  kind: RingStoreErrorKind | undefined,
): Promise<void> {
  const what = `${Buffer.byteLength(document)} planted bytes`;
  const expectSaid = async (store: RingStore): Promise<string | undefined> => {
    const found = await trial.promised(() => store.read(), `a read of ${what}`);
    if (kind !== undefined) trial.expectFailed(found, kind, `a read of ${what}`);
    else if ('value' in found) expectOneOf(found.value, [{ document }], `a read of ${what}`);
    return 'error' in found ? revisionIn(found.error) : undefined;
  };
  for (const isKnown of [false, true]) {
    const name = trial.freshName();
    const stores = await trial.openPair(name);
    const before = isKnown ? await trial.write(stores[0], 'one', undefined) : undefined;
    if (isKnown) await trial.expectStored(stores[0], 'one', before);
    await trial.plantOver(name, document);
    let own: string | undefined;
    for (const store of stores) {
      own = await expectSaid(store);
      for (const expected of new Set([undefined, before])) {
        await trial.expectLost(
          store,
          expected,
          `a write that expects ${expected === undefined ? 'no ring' : 'an earlier revision'}, over ${what},`,
        );
        await expectSaid(store);
      }
    }
    await trial.plantOver(name, `${document} `);
    if (own !== undefined && (await trial.plantsRevisions()))
      await trial.expectLost(stores[0], own, `a write with the revision of ${what}, which have been replaced since,`);
    if (trial.target.remove === undefined) continue;
    await trial.remove(name);
    await trial.write(stores[1], 'mended', undefined);
    for (const store of stores) await trial.expectDocument(store, 'mended', `a read after ${what} were replaced`);
  }
}

/**
 * Expects that a planted document, or the error from reading it, has a revision with which one write can replace it.
 */
async function expectReplaceable(trial: RingStoreTrial, document: string, kind: RingStoreErrorKind): Promise<void> {
  for (const isKnown of [false, true]) {
    const name = trial.freshName();
    const store = await trial.open(name);
    if (isKnown) {
      // The revision must be that of the planted document, not of the last one that the store has written or read.
      await trial.expectStored(store, 'one', await trial.write(store, 'one', undefined));
      await trial.plantOver(name, document);
    } else await trial.plant(name, document);
    const what = `a read of ${Buffer.byteLength(document)} planted bytes${isKnown ? ', over a known document,' : ''}`;
    const found = await trial.promised(() => store.read(), what);
    // An empty document may be read unchanged: a member that parses it reports it as corrupt.
    if ('error' in found || document !== '') trial.expectFailed(found, kind, what);
    const expected = 'error' in found ? revisionIn(found.error) : revisionOf(found.value, what);
    expectThat(expected !== undefined, `${what} rejected without a revision`);
    const revision = await trial.write(store, 'x', expected, 'a write over planted bytes');
    await trial.expectStored(store, 'x', revision, 'a read after planted bytes were replaced');
    await trial.expectLost(store, expected, 'another write with the revision of planted bytes');
  }
}

function revisionIn(error: unknown): string | undefined {
  const revision: unknown = error instanceof Error ? Reflect.get(error, 'revision') : undefined;
  return typeof revision === 'string' ? revision : undefined;
}

function isWithin(trial: RingStoreTrial, bytes: number): boolean {
  return bytes <= trial.supports.maxDocumentBytes;
}

/** Reorders sorted numbers by taking one from the start and one from the end in turn. */
function byTurns(numbers: readonly number[]): readonly number[] {
  return numbers.map((_, i) => numbers.at(i % 2 === 0 ? i / 2 : -(i + 1) / 2) ?? 0);
}

/** ASCII text that shows its offsets: `…|000120|000128|…`. */
export function labelled(length: number): string {
  const labels = Array.from({ length: Math.ceil(length / 8) }, (_, i) => `|${String(i * 8).padStart(7, '0')}`);
  return labels.join('').slice(0, length);
}

function tooLarge(trial: RingStoreTrial): string {
  if (isWithin(trial, MAX_DOCUMENT_BYTES)) return `${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}x`;
  throw new NotApplicable('supports.maxDocumentBytes is too small to plant an oversized document');
}
