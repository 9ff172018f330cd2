import type { KeyWrapper } from '@sealring/core';
import { sameBytes, text } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { describeThrown, isThenable, kindOf } from '../thrown.ts';
import { expectKind, isArgumentError, isKeyWrapperError } from './errors.ts';
import {
  type BadUnwraps,
  bytesOf,
  type Call,
  CONTEXT,
  copyOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
} from './trial.ts';

/** Number of generated data keys. A byte is equal in all of them by chance once in 10^15 runs. */
const GENERATES = 8;
/** More than a pool of generated data keys may hold. */
const MORE_GENERATES = 24;
/**
 * Minimum number of distinct bytes in a data key. Random keys have about 30, and too few in one of 10^14 cases.
 * Hexadecimal text has at most 16.
 */
const LEAST_DIFFERENT = 17;
/** Of 256 bits, this many are equal in 14 random data keys once in 10^12 runs. A UUID has six that are constant. */
const LEAST_FIXED = 6;
/** Number of concurrent calls, and of wraps before the first unwrap. */
const AT_ONCE = 6;
const MANY_AT_ONCE = 24;
const BUSY: readonly unknown[] = ['throttled', 'unavailable'];
const KEPT = 12;
/** Time for further wraps, in milliseconds. */
const MAKING_MS = 1_500;
/** Maximum number of further wraps, and of unwraps by a quick wrapper: more than a one-byte counter can count. */
const MANY_LOCAL = 300;
/** Time for data keys with random edges, in milliseconds. */
const EDGES_MS = 400;
/** Longest call of a quick service, in milliseconds. */
const QUICK_MS = 5;

/** Number of bytes that the ring passes if the service binds no context. No other length is required. */
const RING_BYTES = 64;

export const ROUND_TRIP_CHECKS: KeyWrapperChecks = {
  'WRAP-PROMISES': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.make(keyWrapper);
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      let answer: unknown;
      await trial.settle(() => {
        answer = start();
        return answer;
      }, name);
      expectThat(isThenable(answer), `${name} returned ${kindOf(answer)}, not a promise`);
    }
  },
  'WRAP-ROUNDTRIP': async (trial) => {
    const keyWrapper = await trial.create();
    await trial.each(dataKeys(trial, keyWrapper), async ([dataKey, what]) => {
      const wrapped = await trial.wrap(keyWrapper, dataKey, {}, `wrap of a data key ${what}`);
      await trial.expectOpens(keyWrapper, { dataKey, wrapped }, `a data key ${what}`);
    });
    for (const _ of trial.inTime(Array.from({ length: MANY_LOCAL }), 0, EDGES_MS)) {
      const dataKey = trial.dataKey(keyWrapper);
      const [head, tail] = [edge(trial), edge(trial)];
      dataKey.set(head);
      dataKey.set(tail, dataKey.length - tail.length);
      const what = `that begins with ${hexOf(head)} and ends with ${hexOf(tail)}, in hexadecimal`;
      await trial.expectOpens(
        keyWrapper,
        { dataKey, wrapped: await trial.wrap(keyWrapper, dataKey) },
        `a data key ${what}`,
      );
    }
  },
  'WRAP-LENGTH-64': (trial) => goesRound(trial, 64),
  'WRAP-LENGTH-32': (trial) => goesRound(trial, 32),
  'WRAP-TWICE': async (trial) => {
    const keyWrapper = await trial.create();
    const dataKey = trial.dataKey(keyWrapper);
    const made: Made[] = await Promise.all(
      [1, 2].map(async () => ({ dataKey, wrapped: await trial.wrap(keyWrapper, dataKey) })),
    );
    // A cache of wraps must not ignore the context.
    const options = { context: { ...CONTEXT, more: 'x' } };
    const again = { dataKey, wrapped: await trial.wrap(keyWrapper, dataKey, options) };
    await trial.expectOpens(keyWrapper, again, 'a wrapped key of the same data key under another context', options);
    while (made.length < KEPT) made.push(...(await trial.makeEach(keyWrapper)));
    await trial.each(made.entries(), ([i, one]) =>
      trial.expectOpens(keyWrapper, one, `wrapped key ${i + 1} of ${made.length}`),
    );
    // Enough to overflow a one-byte counter, if wrapping is quick.
    for (const _ of trial.inTime(Array.from({ length: MANY_LOCAL }), 0, MAKING_MS)) {
      made.push(await trial.make(keyWrapper));
    }
    await trial.each([...made.slice(-3).toReversed(), ...made.slice(0, 2)], (one) =>
      trial.expectOpens(keyWrapper, one, `one of ${made.length} wrapped keys, once more,`),
    );
  },
  'WRAP-GENERATE': async (trial) => {
    const keyWrappers = [await trial.create(), await trial.create()];
    if (keyWrappers.some((one) => one.generate === undefined)) {
      throw new NotApplicable('the key wrapper has no generate');
    }
    const seen: Uint8Array[] = [];
    const look = async (keyWrapper: KeyWrapper, { dataKey, wrapped }: Made): Promise<void> => {
      const different = new Set(dataKey).size;
      expectThat(different > 1, 'generate returned a data key whose bytes are all equal');
      expectThat(different >= LEAST_DIFFERENT, `generate returned a data key with only ${different} distinct bytes`);
      expectThat(!seen.some((earlier) => sameBytes(earlier, dataKey)), 'generate returned the same data key twice');
      seen.push(Uint8Array.from(dataKey));
      await trial.expectOpens(keyWrapper, { dataKey, wrapped }, 'the wrap of a generated data key');
    };
    // Alternates instances, whose data keys must differ.
    for (let i = 0; i < GENERATES; i++) {
      const keyWrapper = keyWrappers[i % keyWrappers.length] as KeyWrapper;
      await look(keyWrapper, await trial.generate(keyWrapper));
    }
    const [first] = keyWrappers as [KeyWrapper];
    const together = Array.from({ length: AT_ONCE }, () => trial.generate(first));
    for (const one of await Promise.all(together)) await look(first, one);
    for (const _ of trial.inTime(Array.from({ length: MORE_GENERATES }), 0))
      await look(first, await trial.generate(first));
    const options = { context: { ...CONTEXT, odd: ' \u00e9\tX ', 'Odd.Name': '' } };
    const outcome = await trial.settle(() => first.wrap(trial.dataKey(first), options), 'wrap');
    // A service may refuse such a context.
    if ('value' in outcome)
      await trial.expectOpens(first, await trial.generate(first, options), 'a generated one', options);
    const [example = new Uint8Array(0)] = seen;
    // Among several hundred bytes, a bit is constant by chance once in 2^400 runs.
    const all = seen.flatMap((one) => [...one]);
    const isFull = all.reduce((set, byte) => set | byte) === 0xff && all.reduce((set, byte) => set & byte) === 0;
    expectThat(isFull, `one bit has the same value in every byte of ${seen.length} generated data keys`);
    const constant = example.findIndex((byte, at) => seen.every((one) => one[at] === byte));
    expectThat(constant < 0, `byte ${constant + 1} of ${seen.length} generated data keys is always the same`);
    const fixed = example.reduce((sum, byte, at) => {
      const differing = seen.reduce((bits, one) => bits | (byte ^ (one[at] ?? 0)), 0);
      return sum + (8 - bitsIn(differing));
    }, 0);
    expectThat(fixed < LEAST_FIXED, `${fixed} bits of ${seen.length} generated data keys are always the same`);
  },
  'WRAP-CONCURRENT': async (trial) => {
    const keyWrapper = await trial.create();
    const sets = Array.from({ length: AT_ONCE }, (_, i) => ({
      dataKey: trial.dataKey(keyWrapper),
      options: { context: { ...CONTEXT, 'sealring:times': `number-${i}` } },
    }));
    const wraps = sets.map(({ dataKey, options }) => trial.wrap(keyWrapper, dataKey, options));
    const made = (await trial.all(wraps)).map((wrapped, i) => ({ ...(sets[i] as (typeof sets)[0]), wrapped }));
    const opens = ({ options, ...one }: (typeof made)[0], what: string): Promise<void> =>
      trial.expectOpens(keyWrapper, one, what, options);
    await trial.all(made.map((one) => opens(one, `one of ${AT_ONCE} wrapped keys, unwrapped concurrently,`)));
    const known = made[0] as (typeof made)[0];
    const same = Array.from({ length: MANY_AT_ONCE }, () => known);
    const began = performance.now();
    await opens(known, 'a wrapped key');
    const count = performance.now() - began < QUICK_MS ? MANY_LOCAL : MANY_AT_ONCE;
    const different = Array.from({ length: count }, (_, i) => made[i % made.length] as (typeof made)[0]);
    for (const [many, words] of [
      [same, 'of a wrapped key'],
      [different, 'of different wrapped keys'],
    ] as const) {
      // A service may refuse so many calls at once.
      const isBusy = (error: unknown): boolean =>
        many.length > MANY_AT_ONCE && isKeyWrapperError(error) && BUSY.includes(error.kind);
      const unwraps = many.map(async ({ options, dataKey, wrapped }) => {
        const start = (): unknown => keyWrapper.unwrap(copyOf(wrapped), options);
        const what = `one of ${many.length} concurrent unwraps ${words}`;
        const outcome = await trial.settle(start, what);
        if ('error' in outcome && isBusy(outcome.error)) return;
        const failed = 'error' in outcome ? describeThrown(outcome.error) : '';
        expectThat('value' in outcome, `${what} failed: ${failed}`);
        expectThat(sameBytes(bytesOf(outcome.value, what), dataKey), `${what} returned a different data key`);
      });
      await trial.all(unwraps);
    }
    const good = (): Promise<void>[] => [opens(known, 'a wrapped key, concurrent with refused ones,')];
    const refused = await trial.refusedUnwraps(keyWrapper, known, known.options.context);
    const unwrap = (signal?: AbortSignal): unknown =>
      keyWrapper.unwrap(copyOf(known.wrapped), { ...known.options, ...(signal && { signal }) });
    const bad = (): Promise<void>[] => refusedBeside(trial, unwrap, refused);
    await trial.all([...good(), ...bad()]);
    const generates = (await trial.makeEach(keyWrapper)).length > 1;
    await trial.all([...bad(), ...good(), ...madeBeside(trial, keyWrapper, generates)]);
  },
};

function bitsIn(byte: number): number {
  return byte.toString(2).replaceAll('0', '').length;
}

/** Refused unwraps and an aborted one, each with its own error. */
function refusedBeside(trial: KeyWrapperTrial, unwrap: Call['start'], refused: BadUnwraps): Promise<void>[] {
  const controller = new AbortController();
  const aborted = trial.settle(() => unwrap(controller.signal), 'an aborted unwrap');
  controller.abort();
  const late = async (): Promise<void> => {
    const outcome = await aborted;
    const isAnothers = 'error' in outcome && isKeyWrapperError(outcome.error) && outcome.error.kind === 'corrupt';
    expectThat(!isAnothers, 'an aborted unwrap failed with the error of a concurrent refused one');
  };
  const bad = refused.map(async ([words, start]) => {
    const what = `unwrap ${words}, concurrent with a valid one,`;
    expectKind(await trial.refusal(start, what), 'corrupt', what);
  });
  return [late(), ...bad];
}

/** Concurrent wraps, generates and signs. */
function madeBeside(trial: KeyWrapperTrial, keyWrapper: KeyWrapper, generates: boolean): Promise<void>[] {
  const opened = async (making: Promise<Made>): Promise<void> =>
    trial.expectOpens(keyWrapper, await making, 'a wrapped key from concurrent calls');
  const signs = keyWrapper.sign !== undefined && keyWrapper.verify !== undefined;
  const signed = (signs ? [0, 1, 2] : []).map(async (i) => {
    const entry = text(`entry ${i} of concurrent signs`);
    const signature = bytesOf(await trial.answer(() => keyWrapper.sign?.(entry), 'sign'), 'sign');
    expectThat(keyWrapper.verify?.(entry, signature) === true, 'one of several concurrent signatures does not verify');
  });
  return [opened(trial.make(keyWrapper)), ...(generates ? [opened(trial.generate(keyWrapper))] : []), ...signed];
}

async function goesRound(trial: KeyWrapperTrial, length: number): Promise<void> {
  const keyWrapper = await trial.create();
  if (keyWrapper.supports.context) throw new NotApplicable('the service binds the context');
  const dataKey = trial.random.bytes(length);
  const what = `wrap of ${length} bytes`;
  if (length !== RING_BYTES) {
    const outcome = await trial.settle(() => keyWrapper.wrap(Uint8Array.from(dataKey), OPTIONS), what);
    if ('error' in outcome && isArgumentError(outcome.error)) return;
  }
  const wrapped = await trial.wrap(keyWrapper, dataKey, {}, what);
  await trial.expectOpens(keyWrapper, { dataKey, wrapped }, `a wrap of ${length} bytes`);
}

/** Data keys that break adapters which treat bytes as text or numbers. */
/** Bytes that numbers, text, encodings and padding treat differently. */
const EDGES: readonly number[] = [0, 1, 9, 10, 13, 32, 34, 37, 43, 47, 61, 92, 127, 128, 254, 255];

/** Up to three such bytes. */
function edge({ random }: KeyWrapperTrial): Uint8Array {
  return Uint8Array.from({ length: random.below(4) }, () => random.pick(EDGES));
}

const hexOf = (bytes: Uint8Array): string => (bytes.length === 0 ? 'any byte' : Buffer.from(bytes).toString('hex'));

function dataKeys(trial: KeyWrapperTrial, keyWrapper: KeyWrapper): readonly (readonly [Uint8Array, string])[] {
  const { length } = trial.dataKey(keyWrapper);
  const withEnds = (byte: number): Uint8Array => trial.random.bytes(length).fill(byte, 0, 2).fill(byte, -2);
  const high = trial.random.bytes(length).map((byte) => byte | 0x80);
  const ofText = (content: string): Uint8Array => text(content.repeat(length).slice(0, length));
  const marked = trial.random.bytes(length);
  marked.set([0xef, 0xbb, 0xbf]);
  const nearly = new Uint8Array(length);
  nearly[length >> 2] = 1;
  const half = trial.random.bytes(length).fill(0, 0, 16);
  const alike = [0, 31].map((at) => {
    const bytes = trial.random.bytes(length).fill(0x41, 0, 32);
    bytes[at] = 0x42;
    return bytes;
  });
  // A sign byte of a number, and the bytes that need one.
  const signed = ['0080', '00ff', '007f', '0000ff', '80', 'ff7f'].map((head) => {
    const bytes = trial.random.bytes(length);
    bytes.set(Buffer.from(head, 'hex'));
    return [bytes, `that begins with ${head} in hexadecimal`] as const;
  });
  const padded = [1, 2, 8, 16].map((count) => trial.random.bytes(length).fill(count, -count));
  const counted = Array.from({ length: Math.ceil(256 / length) }, (_, i) =>
    Uint8Array.from({ length }, (__, at) => i * length + at),
  );
  return [
    [high, 'of bytes that are not text'],
    ...[0, 0x20, 0x0a, 0xff].map((byte) => [withEnds(byte), `with the byte ${byte} at both ends`] as const),
    [ofText('0123456789abcdef'), 'of hexadecimal text'],
    [ofText('Ab+/09_-'), 'of base64 text'],
    [ofText('{"a": 1} '), 'of JSON text'],
    [ofText('ab\r\n'), 'of text in lines'],
    [marked, 'with a byte order mark'],
    [nearly, 'of zeros and one 1'],
    [half, 'that begins with 16 zeros'],
    [half.toReversed(), 'that ends with 16 zeros'],
    ...alike.map((bytes) => [bytes, 'that begins with 32 bytes of which all but one are equal'] as const),
    ...signed,
    ...padded.map((bytes) => [bytes, `that ends like ${bytes.at(-1)} bytes of padding`] as const),
    ...counted.map((bytes) => [bytes, `of the bytes from ${bytes[0]} on`] as const),
  ];
}
