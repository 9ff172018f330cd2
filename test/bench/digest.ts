/*
 * The cost of the digest of a call's arguments, as a ratio to `JSON.parse` of the same text, measured alternately:
 * canonical JSON, hashed as it is printed. Where the canonical form is longer than the text, or where the engine itself
 * prints numbers slower than it reads them, the ratio cannot be small: those floors are shown.
 */
import { createHash, hash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { canonicalJson } from '@sealring/core';
import { type Estimate, estimate } from './statistics.ts';
import type { Verdict } from './verdict.ts';

export interface DigestOptions {
  /** Number of bytes of JSON in each shape. Default 4 MiB. */
  readonly bytes?: number;
  /** Turns of each shape. Default 25. */
  readonly turns?: number;
}

/** The cost for one shape; ratios are times `JSON.parse`. */
export interface DigestCost {
  readonly shape: string;
  readonly digest: Estimate;
  /** The hash of the canonical text alone. */
  readonly hash: Estimate;
  /** `JSON.stringify` of the value. */
  readonly stringify: Estimate;
}

export interface DigestReport {
  readonly bytes: number;
  readonly shapes: readonly DigestCost[];
}

const LIMIT = 2;
const PRINT = { sortKeys: true, allowInfinity: true };

export function judgeDigest({ shapes }: DigestReport): readonly Verdict[] {
  return shapes.map(({ shape, digest }) => {
    const measured = Number(digest.median.toFixed(2));
    return { law: `the digest of ${shape}, times JSON.parse`, limit: LIMIT, measured, met: measured <= LIMIT };
  });
}

/** JSON texts of about this many bytes. */
export function shapesOf(bytes: number): ReadonlyMap<string, string> {
  const text = (word: string): string => {
    const length = Buffer.byteLength(JSON.stringify(word)) - 2;
    return JSON.stringify({ text: word.repeat(Math.floor(bytes / length)) });
  };
  const list = (of: (index: number) => unknown): string => {
    const sample = JSON.stringify(Array.from({ length: 1_000 }, (_, index) => of(index))).length / 1_000;
    return JSON.stringify({ list: Array.from({ length: Math.floor(bytes / sample) }, (_, index) => of(index)) });
  };
  // Fractions without repetition in lists of these sizes, and the same in every run.
  const fraction = (index: number): number => ((index + 1) * 0.618_033_988_749_894_9) % 1;
  return new Map([
    ['one plain text', text('The quick brown fox jumps over the lazy dog. ')],
    ['prose with escapes', text('She said: "no".\n\tThen: "C:\\dir".\n')],
    ['a program', text('if (x) {\n  return "y";\n}\n')],
    ['one Japanese text', text('漢字仮名交じり文。')],
    ['one Russian text', text('Съешь же ещё этих мягких булок. ')],
    ['one French text', text('Voilà l’été où naît la fête déjà. ')],
    ['floats of 16 digits', list(fraction)],
    ['amounts', list((index) => Math.round(fraction(index) * 100_000) / 100)],
    ['whole numbers', list((index) => 1_000_000 + index)],
    ['records', list((index) => ({ id: index, name: `name ${index}`, ok: true, price: index / 4, tags: ['a', 'b'] }))],
  ]);
}

export async function measureDigest(
  { bytes = 4 * 1024 * 1024, turns = 25 }: DigestOptions = {},
  progress: (done: number) => void = () => undefined,
): Promise<DigestReport> {
  const texts = shapesOf(bytes);
  const shapes: DigestCost[] = [];
  for (const [shape, text] of texts) {
    shapes.push(measureShape(shape, text, turns));
    progress(shapes.length / texts.size);
  }
  return { bytes, shapes };
}

function measureShape(shape: string, text: string, turns: number): DigestCost {
  const canonical = Buffer.from(canonicalJson(JSON.parse(text), PRINT), 'latin1');
  const digests: number[] = [];
  const hashes: number[] = [];
  const stringifies: number[] = [];
  for (let turn = -3; turn < turns; turn++) {
    let value: unknown;
    const parse = msOf(() => {
      value = JSON.parse(text);
    });
    const digest = msOf(() => digestOf(value));
    const hashed = msOf(() => hash('sha256', canonical));
    const stringify = msOf(() => JSON.stringify(value));
    if (turn < 0) continue;
    digests.push(digest / parse);
    hashes.push(hashed / parse);
    stringifies.push(stringify / parse);
  }
  return { shape, digest: estimate(digests), hash: estimate(hashes), stringify: estimate(stringifies) };
}

/** Computes the digest as the boundary does. */
export function digestOf(value: unknown): string {
  const hashing = createHash('sha256');
  const write = (piece: Uint8Array): void => void hashing.update(piece);
  return hashing.update(canonicalJson(value, { ...PRINT, write })).digest('hex');
}

function msOf(work: () => unknown): number {
  const started = performance.now();
  work();
  return performance.now() - started;
}
