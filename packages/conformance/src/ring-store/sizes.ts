import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import type { RingStoreTrial } from './trial.ts';

/** Characters, and the bytes of their UTF-8 form. */
const CHARACTERS: readonly (readonly [string, number])[] = [
  ['x', 1],
  ['\n', 1],
  ['é', 2],
  ['😀', 4],
];

/** Documents of the greatest length, of more, and of none. */
export const SIZE_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-LARGEST',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const most = trial.subject.supports.maxDocumentBytes;
      let revision: string | undefined;
      for (const [character, bytes] of CHARACTERS) {
        const document = character.repeat(most / bytes);
        revision = await trial.write(store, document, revision, `a write of ${Buffer.byteLength(document)} bytes`);
        await trial.expectStored(other, document, revision, `a read of ${Buffer.byteLength(document)} bytes`);
      }
    },
  },
  {
    id: 'RING-TOO-LARGE',
    async run(trial) {
      const most = trial.subject.supports.maxDocumentBytes;
      const [store, other] = await trial.openPair();
      const longer = ['x'.repeat(most + 1), `${'é'.repeat(Math.floor(most / 2))}é`];
      for (const document of longer) {
        const what = `a write of ${Buffer.byteLength(document)} bytes`;
        await trial.expectFailure(() => store.write(document, { expected: undefined }), 'too-large', what);
        await trial.expectAbsent(other, `a read after ${what}`);
      }
      const revision = await trial.write(store, 'one', undefined);
      for (const document of longer) {
        const what = `a write of ${Buffer.byteLength(document)} bytes`;
        await trial.expectFailure(() => store.write(document, { expected: revision }), 'too-large', what);
        await trial.expectStored(other, 'one', revision, `a read after ${what}`);
      }
    },
  },
  {
    id: 'RING-TOO-LARGE-THERE',
    async run(trial) {
      const store = await trial.open(await plantTooLarge(trial));
      const what = 'a read of 262 145 bytes that were planted';
      await trial.expectFailure(() => store.read(), 'too-large', what);
      const founded = await trial.outcome(
        () => store.write('x', { expected: undefined }),
        'a foundation in their place',
      );
      expectThat(founded.status === 'rejected', 'a ring was founded over 262 145 bytes that were planted');
      await trial.expectFailure(() => store.read(), 'too-large', `${what}, after that`);
    },
  },
  {
    id: 'RING-TOO-LARGE-REPLACED',
    async run(trial) {
      const store = await trial.open(await plantTooLarge(trial));
      const what = 'a read of 262 145 bytes that were planted';
      const found = await trial.outcome(() => store.read(), what);
      expectThat(found.status === 'rejected', `${what} resolved`);
      const expected: unknown = found.error instanceof Error ? Reflect.get(found.error, 'revision') : undefined;
      expectThat(typeof expected === 'string', `${what} rejected without a revision to write over`);
      const revision = await trial.write(store, 'x', expected, 'a write over them');
      await trial.expectStored(store, 'x', revision, 'a read after they were written over');
      const again = await trial.outcome(() => store.write('y', { expected }), 'another write over them');
      expectThat(again.status === 'rejected', 'they were written over twice');
    },
  },
  {
    id: 'RING-EMPTY-THERE',
    async run(trial) {
      const name = trial.freshName();
      await trial.plant(name, '');
      const store = await trial.open(name);
      const found = await trial.outcome(() => store.read(), 'a read of an empty document');
      if (found.status === 'rejected') return;
      expectThat(
        found.value !== undefined,
        'a read of an empty document that was planted says that the ring is absent',
      );
    },
  },
  {
    id: 'RING-EMPTY-CORRUPT',
    async run(trial) {
      const name = trial.freshName();
      await trial.plant(name, '');
      const store = await trial.open(name);
      await trial.expectFailure(() => store.read(), 'corrupt', 'a read of an empty document that was planted');
    },
  },
];

/** Puts 262 145 bytes where a ring would be. @returns its name. */
async function plantTooLarge(trial: RingStoreTrial): Promise<string> {
  if (trial.subject.supports.maxDocumentBytes < MAX_DOCUMENT_BYTES) {
    throw new NotApplicable('supports.maxDocumentBytes: no such document can be there');
  }
  const name = trial.freshName();
  await trial.plant(name, `${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}x`);
  return name;
}
