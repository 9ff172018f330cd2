import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual, types } from 'node:util';
import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { bothWays, xor } from '../bytes.ts';
import { expectThat } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { difference, kindOf } from '../thrown.ts';
import { MOST_STORED } from './signatures.ts';
import {
  altered,
  CONTEXT,
  copyOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  NOWHERE,
  OPTIONS,
  wrappedKeyOf,
} from './trial.ts';

/** Number of consecutive bytes to compare: this many agree by chance in one of 2^128 cases. */
const TELLING_BYTES = 16;
/** Minimum number of nonzero bytes in the XOR of two data keys, since the XOR of a common header is zero. */
const LEAST_DIFFERENT = 8;

/**
 * Whether two wraps use the same key stream: c1 ⊕ c2 then contains k1 ⊕ k2, and anyone with one
 * data key can compute the other. Block modes, AES key wrap, public-key encryption and streams whose nonce is derived
 * from the data key do not have this property.
 */
export function shareKeyStream(one: Uint8Array, oneKey: Uint8Array, other: Uint8Array, otherKey: Uint8Array): boolean {
  const length = Math.min(oneKey.length, otherKey.length);
  const keys = xor(oneKey, otherKey);
  const pieces = [keys.subarray(0, TELLING_BYTES), keys.subarray(length - TELLING_BYTES, length)];
  const telling = pieces.filter((piece) => piece.filter((byte) => byte !== 0).length >= LEAST_DIFFERENT);
  const others = readingsOf(other);
  return readingsOf(one).some((bytes, i) => {
    const beside = others[i];
    if (beside === undefined || beside.length !== bytes.length) return false;
    const together = xor(bytes, beside);
    return telling.some((piece) => together.includes(piece));
  });
}

/** The bytes of a wrapped key, and the decodings of its parts if it is text. */
function readingsOf(wrapped: Uint8Array): readonly Buffer[] {
  const bytes = Buffer.from(wrapped);
  const text = bytes.toString('latin1');
  if (!/^[\t\n\r\u0020-\u007e]+$/.test(text)) return [bytes];
  const pieces = text.split(/[^A-Za-z0-9+/_=-]+/);
  return [bytes, ...pieces.flatMap((piece) => [Buffer.from(piece, 'base64'), Buffer.from(piece, 'hex')])];
}

/** Limits of a ring document for a provider and for the id of a KMS key. */
const PROVIDER = /^[a-z0-9-]{1,64}$/;
const LONGEST_KEY_ID = 2_048;
/** Maximum length of a stored wrapped key: a 64th of 256 KiB, minus the rest of an entry. */
const LARGEST_RECORD = 3_500;
/** Time limit of a call to a service that does not answer, in milliseconds. */
const UNANSWERED_MS = 1_000;
/** How long to wait until an answer has a later date, in milliseconds: dates have a precision of one second. */
const NEXT_SECOND_MS = 1_100;
const DAY_MS = 24 * 60 * 60 * 1_000;

/** Length of a value that makes a wrapped key too long if it contains its context. */
const LONG_VALUE = 2_000;

export const RECORD_CHECKS: KeyWrapperChecks = {
  'WRAP-FACTS': async (trial) => {
    const keyWrapper = await trial.create();
    const before = factsOf(keyWrapper);
    const made = await trial.make(keyWrapper);
    const signal = AbortSignal.abort();
    for (const { name, start } of trial.calls(keyWrapper, made)) {
      await trial.settle(start, name);
      await trial.settle(() => start(signal), name);
      const after = factsOf(keyWrapper);
      expectThat(after === before, `provider, keyId or supports changed with ${name}: ${difference(before, after)}`);
    }
  },
  'WRAP-RECORD': async (trial) => {
    const keyWrapper = await trial.create();
    for (const { by, wrapped } of await trial.makeEach(keyWrapper)) {
      const { provider, keyId, signature } = wrapped;
      expectThat(typeof provider === 'string', `the provider of a wrapped key is ${kindOf(provider)}, not text`);
      const isOwn = provider === keyWrapper.provider;
      expectThat(isOwn, `${by} names another provider: ${difference(provider, keyWrapper.provider)}`);
      checkKeyId(keyId, `the keyId from ${by}`);
      expectLength(wrapped, by);
      const isProof = types.isUint8Array(signature) && signature.length > 0 && signature.length <= MOST_STORED;
      const words = `${by} returned ${kindOf(signature)} as a signature, not 1 to ${MOST_STORED} bytes`;
      expectThat(isProof || signature === undefined, words);
    }
    // A service may refuse a long context.
    const context = { ...CONTEXT, long: 'x'.repeat(LONG_VALUE) };
    const long = await trial.settle(() => keyWrapper.wrap(trial.dataKey(keyWrapper), { context }), 'wrap');
    if ('value' in long) expectLength(wrappedKeyOf(long.value, 'wrap'), 'wrap under a long context');
  },
  'WRAP-RECORD-SIZE': async (trial) => {
    for (const { by, wrapped } of await trial.makeEach(await trial.create())) {
      const { length } = textOf(wrapped);
      const words = `the stored wrapped key of ${by} has ${length} characters, more than ${LARGEST_RECORD}`;
      expectThat(length <= LARGEST_RECORD, words);
    }
  },
  'WRAP-CONFIDENTIAL': async (trial) => {
    const wraps: Made[] = [];
    // The two instances act like two processes, each of which may count its nonces from one.
    for (const keyWrapper of [await trial.create(), await trial.create()]) {
      wraps.push(...(await trial.makeEach(keyWrapper)), ...(await trial.makeEach(keyWrapper)));
    }
    const words = 'use one key stream: their XOR equals the XOR of the data keys';
    for (const [i, { wrapped, dataKey }] of wraps.entries()) {
      const isShown = shows(contentsOf(wrapped), dataKey);
      expectThat(!isShown, 'a wrapped key contains the data key, or a piece of it, in plaintext');
      for (const other of wraps.slice(0, i)) {
        const areAlike = shareKeyStream(wrapped.wrapped, dataKey, other.wrapped.wrapped, other.dataKey);
        expectThat(!areAlike, `two wrapped keys ${words}`);
      }
    }
    await hidesByKey(trial);
  },
  'WRAP-STORED': async (trial) => {
    const [keyWrapper, peer] = [await trial.create(), await trial.create()];
    for (const { by, dataKey, wrapped } of await trial.makeEach(keyWrapper)) {
      const stored = { dataKey, wrapped: fromText(textOf(wrapped)) };
      const what = `the wrapped key of ${by}, stored as text and read again,`;
      await trial.expectOpens(keyWrapper, stored, what);
      await trial.expectOpens(peer, stored, `${what} at another instance`);
    }
  },
  'WRAP-PEER': async (trial) => {
    const [keyWrapper, peer] = [await trial.create(), await trial.create()];
    for (const [maker, opener] of bothWays(keyWrapper, peer)) {
      for (const made of await trial.makeEach(maker)) {
        await trial.expectOpens(opener, made, `the wrapped key of another instance’s ${made.by}`);
      }
    }
  },
  'WRAP-OPTIONS': async (trial) => {
    const keyWrapper = await trial.create();
    const told: unknown[] = [];
    const { signal } = new AbortController();
    const options = { signal, onServiceDate: (date: unknown) => void told.push(date) };
    for (const made of await trial.makeEach(keyWrapper, options)) {
      await trial.expectOpens(keyWrapper, made, undefined, options);
    }
    const entry = trial.random.bytes(32);
    if (keyWrapper.sign !== undefined) await trial.answer(() => keyWrapper.sign?.(entry, { signal }), 'sign');
    // An answer that refuses a call can have a date, too.
    const good = await trial.make(keyWrapper);
    const bad = altered(good, good.wrapped.wrapped.length - 1);
    await trial.settle(() => keyWrapper.unwrap(bad.wrapped, { ...OPTIONS, ...options }), 'unwrap');
    if (trial.target.control?.disable !== undefined) {
      const asked = await trial.create();
      await trial.whileChanged(['disable', 'enable'], async () => {
        await trial.settle(() => asked.wrap(trial.dataKey(asked), { ...OPTIONS, ...options }), 'wrap');
      });
    }
    told.forEach(checkDate);
    await ownDates(trial);
    if (trial.target.createUnreachable === undefined) return;
    const unreachable = await trial.create('createUnreachable');
    const { dataKey, wrapped } = await trial.make(keyWrapper);
    told.length = 0;
    const ending = { ...OPTIONS, ...options, signal: AbortSignal.timeout(UNANSWERED_MS) };
    await Promise.all([
      trial.settle(() => unreachable.wrap(dataKey, ending), `wrap, ${NOWHERE}`),
      trial.settle(() => unreachable.unwrap(wrapped, ending), `unwrap, ${NOWHERE}`),
    ]);
    expectThat(told.length === 0, 'onServiceDate received a date although the service did not answer');
  },
  'WRAP-CALLERS-RECORD': async (trial) => {
    const keyWrapper = await trial.create();
    const { dataKey, wrapped } = await trial.make(keyWrapper);
    // Mutable objects reveal code that modifies only objects that are not frozen.
    for (const shape of [Object.freeze, bare, <T extends object>(members: T): T => members]) {
      const context = shape({ ...CONTEXT });
      const [options, record] = [shape({ context }), shape(copyOf(wrapped))];
      const given = [context, options, record];
      const before = [structuredClone({ ...context }), { context }, copyOf(wrapped)];
      const wereFrozen = given.map(Object.isFrozen);
      for (const [name, start] of [
        ['wrap', () => keyWrapper.wrap(Uint8Array.from(dataKey), options)],
        ['unwrap', () => keyWrapper.unwrap(record, options)],
        ['generate', () => keyWrapper.generate?.(options)],
      ] as const) {
        await trial.answer(start, `${name} with objects that are frozen or have no prototype`);
        const isSame = isDeepStrictEqual(
          [given.map((one) => ({ ...one })), given.map(Object.isFrozen)],
          [before, wereFrozen],
        );
        expectThat(isSame, `${name} modified its wrapped key or options`);
      }
    }
    for (const { by, ...made } of await trial.makeEach(keyWrapper)) {
      const [stored, again] = [copyOf(made.wrapped), await trial.wrap(keyWrapper, made.dataKey)];
      expectThat(again !== made.wrapped, `${by} and wrap returned the same object`);
      again.wrapped.fill(0);
      for (const name of ['provider', 'keyId'] as const) Reflect.set(again, name, 'changed');
      expectThat(textOf(made.wrapped) === textOf(stored), `changing one wrapped key changed that of ${by}`);
      await trial.expectOpens(keyWrapper, { ...made, wrapped: stored }, 'an earlier wrapped key');
    }
  },
};

/** @throws {Finding} if onServiceDate of one call receives the date of another call or of an earlier answer. */
async function ownDates(trial: KeyWrapperTrial): Promise<void> {
  const keyWrapper = await trial.create();
  const dates: [first: Date[], second: Date[]] = [[], []];
  const use = async (onServiceDate: (date: Date) => void): Promise<void> => {
    const { wrapped } = await trial.make(keyWrapper, { onServiceDate });
    await trial.unwrap(keyWrapper, wrapped, { onServiceDate });
  };
  await use((date) => void dates[0].push(date));
  const count = dates[0].length;
  await trial.make(keyWrapper);
  // The date of an answer has a precision of one second.
  if (count > 0) await pause(NEXT_SECOND_MS);
  await use((date) => void dates[1].push(date));
  expectThat(dates[0].length === count, 'onServiceDate received a date after its call had ended');
  expectThat(count === 0 || dates[1].length > 0, 'onServiceDate of a later call received no date');
  const [last, next] = [dates[0].at(-1), dates[1][0]];
  const isLater = last === undefined || next === undefined || next > last;
  expectThat(isLater, 'onServiceDate received the date of an earlier answer');
}

/** Number of data keys that each of two KMS keys wraps. */
const BOTH_WRAP = 8;

/**
 * Expects that a wrapped key depends on the KMS key. Bytes that do not, such as reordered or inverted bytes of the data
 * key, are equal under two KMS keys. The second KMS key wraps in reverse order, so that counters and clocks differ. A
 * few equal bytes are accepted, since some services add a short check value.
 */
async function hidesByKey(trial: KeyWrapperTrial): Promise<void> {
  const [keyWrapper, other] = [await trial.create(), await trial.create('createOtherKey')];
  const dataKeys = Array.from({ length: BOTH_WRAP }, () => trial.dataKey(keyWrapper));
  const read = async (by: KeyWrapper, all: readonly Uint8Array[]): Promise<readonly Buffer[][]> => {
    const made: Buffer[][] = [];
    for (const dataKey of all) made.push([...readingsOf((await trial.wrap(by, dataKey)).wrapped)]);
    return made;
  };
  const ours = await read(keyWrapper, dataKeys);
  const theirs = (await read(other, dataKeys.toReversed())).toReversed();
  for (const form of (ours[0] ?? []).keys()) {
    const [one, two] = [ours, theirs].map((all) => all.map((forms) => forms[form] ?? Buffer.alloc(0)));
    const places = [...(one?.[0] ?? []).keys()].filter((at) => {
      const bytes = one?.map((wrapped) => wrapped[at]) ?? [];
      return new Set(bytes).size > 1 && bytes.every((byte, i) => byte !== undefined && byte === two?.[i]?.[at]);
    });
    const words = `${places.length} bytes of a wrapped key depend on the data key alone, not on the KMS key`;
    expectThat(places.length < TELLING_BYTES, words);
  }
}

function bare<T extends object>(members: T): T {
  return Object.assign(Object.create(null), members) as T;
}

function factsOf({ provider, keyId, supports }: KeyWrapper): string {
  const isName = typeof provider === 'string' && PROVIDER.test(provider);
  expectThat(isName, 'provider is not 1 to 64 characters of a-z, 0-9 and the hyphen');
  checkKeyId(keyId, 'keyId');
  const flags = [supports.context, supports.authenticated, supports.keyVersions ?? false];
  for (const [i, name] of ['context', 'authenticated', 'keyVersions'].entries()) {
    expectThat(typeof flags[i] === 'boolean', `supports.${name} is ${kindOf(flags[i])}, not true or false`);
  }
  return JSON.stringify([provider, keyId, ...flags]);
}

function checkKeyId(keyId: unknown, what: string): void {
  expectThat(typeof keyId === 'string', `${what} is ${kindOf(keyId)}, not text`);
  expectThat(keyId !== '', `${what} is empty`);
  expectThat(keyId.length <= LONGEST_KEY_ID, `${what} has ${keyId.length} characters, more than ${LONGEST_KEY_ID}`);
  expectThat(keyId.isWellFormed(), `${what} contains a lone surrogate, which stored text does not preserve`);
}

function checkDate(date: unknown): void {
  expectThat(types.isDate(date), `onServiceDate received ${kindOf(date)}, not a date`);
  expectThat(!Number.isNaN(date.getTime()), 'onServiceDate received an invalid date');
  // Detects seconds used as milliseconds, since no clock is wrong by a day.
  const isOfToday = Math.abs(date.getTime() - Date.now()) < DAY_MS;
  expectThat(isOfToday, `onServiceDate received ${date.toISOString()}`);
}

function textOf({ provider, keyId, wrapped, signature }: WrappedKey): string {
  return JSON.stringify({
    provider,
    keyId,
    wrapped: Buffer.from(wrapped).toString('base64url'),
    ...(signature !== undefined && { signature: Buffer.from(signature).toString('base64url') }),
  });
}

function fromText(stored: string): WrappedKey {
  const { wrapped, signature, ...rest } = JSON.parse(stored) as Record<keyof WrappedKey, string>;
  return {
    ...rest,
    wrapped: Buffer.from(wrapped, 'base64url'),
    ...(signature !== undefined && { signature: Buffer.from(signature, 'base64url') }),
  };
}

function expectLength({ wrapped: { length } }: WrappedKey, by: string): void {
  expectThat(length > 0, `${by} returned an empty wrapped key`);
  expectThat(length <= MOST_STORED, `${by} returned ${length} bytes, more than the ${MOST_STORED} that a ring stores`);
}
