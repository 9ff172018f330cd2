import { expect, test } from 'vitest';
import { GatheredBytes } from '../../src/fetch/gathered-bytes.ts';

test('the bytes of all parts are gathered in their order, and what was returned before does not change', () => {
  const gathered = new GatheredBytes();
  expect([gathered.size, gathered.bytes]).toEqual([0, new Uint8Array()]);
  const parts = ['a', '', 'bc', 'd', 'efghijkl', 'm'].map((text) => new TextEncoder().encode(text));
  const seen = parts.map((part) => {
    gathered.add(part);
    part.fill(0);
    return gathered.bytes;
  });
  expect(seen.map((bytes) => Buffer.from(bytes).toString())).toEqual([
    'a',
    'a',
    'abc',
    'abcd',
    'abcdefghijkl',
    'abcdefghijklm',
  ]);
  expect(gathered.size).toBe(13);
});

test('many parts of one byte take no more memory than their bytes, and some room', () => {
  const gathered = new GatheredBytes();
  for (let count = 0; count < 100_000; count += 1) gathered.add(new Uint8Array([count % 256]));
  expect(gathered.size).toBe(100_000);
  expect(gathered.bytes.buffer.byteLength).toBeLessThanOrEqual(200_000);
  expect(gathered.bytes[99_999]).toBe(99_999 % 256);
});

test('a part that is not bytes is refused', () => {
  expect(() => new GatheredBytes().add(Object('text'))).toThrow(TypeError);
});
