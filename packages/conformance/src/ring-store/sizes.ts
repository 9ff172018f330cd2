import type { RingStore } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import { type RingStoreChecks, type RingStoreTrial } from './trial.ts';

/** Sizes that programs give to lines, packets, rows, pages, parts and buffers. */
const PART_BYTES: readonly number[] = [
  16, 32, 57, 64, 76, 78, 80, 100, 127, 128, 200, 255, 256, 400, 500, 512, 998, 1_000, 1_024, 1_460, 1_500, 2_000,
  2_048, 3_000, 4_000, 4_096, 5_000, 6_000, 8_000, 8_192, 10_000, 12_000, 16_000, 16_384, 20_000, 25_000, 30_000,
  32_000, 32_768, 40_000, 50_000, 60_000, 64_000, 65_536, 80_000, 100_000, 102_400, 128_000, 131_072, 150_000, 196_608,
  200_000, 250_000,
];

/** The first characters of long runs in Unicode, and the bytes that each has in UTF-8. */
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
    // What is compared by its length and its ends is not compared.
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
  },
  'RING-TOO-LARGE-THERE': async (trial) => {
    const store = await openTooLarge(trial);
    const what = 'a read of 262 145 bytes that were planted';
    await trial.expectFailure(() => store.read(), 'too-large', what);
    const created = await trial.promised(() => store.write('x', { expected: undefined }), 'a write in their place');
    expectThat('error' in created, 'a ring was created over 262 145 bytes that were planted');
    await trial.expectFailure(() => store.read(), 'too-large', `${what}, after that`);
  },
  'RING-TOO-LARGE-REPLACED': async (trial) => {
    const store = await openTooLarge(trial);
    const what = 'a read of 262 145 bytes that were planted';
    const found = await trial.promised(() => store.read(), what);
    expectThat('error' in found, `${what} resolved`);
    const expected: unknown = found.error instanceof Error ? Reflect.get(found.error, 'revision') : undefined;
    expectThat(typeof expected === 'string', `${what} rejected without a revision`);
    const revision = await trial.write(store, 'x', expected, 'a write over them');
    await trial.expectStored(store, 'x', revision, 'a read after they were replaced');
    const again = await trial.promised(() => store.write('y', { expected }), 'another write over them');
    expectThat('error' in again, 'they were replaced twice');
  },
  'RING-EMPTY-THERE': async (trial) => {
    const store = await openPlanted(trial, '');
    const found = await trial.promised(() => store.read(), 'a read of an empty document');
    if ('error' in found) return;
    expectThat(found.value !== undefined, 'a read of an empty document that was planted says that the ring is absent');
  },
  'RING-EMPTY-CORRUPT': async (trial) => {
    const store = await openPlanted(trial, '');
    await trial.expectFailure(() => store.read(), 'corrupt', 'a read of an empty document that was planted');
  },
};

function isWithin(trial: RingStoreTrial, bytes: number): boolean {
  return bytes <= trial.supports.maxDocumentBytes;
}

/** Of sorted numbers, by turns one from the start and one from the end. */
function byTurns(numbers: readonly number[]): readonly number[] {
  return numbers.map((_, i) => numbers.at(i % 2 === 0 ? i / 2 : -(i + 1) / 2) ?? 0);
}

/** ASCII in which every place can be recognised: `…|000120|000128|…`. */
export function labelled(length: number): string {
  const labels = Array.from({ length: Math.ceil(length / 8) }, (_, i) => `|${String(i * 8).padStart(7, '0')}`);
  return labels.join('').slice(0, length);
}

async function openPlanted(trial: RingStoreTrial, document: string): Promise<RingStore> {
  const name = trial.freshName();
  await trial.plant(name, document);
  return trial.open(name);
}

/** A store with 262 145 bytes where its ring would be. */
function openTooLarge(trial: RingStoreTrial): Promise<RingStore> {
  if (!isWithin(trial, MAX_DOCUMENT_BYTES)) {
    throw new NotApplicable('supports.maxDocumentBytes: no such document can be stored');
  }
  return openPlanted(trial, `${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}x`);
}
