import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { decodeDocument, readBody } from '../../src/adapter/document-body.ts';
import { MAX_DOCUMENT_BYTES } from '../../src/contracts/ring-store.ts';

describe('readBody', () => {
  test('joins the chunks of a body, whatever its declared length', async () => {
    const body = (): Readable => Readable.from([Buffer.from('ab'), Buffer.from('c')]);
    for (const declared of [3, undefined, '7', null]) {
      expect(await readBody(body(), declared)).toEqual({ answer: Buffer.from('abc') });
    }
  });

  test.each([
    ['ends early', () => Readable.from([Buffer.from('ab')]), 3],
    ['is longer than declared', () => Readable.from([Buffer.from('abcd')]), 3],
    ['holds text', () => Readable.from(['abc']), 3],
    ['is not a stream', () => 'abc', 3],
    ['is missing', () => undefined, undefined],
  ])('reports a body that %s as unavailable', async (_, bodyOf, declared) => {
    expect(await readBody(bodyOf(), declared)).toMatchObject({ failure: { kind: 'unavailable' } });
  });

  test('reads the longest document, and stops one byte beyond it', async () => {
    const longest = Buffer.alloc(MAX_DOCUMENT_BYTES, 'x');
    for (const declared of [undefined, MAX_DOCUMENT_BYTES, String(MAX_DOCUMENT_BYTES + 1)])
      expect(await readBody(Readable.from([longest]), declared)).toEqual({ answer: longest });
    const endless = Readable.from(
      (function* () {
        for (;;) yield longest;
      })(),
    );
    expect(await readBody(endless, undefined)).toMatchObject({ failure: { kind: 'too-large' } });
    expect(endless.destroyed).toBe(true);
  });

  test('a body whose declared length exceeds the limit is not read', async () => {
    const body = Readable.from([Buffer.from('x')]);
    const simple = { [Symbol.asyncIterator]: () => body[Symbol.asyncIterator]() };
    for (const each of [simple, { ...simple, destroy: undefined }, body])
      expect(await readBody(each, MAX_DOCUMENT_BYTES + 1)).toMatchObject({ failure: { kind: 'too-large' } });
    expect([body.destroyed, body.readableDidRead]).toEqual([true, false]);
  });
});

test('decodeDocument accepts UTF-8 that is not empty', () => {
  expect(decodeDocument(Buffer.from('€'), 'blob')).toEqual({ answer: '€' });
  for (const bytes of [Buffer.alloc(0), Buffer.from([0xff])]) {
    expect(decodeDocument(bytes, 'blob')).toMatchObject({
      failure: { kind: 'corrupt', detail: expect.stringContaining('the blob is ') },
    });
  }
});
