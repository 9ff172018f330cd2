import type { KeyWrapper } from '@sealring/core';
import { sameBytes, text } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { isThenable, kindOf } from '../thrown.ts';
import {
  bytesOf,
  CONTEXT,
  generatedOf,
  isArgumentError,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
} from './trial.ts';

/** Data keys that are generated. That one byte is the same in all of them happens by chance once in 10^15 runs. */
const GENERATES = 8;
/** Different bytes in a data key, most often 30. Fewer come by chance once in 10^14 times; of hexadecimal text it is 16. */
const LEAST_DIFFERENT = 17;
/** Concurrent calls, and wraps kept before the first of them is unwrapped. */
const AT_ONCE = 6;
const MANY_AT_ONCE = 24;
const KEPT = 12;
/** What a wrapper in this process is tried with, where no service is asked: more than a counter of one byte holds. */
const MANY_LOCAL = 300;

/** What the ring hands over where the service binds no context. It need not be able to wrap anything else. */
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
    for (const [dataKey, what] of dataKeys(trial, keyWrapper)) {
      const wrapped = await trial.wrap(keyWrapper, dataKey, {}, `wrap of a data key ${what}`);
      await trial.expectOpens(keyWrapper, { dataKey, wrapped }, `a data key ${what}`);
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
    const most = trial.supports.remote ? KEPT : MANY_LOCAL;
    while (made.length < most) made.push(...(await trial.makeEach(keyWrapper)));
    for (const [i, one] of made.entries()) {
      await trial.expectOpens(keyWrapper, one, `wrapped key ${i + 1} of ${made.length}`);
    }
    for (const one of [...made.slice(-3).toReversed(), ...made.slice(0, 2)]) {
      await trial.expectOpens(keyWrapper, one, `one of ${made.length} wrapped keys, once more,`);
    }
  },
  'WRAP-GENERATE': async (trial) => {
    const keyWrappers = [await trial.create(), await trial.create()];
    if (keyWrappers.some((one) => one.generate === undefined)) {
      throw new NotApplicable('the key wrapper has no generate');
    }
    const seen: Uint8Array[] = [];
    const look = async (keyWrapper: KeyWrapper, { dataKey, wrapped }: Made): Promise<void> => {
      const different = new Set(dataKey).size;
      expectThat(different > 1, 'generate gave one byte repeated as a data key');
      expectThat(different >= LEAST_DIFFERENT, `generate gave a data key of only ${different} different bytes`);
      expectThat(!seen.some((earlier) => sameBytes(earlier, dataKey)), 'generate gave the same data key twice');
      seen.push(Uint8Array.from(dataKey));
      await trial.expectOpens(keyWrapper, { dataKey, wrapped }, 'the wrap of a generated data key');
    };
    // By turns: what one of them makes, the other one does not.
    for (let i = 0; i < GENERATES; i++) {
      const keyWrapper = keyWrappers[i % keyWrappers.length] as KeyWrapper;
      await look(keyWrapper, await trial.generate(keyWrapper));
    }
    const [first] = keyWrappers as [KeyWrapper];
    const together = Array.from({ length: AT_ONCE }, () => trial.generate(first));
    for (const one of await Promise.all(together)) await look(first, one);
    const [example = new Uint8Array(0)] = seen;
    // Of some hundred bytes a bit is the same by chance once in 2^400 runs.
    const all = seen.flatMap((one) => [...one]);
    const isFull = all.reduce((set, byte) => set | byte) === 0xff && all.reduce((set, byte) => set & byte) === 0;
    expectThat(isFull, `a bit of every byte of ${seen.length} generated data keys is always the same`);
    const constant = example.findIndex((byte, at) => seen.every((one) => one[at] === byte));
    expectThat(constant < 0, `byte ${constant + 1} of ${seen.length} generated data keys is always the same`);
  },
  'WRAP-CONCURRENT': async (trial) => {
    const keyWrapper = await trial.create();
    const sets = Array.from({ length: AT_ONCE }, (_, i) => ({
      dataKey: trial.dataKey(keyWrapper),
      options: { context: { ...CONTEXT, 'sealring:times': `number-${i}` } },
    }));
    const words = `one of ${AT_ONCE} calls made at once got another one’s bytes`;
    const made = await Promise.all(sets.map(({ dataKey, options }) => trial.wrap(keyWrapper, dataKey, options)));
    const opened = made.map(async (one, i) => trial.unwrap(keyWrapper, one, sets[i]?.options));
    for (const [i, back] of (await Promise.all(opened)).entries()) {
      expectThat(sameBytes(back, sets[i]?.dataKey ?? back.subarray(1)), words);
    }
    const known = { dataKey: sets[0]?.dataKey as Uint8Array, wrapped: made[0] as Made['wrapped'] };
    const many = Array.from({ length: MANY_AT_ONCE }, () =>
      trial.expectOpens(keyWrapper, known, `one of ${MANY_AT_ONCE} unwraps at once of a wrapped key`, sets[0]?.options),
    );
    await Promise.all(many);
    await allAtOnce(trial, keyWrapper, known, sets[0]?.options.context ?? CONTEXT);
  },
};

/** Wraps, unwraps, generates and signs at once, beside an unwrap that is refused: each gets its own answer. */
async function allAtOnce(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  known: Made,
  context: Readonly<Record<string, string>>,
): Promise<void> {
  const { provider } = known.wrapped;
  const bad = { ...known.wrapped, provider: `${provider.slice(0, 60)}-x` };
  const refused = trial.settle(() => keyWrapper.unwrap(bad, { context }), 'unwrap of another provider’s');
  const entries = Array.from({ length: 3 }, (_, i) => text(`entry ${i} of those signed at once`));
  const [fresh, back, generated, signatures] = await Promise.all([
    trial.make(keyWrapper),
    trial.unwrap(keyWrapper, known.wrapped, { context }),
    keyWrapper.generate && trial.answer(() => keyWrapper.generate?.({ context }), 'generate'),
    Promise.all((keyWrapper.sign ? entries : []).map((entry) => trial.answer(() => keyWrapper.sign?.(entry), 'sign'))),
    refused,
  ]);
  expectThat(sameBytes(back, known.dataKey), 'an unwrap during other calls returns other bytes');
  await trial.expectOpens(keyWrapper, fresh, 'what was wrapped beside other calls');
  if (generated !== undefined && (await trial.makeEach(keyWrapper)).length > 1) {
    await trial.expectOpens(keyWrapper, generatedOf(generated, keyWrapper), 'what was generated beside other calls', {
      context,
    });
  }
  if (keyWrapper.verify === undefined) return;
  for (const [i, signature] of signatures.entries()) {
    const isGood = keyWrapper.verify(entries[i] ?? new Uint8Array(0), bytesOf(signature, 'sign'));
    expectThat(isGood, 'one of several signatures made at once does not verify');
  }
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
  await trial.expectOpens(keyWrapper, { dataKey, wrapped }, `what was made of ${length} bytes`);
}

/** Data keys that break what takes bytes for text, or for numbers. */
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
  const counted = Array.from({ length: Math.ceil(256 / length) }, (_, i) =>
    Uint8Array.from({ length }, (__, at) => i * length + at),
  );
  return [
    [high, 'of bytes that are not text'],
    ...[0, 0x20, 0x0a, 0xff].map((byte) => [withEnds(byte), `with the byte ${byte} at both ends`] as const),
    [ofText('0123456789abcdef'), 'of hexadecimal text'],
    [ofText('Ab+/09_-'), 'of base64 text'],
    [ofText('{"a": 1} '), 'of JSON text'],
    [marked, 'with a byte order mark'],
    [nearly, 'of zeros and one 1'],
    [half, 'that begins with 16 zeros'],
    [half.toReversed(), 'that ends with 16 zeros'],
    ...counted.map((bytes) => [bytes, `of the bytes from ${bytes[0]} on`] as const),
  ];
}
