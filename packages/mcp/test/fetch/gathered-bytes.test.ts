import { expect, test } from 'vitest';
import { GatheredBytes } from '../../src/fetch/gathered-bytes.ts';

test('the bytes of all parts are gathered in order, and bytes that were returned earlier do not change', () => {
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

test('many one-byte parts take at most twice as much memory as their bytes', () => {
  const gathered = new GatheredBytes();
  const add = (count: number): ArrayBufferLike => {
    for (let part = 0; part < count; part += 1) gathered.add(new Uint8Array([gathered.size % 256]));
    return gathered.bytes.buffer;
  };
  expect(add(65_536).byteLength).toBe(65_536);
  const larger = add(1);
  expect(larger.byteLength).toBe(131_072);
  // Not copied again.
  expect(add(65_535)).toBe(larger);
  expect([gathered.size, gathered.bytes[131_071]]).toEqual([131_072, 255]);
});

test('a part that is not bytes is refused', () => {
  expect(() => new GatheredBytes().add(Object('text'))).toThrow(TypeError);
});
