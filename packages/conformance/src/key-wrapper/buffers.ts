import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { flipped, sameBytes, text } from '../bytes.ts';
import { expectThat } from '../requirement.ts';
import {
  bytesOf,
  copyOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
  wrappedKeyOf,
} from './trial.ts';

const ENTRY = '{"ring":"conformance","id":"AAAAAAAAAAAAAAAA"}';

/** What a call still does to bytes once it has ended is done by then: milliseconds. */
const LATER_MS = 100;

export const BUFFER_CHECKS: KeyWrapperChecks = {
  'WRAP-VIEW': async (trial) => {
    const keyWrapper = await trial.create();
    for (const [viewOf, kind] of [
      [(bytes: Uint8Array) => viewIn(trial, bytes, 8), 'a view of a larger buffer'],
      [(bytes: Uint8Array) => viewIn(trial, bytes, 0), 'a view at the start of a larger buffer'],
      [(bytes: Uint8Array) => Buffer.from(bytes), 'a pooled Buffer'],
    ] as const) {
      const dataKey = trial.dataKey(keyWrapper);
      const what = `wrap of ${kind}`;
      const wrapped = wrappedKeyOf(await trial.answer(() => keyWrapper.wrap(viewOf(dataKey), OPTIONS), what), what);
      await trial.expectOpens(keyWrapper, { dataKey, wrapped }, `the ${what}`);
      const stored = { ...wrapped, wrapped: viewOf(wrapped.wrapped) };
      const opened = await trial.answer(() => keyWrapper.unwrap(stored, OPTIONS), `unwrap of ${kind}`);
      expectThat(sameBytes(bytesOf(opened, 'unwrap'), dataKey), `unwrap of ${kind} gave other bytes`);
      if (keyWrapper.sign === undefined || keyWrapper.verify === undefined) continue;
      const entry = text(ENTRY);
      const signature = bytesOf(await trial.answer(() => keyWrapper.sign?.(viewOf(entry)), `sign of ${kind}`), 'sign');
      expectThat(keyWrapper.verify(entry, signature), `the signature of ${kind} does not verify for its bytes`);
      expectThat(keyWrapper.verify(viewOf(entry), viewOf(signature)), `verify of ${kind} says false`);
    }
  },
  'WRAP-OWN-BYTES': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.make(keyWrapper);
    const stored = { dataKey: made.dataKey, wrapped: copyOf(made.wrapped) };
    made.wrapped.wrapped.fill(0);
    for (const { name, start } of trial.calls(keyWrapper, stored)) {
      // The later one is under way when the earlier one is overwritten.
      const [one, other] = [trial.answer(() => start(), name), trial.answer(() => start(), name)];
      other.catch(() => undefined);
      const first = answered(await one);
      first.forEach((bytes) => bytes.fill(0));
      const second = answered(await other);
      const before = second.map((bytes) => Uint8Array.from(bytes));
      first.forEach((bytes) => bytes.fill(0xff));
      const isKept = second.every((bytes, i) => sameBytes(bytes, before[i] ?? bytes.subarray(1)));
      expectThat(isKept, `overwriting the bytes of one ${name} changes those of another`);
      const isFilled = second.every((bytes) => bytes.some((byte) => byte !== 0));
      expectThat(isFilled, `overwriting the bytes of one ${name} overwrites those of another`);
    }
    const back = await trial.unwrap(keyWrapper, stored.wrapped);
    expectThat(
      sameBytes(back, stored.dataKey),
      'after returned bytes were overwritten, a wrapped key unwraps to other bytes',
    );
    if ((await trial.makeEach(keyWrapper)).length > 1) {
      const generated = await trial.generate(keyWrapper);
      const kept = { dataKey: Uint8Array.from(generated.dataKey), wrapped: copyOf(generated.wrapped) };
      generated.dataKey.fill(0);
      await trial.expectOpens(keyWrapper, kept, 'what was generated, after its data key was overwritten,');
    }
    await staysReturned(trial);
  },
  'WRAP-CALLERS-BYTES': async (trial) => {
    const keyWrapper = await trial.create();
    const dataKey = trial.dataKey(keyWrapper);
    const given = Uint8Array.from(dataKey);
    const wrapped = wrappedKeyOf(await trial.answer(() => keyWrapper.wrap(given, OPTIONS), 'wrap'), 'wrap');
    expectThat(sameBytes(given, dataKey), 'wrap changed the data key it was given');
    given.fill(0);
    const stored = copyOf(wrapped);
    const back = bytesOf(await trial.answer(() => keyWrapper.unwrap(wrapped, OPTIONS), 'unwrap'), 'unwrap');
    expectThat(sameBytes(wrapped.wrapped, stored.wrapped), 'unwrap changed the wrapped bytes it was given');
    expectThat(sameBytes(back, dataKey), 'overwriting the caller’s data key after wrap changed what unwrap returns');
    wrapped.wrapped.fill(0);
    await trial.expectOpens(keyWrapper, { dataKey, wrapped: stored }, 'a wrapped key whose bytes were overwritten');
    await staysUnchanged(trial, keyWrapper, { dataKey, wrapped: stored });
    await failsWithoutChange(trial, keyWrapper, { dataKey, wrapped: stored });
    await signsWithoutChange(trial, keyWrapper);
  },
  'WRAP-CALLERS-BYTES-AT-ONCE': async (trial) => {
    const keyWrapper = await trial.create();
    const dataKey = trial.dataKey(keyWrapper);
    const given = Uint8Array.from(dataKey);
    const meanwhile = async (name: string, start: () => unknown, change: () => void): Promise<unknown> =>
      trial.answer(() => {
        const call = start();
        change();
        return call;
      }, `${name}, whose bytes were overwritten meanwhile,`);
    const answer = await meanwhile(
      'wrap',
      () => keyWrapper.wrap(given, OPTIONS),
      () => given.set(trial.dataKey(keyWrapper)),
    );
    const back = await trial.unwrap(keyWrapper, wrappedKeyOf(answer, 'wrap'));
    expectThat(sameBytes(back, dataKey), 'a data key that was overwritten during the call was wrapped as it is then');
    if (keyWrapper.sign === undefined || keyWrapper.verify === undefined) return;
    const entry = text(ENTRY);
    const signature = await meanwhile(
      'sign',
      () => keyWrapper.sign?.(entry),
      () => entry.fill(0),
    );
    const isGood = keyWrapper.verify(text(ENTRY), bytesOf(signature, 'sign'));
    expectThat(isGood, 'an entry that was overwritten during the call was signed as it is then');
  },
  'WRAP-SIGNAL-AFTER': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.make(keyWrapper);
    const controller = new AbortController();
    const answers: (readonly Uint8Array[])[] = [];
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      answers.push(answered(await trial.answer(() => start(controller.signal), name)));
    }
    const before = answers.flat().map((bytes) => Uint8Array.from(bytes));
    controller.abort();
    // What it rejects now, nobody handles.
    await new Promise((resolve) => setImmediate(resolve));
    const isKept = answers.flat().every((bytes, i) => sameBytes(bytes, before[i] ?? bytes.subarray(1)));
    expectThat(isKept, 'a signal that aborted after the call changed what the call had returned');
    await trial.expectOpens(keyWrapper, made, 'its own wrapped key, after a signal of earlier calls aborted,');
  },
};

function answered(answer: unknown): readonly Uint8Array[] {
  if (types.isUint8Array(answer)) return [answer];
  if (typeof answer !== 'object' || answer === null) return [];
  const { dataKey, wrapped } = answer as { readonly dataKey?: unknown; readonly wrapped?: unknown };
  return [dataKey, wrapped].flatMap(answered);
}

/** What calls returned, when time has passed, and once their key wrapper was closed. */
async function staysReturned(trial: KeyWrapperTrial): Promise<void> {
  const keyWrapper = await trial.create();
  const made = await trial.make(keyWrapper);
  const returned: (readonly [name: string, bytes: Uint8Array, before: Uint8Array])[] = [];
  for (const { name, start } of trial.calls(keyWrapper, made)) {
    const all = answered(await trial.answer(() => start(), name));
    returned.push(...all.map((bytes) => [name, bytes, Uint8Array.from(bytes)] as const));
  }
  const look = async (when: string): Promise<void> => {
    await pause(LATER_MS);
    for (const [name, bytes, before] of returned)
      expectThat(sameBytes(bytes, before), `the bytes that ${name} returned changed ${when}`);
  };
  await look('after it had ended');
  if (keyWrapper.close === undefined) return;
  await trial.closeKeyWrapper(keyWrapper);
  await look('when the key wrapper was closed');
}

async function staysUnchanged(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  { dataKey, wrapped }: Made,
): Promise<void> {
  const [given, copy] = [Uint8Array.from(dataKey), copyOf(wrapped)];
  await trial.answer(() => keyWrapper.wrap(given, OPTIONS), 'wrap');
  await trial.answer(() => keyWrapper.unwrap(copy, OPTIONS), 'unwrap');
  await pause(LATER_MS);
  expectThat(sameBytes(given, dataKey), 'wrap changed the data key it was given, after it had ended');
  expectThat(
    sameBytes(copy.wrapped, wrapped.wrapped),
    'unwrap changed the wrapped bytes it was given, after it had ended',
  );
}

async function failsWithoutChange(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  { dataKey, wrapped }: Made,
): Promise<void> {
  const aborted = { ...OPTIONS, signal: AbortSignal.abort() };
  const given = Uint8Array.from(dataKey);
  await trial.settle(() => keyWrapper.wrap(given, aborted), 'an aborted wrap');
  expectThat(sameBytes(given, dataKey), 'an aborted wrap changed the data key it was given');
  for (const [start, what] of [
    [(bytes: Uint8Array) => keyWrapper.wrap(bytes, undefined as never), 'a wrap without options'],
    [(bytes: Uint8Array) => keyWrapper.wrap(bytes.subarray(1), OPTIONS), 'a wrap of a byte less'],
    [(bytes: Uint8Array) => keyWrapper.sign?.(bytes, aborted), 'an aborted sign'],
  ] as const) {
    await trial.settle(() => start(given), what);
    expectThat(sameBytes(given, dataKey), `${what} changed the bytes it was given`);
  }
  const bad = { ...wrapped, wrapped: flipped(wrapped.wrapped, wrapped.wrapped.length - 1) };
  const copy = copyOf(bad);
  for (const [options, what] of [
    [OPTIONS, 'an unwrap that was refused'],
    [aborted, 'an aborted unwrap'],
  ] as const) {
    await trial.settle(() => keyWrapper.unwrap(copy, options), what);
    expectThat(sameBytes(copy.wrapped, bad.wrapped), `${what} changed the wrapped bytes it was given`);
  }
  const unasked = await trial.createUnasked();
  await trial.settle(() => unasked.wrap(given, OPTIONS), 'wrap, with a service that cannot be reached');
  expectThat(sameBytes(given, dataKey), 'a wrap that failed changed the data key it was given');
}

async function signsWithoutChange(trial: KeyWrapperTrial, keyWrapper: KeyWrapper): Promise<void> {
  if (keyWrapper.sign === undefined || keyWrapper.verify === undefined) return;
  const [entry, whole] = [text(ENTRY), text(ENTRY)];
  const signature = bytesOf(await trial.answer(() => keyWrapper.sign?.(entry), 'sign'), 'sign');
  expectThat(sameBytes(entry, whole), 'sign changed the entry it was given');
  entry.fill(0);
  const kept = Uint8Array.from(signature);
  expectThat(keyWrapper.verify(whole, signature), 'overwriting the caller’s entry after sign changed its signature');
  const bad = flipped(signature, 0);
  const badKept = Uint8Array.from(bad);
  keyWrapper.verify(whole, bad);
  const isKept = sameBytes(signature, kept) && sameBytes(bad, badKept) && sameBytes(whole, text(ENTRY));
  expectThat(isKept, 'verify changed the bytes it was given');
}

function viewIn(trial: KeyWrapperTrial, bytes: Uint8Array, at: number): Uint8Array {
  const larger = trial.random.bytes(bytes.length + 24);
  larger.set(bytes, at);
  return larger.subarray(at, at + bytes.length);
}
