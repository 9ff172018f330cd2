import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import { flipped, sameBytes, text } from '../bytes.ts';
import { expectThat } from '../requirement.ts';
import type { Outcome } from '../trial.ts';
import { bytesOf, copyOf, type KeyWrapperChecks, type KeyWrapperTrial, OPTIONS, wrappedKeyOf } from './trial.ts';

const ENTRY = '{"ring":"conformance","id":"AAAAAAAAAAAAAAAA"}';

/** How long to wait for asynchronous changes to bytes after a call has ended, in milliseconds. */
const LATER_MS = 100;
/**
 * Minimum and maximum number of results to keep for each kind of call. Calls are made in pairs. If time allows, more
 * results are kept than a buffer pool holds.
 */
const [LEAST_KEPT, MOST_KEPT] = [10, 40];
const KEEPING_MS = 300;

/** Bytes that must not change, with a copy. */
interface Kept {
  readonly what: string;
  readonly bytes: Uint8Array;
  readonly before: Uint8Array;
}

function kept(what: string, bytes: Uint8Array): Kept {
  return { what, bytes, before: Uint8Array.from(bytes) };
}

function expectKept(all: readonly Kept[], when: string): void {
  for (const { what, bytes, before } of all) expectThat(sameBytes(bytes, before), `the bytes ${what} changed ${when}`);
}

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
      expectThat(sameBytes(bytesOf(opened, 'unwrap'), dataKey), `unwrap of ${kind} returned other bytes`);
      if (keyWrapper.sign === undefined || keyWrapper.verify === undefined) continue;
      const entry = text(ENTRY);
      const signature = bytesOf(await trial.answer(() => keyWrapper.sign?.(viewOf(entry)), `sign of ${kind}`), 'sign');
      expectThat(keyWrapper.verify(entry, signature), `the signature of ${kind} does not verify for its bytes`);
      expectThat(keyWrapper.verify(viewOf(entry), viewOf(signature)), `verify of ${kind} returned false`);
    }
  },
  'WRAP-OWN-BYTES': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.make(keyWrapper);
    const stored = { dataKey: made.dataKey, wrapped: copyOf(made.wrapped) };
    made.wrapped.wrapped.fill(0);
    const returned: Kept[] = [];
    for (const { name, start } of trial.calls(keyWrapper, stored)) {
      for (const _ of trial.inTime(Array.from({ length: MOST_KEPT / 2 }), LEAST_KEPT / 2, KEEPING_MS)) {
        // The second call is in progress while the first result is overwritten.
        const calls = [trial.answer(start, name), trial.answer(start, name)];
        for (const call of calls) call.catch(() => undefined);
        for (const call of calls) {
          for (const bytes of answered(await call)) {
            const isFresh = name === 'unwrap' ? sameBytes(bytes, stored.dataKey) : bytes.some((byte) => byte !== 0xff);
            expectThat(isFresh, `after the result of one ${name} was overwritten, another returned wrong bytes`);
            expectKept(returned, 'with a later call');
            bytes.fill(0xff);
            expectKept(returned, 'when the bytes of another call were overwritten');
            returned.push(kept(`that ${name} returned`, bytes));
          }
        }
      }
    }
    if ((await trial.makeEach(keyWrapper)).length > 1) {
      const { dataKey, wrapped } = await trial.generate(keyWrapper);
      const copy = { dataKey: Uint8Array.from(dataKey), wrapped: copyOf(wrapped) };
      dataKey.fill(0);
      await trial.expectOpens(keyWrapper, copy, 'a generated wrapped key, after its data key was overwritten,');
    }
    await pause(LATER_MS);
    expectKept(returned, 'after it had ended');
    if (keyWrapper.close === undefined) return;
    await trial.closeKeyWrapper(keyWrapper);
    await pause(LATER_MS);
    expectKept(returned, 'when the key wrapper was closed');
  },
  'WRAP-CALLERS-BYTES': async (trial) => {
    const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
    const { dataKey, wrapped } = await trial.make(keyWrapper);
    const aborted = { ...OPTIONS, signal: AbortSignal.abort() };
    const unwrap = (options: typeof OPTIONS) => (bytes: Uint8Array) =>
      keyWrapper.unwrap({ ...wrapped, wrapped: bytes }, options);
    const last = wrapped.wrapped.length - 1;
    const tries: [what: string, bytes: Uint8Array, start: (bytes: Uint8Array) => unknown][] = [
      ['wrap', dataKey, (bytes) => keyWrapper.wrap(bytes, OPTIONS)],
      ['unwrap', wrapped.wrapped, unwrap(OPTIONS)],
      ['an aborted wrap', dataKey, (bytes) => keyWrapper.wrap(bytes, aborted)],
      ['a wrap without options', dataKey, (bytes) => keyWrapper.wrap(bytes, undefined as never)],
      ['a wrap of 31 bytes', dataKey.slice(1), (bytes) => keyWrapper.wrap(bytes, OPTIONS)],
      ['a wrap, with a service that cannot be reached,', dataKey, (bytes) => unasked.wrap(bytes, OPTIONS)],
      ['an unwrap that was refused', flipped(wrapped.wrapped, last), unwrap(OPTIONS)],
      ['an aborted unwrap', wrapped.wrapped, unwrap(aborted)],
    ];
    if (keyWrapper.sign !== undefined && keyWrapper.verify !== undefined) {
      const entry = text(ENTRY);
      const signature = bytesOf(await trial.answer(() => keyWrapper.sign?.(text(ENTRY)), 'sign'), 'sign');
      tries.push(
        ['sign', entry, (bytes) => keyWrapper.sign?.(bytes)],
        ['an aborted sign', entry, (bytes) => keyWrapper.sign?.(bytes, aborted)],
        ['a verify', entry, (bytes) => keyWrapper.verify?.(bytes, Uint8Array.from(signature))],
        ['a verify', signature, (bytes) => keyWrapper.verify?.(text(ENTRY), bytes)],
        ['a verify', flipped(signature, 0), (bytes) => keyWrapper.verify?.(text(ENTRY), bytes)],
      );
    }
    const given: Kept[] = [];
    const ends = new Map<string, Outcome>();
    for (const [what, bytes, start] of tries) {
      const one = kept(`passed to ${what}`, Uint8Array.from(bytes));
      given.push(one);
      ends.set(what, await trial.settle(() => start(one.bytes), what));
      expectKept([one], 'with the call');
    }
    await pause(LATER_MS);
    expectKept(given, 'after it had ended');
    for (const { bytes } of given) bytes.fill(0);
    const answerOf = (what: string): Promise<unknown> =>
      trial.answer(async () => {
        const outcome = ends.get(what) ?? { value: undefined };
        if ('error' in outcome) throw outcome.error;
        return outcome.value;
      }, what);
    const after = 'after the input bytes of earlier calls were overwritten';
    const made = wrappedKeyOf(await answerOf('wrap'), 'wrap');
    for (const one of [made, wrapped]) await trial.expectOpens(keyWrapper, { dataKey, wrapped: one }, after);
    expectThat(
      sameBytes(bytesOf(await answerOf('unwrap'), 'unwrap'), dataKey),
      `${after}, unwrap returned a different data key`,
    );
    if (!ends.has('sign')) return;
    const isGood = keyWrapper.verify?.(text(ENTRY), bytesOf(await answerOf('sign'), 'sign')) === true;
    expectThat(isGood, `${after}, the signature does not verify`);
  },
  'WRAP-CALLERS-BYTES-AT-ONCE': async (trial) => {
    const keyWrapper = await trial.create();
    const dataKey = trial.dataKey(keyWrapper);
    const meanwhile = async (name: string, given: Uint8Array, start: (bytes: Uint8Array) => unknown) =>
      trial.answer(() => {
        const call = start(given);
        given.set(trial.random.bytes(given.length));
        return call;
      }, `${name}, whose bytes were overwritten during the call,`);
    // A slice of a Buffer is not a copy.
    for (const copy of [(bytes: Uint8Array) => Uint8Array.from(bytes), (bytes: Uint8Array) => Buffer.from(bytes)]) {
      const answer = await meanwhile('wrap', copy(dataKey), (bytes) => keyWrapper.wrap(bytes, OPTIONS));
      const back = await trial.unwrap(keyWrapper, wrappedKeyOf(answer, 'wrap'));
      expectThat(sameBytes(back, dataKey), 'wrap used a data key that was overwritten during the call');
      if (keyWrapper.sign === undefined || keyWrapper.verify === undefined) continue;
      const signature = await meanwhile('sign', copy(text(ENTRY)), (bytes) => keyWrapper.sign?.(bytes));
      const isGood = keyWrapper.verify(text(ENTRY), bytesOf(signature, 'sign'));
      expectThat(isGood, 'sign used an entry that was overwritten during the call');
    }
  },
  'WRAP-SIGNAL-AFTER': async (trial) => {
    const keyWrapper = await trial.create();
    const made = await trial.make(keyWrapper);
    const controller = new AbortController();
    const returned: Kept[] = [];
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      const answer = answered(await trial.answer(() => start(controller.signal), name));
      returned.push(...answer.map((bytes) => kept(`that ${name} returned`, bytes)));
    }
    controller.abort();
    // A rejection at this point would be unhandled, and so become visible.
    await new Promise((resolve) => setImmediate(resolve));
    expectKept(returned, 'when its signal aborted after the call');
    await trial.expectOpens(keyWrapper, made, 'its own wrapped key, after a signal of earlier calls aborted,');
  },
};

function answered(answer: unknown): readonly Uint8Array[] {
  if (types.isUint8Array(answer)) return [answer];
  if (typeof answer !== 'object' || answer === null) return [];
  const { dataKey, wrapped } = answer as { readonly dataKey?: unknown; readonly wrapped?: unknown };
  return [dataKey, wrapped].flatMap(answered);
}

function viewIn(trial: KeyWrapperTrial, bytes: Uint8Array, at: number): Uint8Array {
  const larger = trial.random.bytes(bytes.length + 24);
  larger.set(bytes, at);
  return larger.subarray(at, at + bytes.length);
}
