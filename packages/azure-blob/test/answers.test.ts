import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { azureBlobRing } from '../src/index.ts';

const bytes = Buffer.from('abcdef');
const unavailable = { name: 'RingStoreError', kind: 'unavailable', revision: undefined };

/** A ring whose client returns this answer to every call. */
function ringWith(answer: unknown) {
  const give = async (): Promise<unknown> => answer;
  return azureBlobRing({ container: { getBlockBlobClient: () => ({ download: give, upload: give }) }, blob: 'k' });
}

test('one request gets the whole blob, and the SDK does not repeat the request if the body ends early', async () => {
  const asked: unknown[] = [];
  const download = async (...given: unknown[]): Promise<unknown> => {
    asked.push(given);
    return { etag: '"0x1"', readableStreamBody: Readable.from([bytes]) };
  };
  const container = { getBlockBlobClient: () => ({ download, upload: download }) };
  await azureBlobRing({ container, blob: 'k' }).read();
  expect(asked).toEqual([[0, undefined, { abortSignal: expect.any(AbortSignal), maxRetryRequests: 0 }]]);
});

describe('answers that the emulator never gives', () => {
  test('a body in chunks is joined, even if a chunk ends within a character', async () => {
    const euro = Buffer.from('€');
    const readableStreamBody = Readable.from([euro.subarray(0, 1), euro.subarray(1)]);
    const answer = { etag: '"0x1"', readableStreamBody, contentLength: 3 };
    expect(await ringWith(answer).read()).toEqual({ document: '€', revision: '"0x1"' });
  });

  const body = () => Readable.from([bytes]);
  test.each([
    ['shorter than declared', /^the body ended early/, { readableStreamBody: body(), contentLength: 7 }],
    ['longer than declared', /^the body ended early/, { readableStreamBody: body(), contentLength: 5 }],
    ['text instead of bytes', /no body/, { readableStreamBody: Readable.from(['abcdef']), contentLength: 6 }],
    ['a string instead of a stream', /no body/, { readableStreamBody: 'abcdef', contentLength: 6 }],
    ['of another checksum', /^the document was damaged/, { readableStreamBody: body(), contentMD5: Buffer.alloc(16) }],
    ['missing', /no body/, { contentLength: 6 }],
  ])('a body that is %s is reported as unavailable', async (_, detail, answer) => {
    const refusal = { ...unavailable, detail: expect.stringMatching(detail) };
    await expect(ringWith({ etag: '"0x1"', ...answer }).read()).rejects.toMatchObject(refusal);
  });

  test('content that is not a document is reported as corrupt, with the ETag of the answer if it has one', async () => {
    for (const [etag, revision] of [
      ['"0x1"', '"0x1"'],
      [7, undefined],
    ]) {
      const ring = ringWith({ etag, readableStreamBody: Readable.from([Buffer.from([0xff])]) });
      const refusal = { kind: 'corrupt', detail: 'the blob is not UTF-8', revision };
      await expect(ring.read()).rejects.toMatchObject(refusal);
    }
  });

  test.each([[undefined], [''], ['0x1'], ['*'], ['"*"'], ['""'], ['"a" "b"'], [7]])(
    'an answer with the ETag %j, which names no single version, is reported as unavailable',
    async (etag) => {
      const noEtag = { ...unavailable, detail: 'the answer has no ETag' };
      await expect(ringWith({ etag, readableStreamBody: body() }).read()).rejects.toMatchObject(noEtag);
      const foreign = { ...unavailable, detail: 'the answer to the write did not come from Blob Storage' };
      await expect(ringWith({ etag }).write('x', { expected: undefined })).rejects.toMatchObject(foreign);
    },
  );

  test.each([[undefined], [null], ['answer'], [{}]])('an answer of %j is reported as unavailable', async (answer) => {
    await expect(ringWith(answer).read()).rejects.toMatchObject(unavailable);
    await expect(ringWith(answer).write('x', { expected: undefined })).rejects.toMatchObject(unavailable);
  });

  test('the date of an answer, even of a refusal, is reported unless it is invalid (F13)', async () => {
    const dates: Date[] = [];
    const onServiceDate = (date: Date): void => void dates.push(date);
    const date = new Date('2026-11-21T10:00:00Z');
    const answer = { etag: '"0x1"', readableStreamBody: Readable.from([bytes]), date };
    await ringWith(answer).read({ onServiceDate });
    await ringWith({ etag: '"0x1"', date }).write('x', { expected: undefined, onServiceDate });
    expect(dates).toEqual([date, date]);
    for (const bad of [undefined, new Date(Number.NaN), 'today', 0]) {
      await ringWith({ etag: '"0x1"', date: bad }).write('x', { expected: undefined, onServiceDate });
    }
    expect(dates).toHaveLength(2);
    for (const refusedAt of [date.toUTCString(), 'today', undefined]) {
      const refuse = async (): Promise<never> => {
        throw Object.assign(new Error('text'), { code: 'BlobNotFound', statusCode: 404, details: { date: refusedAt } });
      };
      const container = { getBlockBlobClient: () => ({ download: refuse, upload: refuse }) };
      expect(await azureBlobRing({ container, blob: 'k' }).read({ onServiceDate })).toBeUndefined();
    }
    expect(dates).toEqual([date, date, date]);
  });
});
