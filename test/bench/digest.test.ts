import { hash } from 'node:crypto';
import { canonicalJson } from '@sealring/core';
import { expect, test } from 'vitest';
import { digestOf, judgeDigest, measureDigest, shapesOf } from './digest.ts';

test('every shape has about the requested length, and the same digest when it is hashed in pieces', async () => {
  for (const [shape, text] of shapesOf(200_000)) {
    expect([shape, Math.abs(Buffer.byteLength(text) / 200_000 - 1) < 0.2]).toEqual([shape, true]);
    const value: unknown = JSON.parse(text);
    expect([shape, digestOf(value)]).toEqual([shape, hash('sha256', canonicalJson(value, { sortKeys: true }))]);
  }
  const { shapes } = await measureDigest({ bytes: 20_000, turns: 6 });
  expect(shapes.map(({ shape }) => shape)).toEqual([...shapesOf(20_000).keys()]);
  for (const { digest } of shapes) expect(digest.low).toBeGreaterThan(0);
});

test('the verdict rejects digest results beyond their limits', () => {
  const of = (median: number) => ({ median, low: median, high: median });
  const verdicts = [2, 2.01].map((median) =>
    judgeDigest({ bytes: 1, shapes: [{ shape: 'x', digest: of(median), hash: of(1), stringify: of(1) }] }),
  );
  expect(verdicts.flat().map(({ met }) => met)).toEqual([true, false]);
});
