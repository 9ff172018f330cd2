import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { sameBytes } from '../codec/trial.ts';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { CONTEXT, copyOf, type KeyWrapperTrial, kindOf, settle, wrappedKeyOf } from './trial.ts';

/** Data keys that are generated. That one byte is the same in all of them happens by chance once in 10^15 runs. */
const GENERATES = 8;
/** Different bytes in a data key, most often 30. Fewer come by chance once in 10^14 times; of hexadecimal text it is 16. */
const LEAST_DIFFERENT = 17;

/** What goes in comes out, and whose bytes are whose. */
export const ROUND_TRIP_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  {
    id: 'WRAP-PROMISES',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      const calls: readonly (readonly [string, () => unknown])[] = [
        ['wrap', () => keyWrapper.wrap(dataKey, { context: CONTEXT })],
        ['unwrap', () => keyWrapper.unwrap(made, { context: CONTEXT })],
        ['generate', () => keyWrapper.generate?.({ context: CONTEXT })],
        ['sign', () => keyWrapper.sign?.(dataKey)],
      ];
      for (const [name, start] of calls) {
        if (Reflect.get(keyWrapper, name) === undefined) continue;
        let answer: unknown;
        await settle(() => {
          answer = start();
          return answer;
        });
        expectThat(isThenable(answer), `${name} returned ${kindOf(answer)}, not a promise`);
      }
    },
  },
  {
    id: 'WRAP-ROUNDTRIP',
    async run(trial) {
      const keyWrapper = await trial.create();
      for (const [dataKey, what] of dataKeys(trial, keyWrapper)) {
        await trial.expectOpens(keyWrapper, await trial.wrap(keyWrapper, dataKey), dataKey, `a data key ${what}`);
      }
    },
  },
  lengthCheck('WRAP-LENGTH-64', 64),
  lengthCheck('WRAP-LENGTH-32', 32),
  {
    id: 'WRAP-VIEW',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const view = viewOf(trial, dataKey);
      const answer = await trial.answer(() => keyWrapper.wrap(view, { context: CONTEXT }), 'wrap of a view');
      const made = wrappedKeyOf(answer, 'wrap of a view');
      await trial.expectOpens(keyWrapper, made, dataKey, 'the wrap of a view');
      const stored = { ...made, wrapped: viewOf(trial, made.wrapped) };
      const back = await trial.answer(() => keyWrapper.unwrap(stored, { context: CONTEXT }), 'unwrap of a view');
      expectThat(
        types.isUint8Array(back) && sameBytes(back, dataKey),
        `unwrap of a view of a larger buffer gave ${kindOf(back)} other than the data key`,
      );
    },
  },
  {
    id: 'WRAP-OWN-BYTES',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      const stored = copyOf(made);
      made.wrapped.fill(0);
      const first = await trial.unwrap(keyWrapper, stored);
      const second = await trial.unwrap(keyWrapper, stored);
      first.fill(0);
      expectThat(sameBytes(second, dataKey), 'overwriting the bytes of one unwrap changes those of another');
      await trial.expectOpens(keyWrapper, stored, dataKey, 'its wrapped key, after returned bytes were overwritten,');
    },
  },
  {
    id: 'WRAP-CALLERS-BYTES',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const given = Uint8Array.from(dataKey);
      const answer = await trial.answer(() => keyWrapper.wrap(given, { context: CONTEXT }), 'wrap');
      expectThat(sameBytes(given, dataKey), 'wrap changed the data key it was given');
      given.fill(0);
      const made = wrappedKeyOf(answer, 'wrap');
      const stored = copyOf(made);
      const back = await trial.answer(() => keyWrapper.unwrap(made, { context: CONTEXT }), 'unwrap');
      expectThat(sameBytes(made.wrapped, stored.wrapped), 'unwrap changed the wrapped bytes it was given');
      expectThat(
        types.isUint8Array(back) && sameBytes(back, dataKey),
        'overwriting the caller’s data key after wrap changed what unwrap returns',
      );
    },
  },
  {
    id: 'WRAP-CALLERS-BYTES-AT-ONCE',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const given = Uint8Array.from(dataKey);
      const answer = await trial.answer(() => {
        const call = keyWrapper.wrap(given, { context: CONTEXT });
        given.set(trial.dataKey(keyWrapper));
        return call;
      }, 'wrap, whose data key was overwritten meanwhile,');
      const back = await trial.unwrap(keyWrapper, wrappedKeyOf(answer, 'wrap'));
      expectThat(sameBytes(back, dataKey), 'a data key that was overwritten during the call was wrapped as it is then');
    },
  },
  {
    id: 'WRAP-TWICE',
    async run(trial) {
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const wraps = [await trial.wrap(keyWrapper, dataKey), await trial.wrap(keyWrapper, dataKey)];
      for (const made of wraps) await trial.expectOpens(keyWrapper, made, dataKey, 'one of two wraps of a data key');
    },
  },
  {
    id: 'WRAP-GENERATE',
    async run(trial) {
      const keyWrappers = [await trial.create(), await trial.create()];
      if (keyWrappers.some((one) => one.generate === undefined)) {
        throw new NotApplicable('the key wrapper has no generate');
      }
      const seen: Uint8Array[] = [];
      // By turns: what one of them makes, the other one does not.
      for (let i = 0; i < GENERATES; i++) {
        const keyWrapper = keyWrappers[i % keyWrappers.length] as KeyWrapper;
        const { dataKey, wrapped } = await trial.generate(keyWrapper);
        const different = new Set(dataKey).size;
        expectThat(different > 1, 'generate gave one byte repeated as a data key');
        expectThat(different >= LEAST_DIFFERENT, `generate gave a data key of only ${different} different bytes`);
        expectThat(!seen.some((earlier) => sameBytes(earlier, dataKey)), 'generate gave the same data key twice');
        seen.push(Uint8Array.from(dataKey));
        await trial.expectOpens(keyWrapper, wrapped, dataKey, 'the wrap of a generated data key');
      }
      const [first = new Uint8Array(0)] = seen;
      const constant = first.findIndex((byte, at) => seen.every((one) => one[at] === byte));
      expectThat(constant < 0, `byte ${constant + 1} of ${GENERATES} generated data keys is always the same`);
    },
  },
  {
    id: 'WRAP-CONCURRENT',
    async run(trial) {
      const keyWrapper = await trial.create();
      const sets = Array.from({ length: 4 }, (_, i) => ({
        dataKey: trial.dataKey(keyWrapper),
        options: { context: { ...CONTEXT, 'sealring:times': `number-${i}` } },
      }));
      const made = await Promise.all(sets.map(({ dataKey, options }) => trial.wrap(keyWrapper, dataKey, options)));
      const back = await Promise.all(
        made.map((one, i) => trial.unwrap(keyWrapper, one, sets[i]?.options, 'one of four wraps made at once')),
      );
      for (const [i, { dataKey }] of sets.entries()) {
        expectThat(
          sameBytes(back[i] as Uint8Array, dataKey),
          'of four calls made at once, one got another one’s bytes',
        );
      }
    },
  },
];

function lengthCheck(id: string, length: number): Check<KeyWrapperTrial> {
  return {
    id,
    async run(trial) {
      const keyWrapper = await trial.create();
      if (keyWrapper.supports.context) throw new NotApplicable('the service binds the context');
      const bytes = trial.random.bytes(length);
      const made = await trial.wrap(keyWrapper, bytes, {}, `wrap of ${length} bytes`);
      await trial.expectOpens(keyWrapper, made, bytes, `what was made of ${length} bytes`);
    },
  };
}

/** Data keys that break what takes bytes for text, or for numbers. */
function dataKeys(trial: KeyWrapperTrial, keyWrapper: KeyWrapper): readonly (readonly [Uint8Array, string])[] {
  const withEnds = (byte: number): Uint8Array => {
    const bytes = trial.dataKey(keyWrapper);
    bytes.fill(byte, 0, 2).fill(byte, -2);
    return bytes;
  };
  const high = trial.dataKey(keyWrapper).map((byte) => byte | 0x80);
  return [
    [high, 'of bytes that are no text'],
    [withEnds(0), 'with zeros at both ends'],
    [withEnds(0x20), 'with spaces at both ends'],
  ];
}

function viewOf(trial: KeyWrapperTrial, bytes: Uint8Array): Uint8Array {
  const larger = trial.random.bytes(bytes.length + 24);
  larger.set(bytes, 8);
  return larger.subarray(8, 8 + bytes.length);
}

function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function';
}
