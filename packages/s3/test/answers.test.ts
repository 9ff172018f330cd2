import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { s3Ring } from '../src/index.ts';

function bodyOf(...chunks: unknown[]): Readable {
  return Readable.from(chunks);
}

/** A ring whose client returns these answers in order. */
function ringWith(...answers: unknown[]) {
  return s3Ring({ bucket: 'payments-sealring', key: 'k', client: { send: async () => answers.shift() } });
}

const bytes = Buffer.from('abcdef');

describe('answers that the emulator never gives', () => {
  test('a body in chunks is joined, even if a chunk ends within a character', async () => {
    const euro = Buffer.from('€');
    const Body = bodyOf(euro.subarray(0, 1), euro.subarray(1));
    expect(await ringWith({ ETag: '"e"', Body, ContentLength: 3 }).read()).toMatchObject({ document: '€' });
  });

  test.each([
    ['shorter than declared', { ETag: '"e"', Body: bodyOf(bytes), ContentLength: 7 }],
    ['longer than declared', { ETag: '"e"', Body: bodyOf(bytes), ContentLength: 5 }],
    ['text instead of bytes', { ETag: '"e"', Body: bodyOf('abcdef'), ContentLength: 6 }],
    ['a string instead of a stream', { ETag: '"e"', Body: 'abcdef', ContentLength: 6 }],
    ['without an ETag', { Body: bodyOf(bytes), ContentLength: 6 }],
    ['missing', { ETag: '"e"', ContentLength: 6 }],
    ['missing, like all other members of the answer', {}],
    ['missing because the answer is a string', 'answer'],
    ['missing because there is no answer', undefined],
  ])('a body that is %s is reported as unavailable', async (_, answer) => {
    const detail = expect.stringMatching(/^the (?:answer has no|body ended) /);
    const unavailable = { name: 'RingStoreError', kind: 'unavailable', revision: undefined, detail };
    await expect(ringWith(answer).read()).rejects.toMatchObject(unavailable);
  });

  test('content that is not a document is reported as corrupt, without a revision if the answer has no ETag', async () => {
    const answer = { Body: bodyOf(Buffer.from([0xff])), ContentLength: 1 };
    const detail = 'the object is not UTF-8';
    await expect(ringWith(answer).read()).rejects.toMatchObject({ kind: 'corrupt', detail, revision: undefined });
  });

  test('with suspended versioning, a read and a write return the same revision, though only reads name the version null', async () => {
    const Metadata: Record<string, string> = {};
    const client = {
      async send(command: { readonly input: object }): Promise<unknown> {
        if (!('Body' in command.input)) return { ETag: '"e"', VersionId: 'null', Metadata, Body: bodyOf(bytes) };
        Object.assign(Metadata, Reflect.get(command.input, 'Metadata'));
        return { ETag: '"e"' };
      },
    };
    const ring = s3Ring({ bucket: 'payments-sealring', key: 'k', client });
    const { revision } = await ring.write('abcdef', { expected: undefined });
    expect(await ring.read()).toEqual({ document: 'abcdef', revision });
  });

  test.each([[undefined], [null], ['answer'], [{}], [{ ETag: 7 }], [{ ETag: '' }]])(
    'an answer of %j to a write is reported as unavailable, because the write may have succeeded',
    async (answer) => {
      const written = ringWith(answer).write('x', { expected: undefined });
      await expect(written).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    },
  );
});
