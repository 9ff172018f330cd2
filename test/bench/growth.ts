import { execFile } from 'node:child_process';
import { setImmediate as macrotask } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { KmsCodec } from '@sealring/core';
import { bareCipher } from './contenders/floors.ts';
import { kmsCalls } from './fleet-costs-counting.ts';
import { type GrownRing, joinRing, ringOf, tokensOfOthers } from './growth-rings.ts';
import { type Slope, slopeOf } from './growth-slope.ts';
import { payloadOf } from './payload.ts';
import { type Estimate, estimate, medianOf } from './statistics.ts';
import type { Verdict } from './verdict.ts';

const PAYLOAD_BYTES = 358;
const FIRST_TIMES_WARM = 2.5;
/**
 * "Nothing extra", compared with the bare cipher under as many keys: a thousand KeyObjects do not fit where one does,
 * and make node:crypto's own calls a third slower. The rest is the lookup of a header instead of a comparison.
 */
const NEXT_TIMES_BARE = 1.1;
/** Tokens between two reads of the clock, alternately warm and cold. */
const AT_A_TIME = 10;
/** Unseals of each kind in a round, if there are few salts: each time by a codec that knows none of them. */
const LEAST_CHUNKS = 20;
const BATCH = 200;
/**
 * Nothing is optimized while memory is measured: each requested collection discards optimized code, and V8's lists of
 * code that it compiled again then grow by some kilobytes in ten million tokens, whatever the code does.
 */
const UNOPTIMIZED = ['--no-turbofan', '--no-maglev'];
const PROCESS = fileURLToPath(new URL('./growth-process.ts', import.meta.url));

/** The cost of unsealing the tokens of other processes. */
export interface OpeningCost {
  readonly keys: number;
  /** Other processes, one token from each. */
  readonly salts: number;
  /** Microseconds of an unseal under a salt that was in use a moment ago. */
  readonly warm: Estimate;
  readonly firstTimesWarm: Estimate;
  readonly nextTimesWarm: Estimate;
  /** The same for node:crypto's calls alone: under as many keys, times under one. */
  readonly bareTimesWarm: Estimate;
  /** {@link nextTimesWarm} by {@link bareTimesWarm}. */
  readonly nextTimesBare: Estimate;
  /** Calls during the unseals. */
  readonly kmsCalls: number;
}

/** The cost of a ring of this many keys, as a ratio to the smallest. */
export interface RingCost {
  readonly keys: number;
  readonly sealTimesSmallest: Estimate;
  readonly unsealTimesSmallest: Estimate;
}

export interface GrowthReport {
  readonly opening: readonly OpeningCost[];
  readonly rings: readonly RingCost[];
  /** Bytes on V8's heap and in buffers. */
  readonly memory: { readonly perKey: number; readonly perSalt: number };
  /** Growth in bytes per million tokens, with 95 % confidence; and the samples of the bytes in use. */
  readonly heap: { readonly tokens: number; readonly perMillionTokens: Slope; readonly samples: readonly number[] };
}

export interface GrowthOptions {
  /** Sizes of rings, the smallest first. Default 1, 8, 48: `rotate` adds no key to a ring of 48. */
  readonly keys?: readonly number[];
  /** Default 1, 10, 1 000. */
  readonly salts?: readonly number[];
  /** Repetitions of each timing, at least 6. Default 12. */
  readonly rounds?: number;
  /** Sealed and unsealed between the first and the last sample of the heap. Default 10^6. */
  readonly tokens?: number;
  /** Number of tokens before the first sample: everything is compiled by then. Default 10^6. */
  readonly warmUp?: number;
  /** Samples of the heap, at least 10. Default 50. */
  readonly samples?: number;
}

export async function measureGrowth(
  {
    keys = [1, 8, 48],
    salts = [1, 10, 1_000],
    rounds = 12,
    tokens = 1e6,
    warmUp = 1e6,
    samples: looks = 50,
  }: GrowthOptions = {},
  progress: (done: number) => void = () => undefined,
): Promise<GrowthReport> {
  const most = Math.max(...salts);
  const subjects = [];
  for (const count of keys) subjects.push(await Subject.create(count, salts));
  progress(0.1);
  // The first round compiles.
  for (let round = -1; round < rounds; round++) {
    for (const subject of subjects) subject.timeBatches(round >= 0);
    for (const subject of subjects) await subject.timeOpenings(round >= 0);
    progress(0.1 + (0.5 * (round + 2)) / (rounds + 1));
  }
  const smallest = subjects[0];
  if (smallest === undefined) throw new RangeError('no size of a ring');
  const rings = subjects.map((subject) => subject.ringCost(smallest));
  const opening = subjects.flatMap((subject) => subject.openingCosts());
  for (const subject of subjects) await subject.close();
  const memory = await inProcess<GrowthReport['memory']>('memory', Math.max(...keys), most);
  progress(0.7);
  const samples = await inProcess<readonly number[]>('heap', warmUp, tokens, looks);
  progress(1);
  const slope = slopeOf(samples);
  const per = (bytes: number): number => (bytes / (tokens / looks)) * 1e6;
  return {
    opening,
    rings,
    memory,
    heap: {
      tokens,
      perMillionTokens: { median: per(slope.median), low: per(slope.low), high: per(slope.high) },
      samples,
    },
  };
}

export function judgeGrowth({ opening, heap }: GrowthReport): readonly Verdict[] {
  // With few salts, each by a new codec, the processor is cold: the times are reported, and checked only for many
  // salts.
  const most = Math.max(...opening.map(({ salts }) => salts));
  return [
    ...opening.flatMap(({ keys, salts, firstTimesWarm, nextTimesBare, kmsCalls: calls }): Verdict[] => {
      const processes = salts === 1 ? '1 other process' : `each of ${salts} other processes`;
      const where = `of ${processes}, ring of ${keys} ${keys === 1 ? 'key' : 'keys'}`;
      return [
        ...(salts === most
          ? [
              atMost(
                `unsealing the first token ${where}, as a multiple of a warm unseal`,
                FIRST_TIMES_WARM,
                firstTimesWarm.median,
              ),
            ]
          : []),
        atMost(
          `unsealing the next token ${where}, as a multiple of a warm unseal, relative to the bare cipher`,
          NEXT_TIMES_BARE,
          nextTimesBare.median,
        ),
        atMost(`KMS calls for tokens ${where}`, 0, calls),
      ];
    }),
    // If it ends below zero, memory was freed: no growth either.
    atMost(
      `bytes that each million of ${heap.tokens} tokens leaves on the heap, lower bound`,
      0,
      heap.perMillionTokens.low,
    ),
  ];
}

const atMost = (law: string, limit: number, measured: number): Verdict => ({
  law,
  limit,
  measured,
  // The printed number decides.
  met: Number(measured.toFixed(2)) <= limit,
});

/** Microseconds of an unseal, by kind of token. */
interface Times {
  readonly warm: number[];
  readonly first: number[];
  readonly next: number[];
  readonly bareWarm: number[];
  readonly bareNext: number[];
}

const KINDS = ['warm', 'first', 'next', 'bareWarm', 'bareNext'] as const;
const noTimes = (): Times => ({ warm: [], first: [], next: [], bareWarm: [], bareNext: [] });

/** Decrypts the i-th of as many payloads as there are salts, each under its own key: node:crypto's calls alone. */
function bareCiphers(count: number): (i: number) => unknown {
  const ciphers = Array.from({ length: count }, bareCipher);
  const sealed = ciphers.map((cipher) => cipher.seal(payload, ''));
  return (i) => ciphers[i]?.unseal(sealed[i]);
}

/** Tokens of some other processes, and the medians of the rounds. */
interface Opened extends Times {
  readonly tokens: readonly string[];
  readonly bare: (i: number) => unknown;
  kmsCalls: number;
}

/** One ring, the tokens that other processes sealed on it, and their costs. */
class Subject {
  readonly #keys: number;
  readonly #ring: GrownRing;
  readonly #codec: KmsCodec;
  /** A token of one more process, unsealed repeatedly, so that it is warm. */
  readonly #reference: string;
  /** The result for each number of salts. */
  readonly #opened: readonly Opened[];
  readonly #seals: number[] = [];
  readonly #unseals: number[] = [];

  private constructor(
    keys: number,
    ring: GrownRing,
    codec: KmsCodec,
    tokens: readonly string[],
    salts: readonly number[],
  ) {
    this.#keys = keys;
    this.#ring = ring;
    this.#codec = codec;
    this.#reference = tokens[0] ?? '';
    this.#opened = salts.map((count) => ({
      ...noTimes(),
      tokens: tokens.slice(1, 1 + count),
      bare: bareCiphers(count),
      kmsCalls: 0,
    }));
  }

  static async create(keys: number, salts: readonly number[]): Promise<Subject> {
    const ring = await ringOf(keys);
    const tokens = await tokensOfOthers(ring, 1 + Math.max(...salts), payload);
    return new Subject(keys, ring, await joinRing(ring), tokens, salts);
  }

  timeBatches(counts: boolean): void {
    this.#codec.unseal(this.#reference);
    const seal = microsecondsOf(BATCH, () => this.#codec.seal(payload));
    const unseal = microsecondsOf(BATCH, () => this.#codec.unseal(this.#reference));
    if (!counts) return;
    this.#seals.push(seal);
    this.#unseals.push(unseal);
  }

  async timeOpenings(counts: boolean): Promise<void> {
    for (const opened of this.#opened) {
      const chunks = noTimes();
      while (chunks.first.length < LEAST_CHUNKS) opened.kmsCalls += await this.#openAll(opened, chunks);
      if (!counts) continue;
      for (const kind of KINDS) opened[kind].push(medianOf(chunks[kind]));
    }
  }

  /** Unseals all tokens twice with a codec that knows none of them. Returns its KMS calls meanwhile. */
  async #openAll({ tokens, bare }: Opened, { warm, first, next, bareWarm, bareNext }: Times): Promise<number> {
    await using codec = await joinRing(this.#ring);
    const before = kmsCalls(this.#ring.services.calls);
    codec.unseal(this.#reference);
    const unseal = (i: number): unknown => codec.unseal(tokens[i] ?? '');
    const unsealReference = (): unknown => codec.unseal(this.#reference);
    timeByTurns(tokens.length, unsealReference, unseal, { one: warm, each: first });
    timeByTurns(tokens.length, unsealReference, unseal, { one: warm, each: next });
    // This runs after all the others, so that the keys of one ring do not push the keys of another out of the
    // processor's cache.
    timeByTurns(tokens.length, () => bare(0), bare, { one: bareWarm, each: bareNext });
    // The calls that they would have caused begin now.
    await macrotask();
    return kmsCalls(this.#ring.services.calls) - before;
  }

  ringCost(smallest: Subject): RingCost {
    return {
      keys: this.#keys,
      sealTimesSmallest: estimate(ratios(this.#seals, smallest.#seals)),
      unsealTimesSmallest: estimate(ratios(this.#unseals, smallest.#unseals)),
    };
  }

  openingCosts(): readonly OpeningCost[] {
    return this.#opened.map(({ tokens, warm, first, next, bareWarm, bareNext, kmsCalls: calls }) => ({
      keys: this.#keys,
      salts: tokens.length,
      warm: estimate(warm),
      firstTimesWarm: estimate(ratios(first, warm)),
      nextTimesWarm: estimate(ratios(next, warm)),
      bareTimesWarm: estimate(ratios(bareNext, bareWarm)),
      nextTimesBare: estimate(ratios(ratios(next, warm), ratios(bareNext, bareWarm))),
      kmsCalls: calls,
    }));
  }

  close(): Promise<void> {
    return this.#codec.close();
  }
}

const { payload } = payloadOf(PAYLOAD_BYTES);

/** Some of `each`, alternating with `one`. */
function timeByTurns(
  count: number,
  one: () => unknown,
  each: (i: number) => unknown,
  times: { readonly one: number[]; readonly each: number[] },
): void {
  for (let start = 0; start < count; start += AT_A_TIME) {
    const some = Math.min(AT_A_TIME, count - start);
    // The first of a run needs a lookup, as each of the others does, and does not count as warm.
    one();
    times.one.push(microsecondsOf(some, one));
    times.each.push(microsecondsOf(some, (i) => each(start + i)));
  }
}

function microsecondsOf(count: number, call: (i: number) => unknown): number {
  const started = process.hrtime.bigint();
  for (let i = 0; i < count; i++) call(i);
  return Number(process.hrtime.bigint() - started) / 1_000 / count;
}

/** From the same rounds, so that a slow machine affects both. */
function ratios(of: readonly number[], to: readonly number[]): readonly number[] {
  return of.map((value, round) => value / (to[round] ?? Number.NaN));
}

async function inProcess<T>(...args: readonly (string | number)[]): Promise<T> {
  const given = ['--expose-gc', ...UNOPTIMIZED, PROCESS, ...args.map(String)];
  return JSON.parse((await promisify(execFile)(process.execPath, given)).stdout);
}
