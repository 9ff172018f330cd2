import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { bothWays } from '../bytes.ts';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { expectKind } from './errors.ts';
import {
  bytesOf,
  copyOf,
  generatedOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  type MadeBy,
  OPTIONS,
  wrappedKeyOf,
} from './trial.ts';

/** Number of repetitions of a refused call, which reveal a cached result. */
const TIMES = 3;

/** How long to wait for calls that a key wrapper makes ahead of time, in milliseconds. */
const AHEAD_MS = 100;

/** Number of rotations after which a version has two digits, if time allows that many. */
const TWO_DIGITS = 10;
const ROTATING_MS = 1_000;

/** Number of wraps that start in sequence while the version changes. */
const BESIDE_ROTATION = 12;

/** Checks during and after changes to the KMS key, for targets with a `control`. */
export const CONTROL_CHECKS: KeyWrapperChecks = {
  'WRAP-DISABLED': whileRefused(['disable', 'enable'], 'disabled'),
  'WRAP-ENABLED': afterRefused(['disable', 'enable']),
  'WRAP-DENIED': whileRefused(['deny', 'allow'], 'denied'),
  'WRAP-ALLOWED': afterRefused(['deny', 'allow']),
  'WRAP-ROTATED-OPENS': async (trial) => {
    const control = trial.control('rotate');
    const asked: KeyWrapper[] = [];
    const made: Made[] = [];
    const signed: (readonly [by: KeyWrapper, entry: Uint8Array, signature: Uint8Array])[] = [];
    for (let version = 0; version < 3; version++) {
      const fresh = await trial.create();
      const [maker] = asked;
      if (maker !== undefined) {
        // Some of these are in progress when the version changes.
        const begun: Promise<Made>[] = [];
        let rotation: Promise<void> | undefined;
        for (let i = 0; i < BESIDE_ROTATION; i++) {
          if (i === BESIDE_ROTATION / 2) rotation = Promise.resolve(control.rotate());
          begun.push(trial.make(maker));
          for (const call of [begun[i], rotation]) call?.catch(() => undefined);
          await pause(1);
        }
        const beside = await trial.all(begun);
        await rotation;
        await trial.each(beside, (one) => trial.expectOpens(fresh, one, 'a wrapped key made during a rotation'));
      }
      asked.push(fresh);
      for (const keyWrapper of asked) {
        for (const isGeneratedFirst of [true, false]) {
          made.push(...(await trial.makeEach(keyWrapper, {}, { isGeneratedFirst })));
        }
        const entry = trial.random.bytes(32);
        const signature = keyWrapper.verify && (await trial.answer(() => keyWrapper.sign?.(entry), 'sign'));
        if (!types.isUint8Array(signature) || keyWrapper.verify?.(entry, signature) !== true) continue;
        signed.push([keyWrapper, entry, signature]);
      }
      const what = `was created before or after ${version} rotations`;
      for (const keyWrapper of asked) {
        await trial.each(made, (one) => {
          expectThat(keyWrapper.owns?.(one.wrapped) ?? true, `owns did not return true for a wrapped key that ${what}`);
          return trial.expectOpens(keyWrapper, one, `a wrapped key that ${what}`);
        });
      }
      const areGood = signed.every(([by, entry, signature]) => by.verify?.(entry, signature) === true);
      expectThat(areGood, `a signature that ${what} does not verify on the instance that created it`);
    }
  },
  'WRAP-ROTATED-REFUSES': async (trial) => {
    const { rotate } = trial.control('rotate');
    const before = await trial.create();
    const made = await trial.makeEach(before);
    const refused: (readonly [one: MadeBy, words: string])[] = [];
    for (const one of made) {
      for (const [words] of await trial.refusedUnwraps(before, one)) refused.push([one, words]);
    }
    await rotate();
    const after = await trial.create();
    for (const keyWrapper of [before, after]) {
      for (const [one, words] of refused) {
        const what = `unwrap after a rotation, ${words}`;
        const [, start] = trial.badUnwraps(keyWrapper, one).find(([same]) => same === words) ?? [];
        if (start !== undefined) expectKind(await trial.refusal(start, what), 'corrupt', what);
      }
      for (const one of await trial.makeEach(after)) {
        for (const [words, start] of trial.badUnwraps(keyWrapper, one)) {
          const what = `unwrap after a rotation, ${words}, made after it`;
          expectKind(await trial.refusal(start, what), 'corrupt', what);
        }
      }
    }
  },
  'WRAP-ROTATED-NAMES': async (trial) => {
    // For some time, the earlier instance may keep using the version that it knows.
    const { before, after } = await rotated(trial);
    const names = new Set(before.map(({ wrapped }) => wrapped.keyId));
    const expectNew = (made: readonly MadeBy[]): void => {
      for (const { by, wrapped } of made) {
        expectThat(!names.has(wrapped.keyId), `a wrapped key of ${by} after a rotation names an earlier version`);
      }
      for (const { wrapped } of made) names.add(wrapped.keyId);
    };
    expectNew(after);
    if (trial.target.control?.disable !== undefined) {
      const asked = await trial.create();
      const [{ wrapped } = { wrapped: undefined }] = await trial.makeEach(asked);
      await trial.whileChanged(['disable', 'enable'], async () => {
        await trial.settle(() => asked.wrap(trial.dataKey(asked), OPTIONS), 'wrap');
      });
      const what = 'a wrap after disable and enable';
      // WRAP-ENABLED checks whether the wrap succeeds at all.
      const again = await trial.settle(() => asked.wrap(trial.dataKey(asked), OPTIONS), 'wrap');
      const isSame = 'error' in again || wrappedKeyOf(again.value, what).keyId === wrapped?.keyId;
      expectThat(isSame, `${what} names a different version than the earlier wrapped key`);
    }
    // Rotates up to a two-digit version, which precedes a one-digit version if versions are compared as text.
    const { rotate } = trial.control('rotate');
    for (const _ of trial.inTime(Array.from({ length: TWO_DIGITS }), 0, ROTATING_MS)) {
      await rotate();
      expectNew(await trial.makeEach(await trial.create()));
    }
    const last = await trial.create();
    await trial.each(before, (one) => trial.expectOpens(last, one, 'a wrapped key from before many rotations'));
  },
  'WRAP-VERSIONS-DECLARED': async (trial) => {
    const declares = (await trial.create()).supports.keyVersions === true;
    const isAllowed = !declares || trial.supports.versions;
    expectThat(isAllowed, 'supports.keyVersions is true, but supports.versions of the target is false');
    const { before, after } = await rotated(trial);
    const names = before[0]?.wrapped.keyId !== after[0]?.wrapped.keyId;
    const words = names ? 'name a different version' : 'name the same version';
    expectThat(names === declares, `supports.keyVersions is ${declares}, but wraps after a rotation ${words}`);
  },
  'WRAP-VERSION-BINDS': async (trial) => {
    await bindsSpelling(trial);
    const { fresh, before, after } = await rotated(trial);
    // A cached unwrap must not be used for another name.
    for (const { wrapped } of [...before, ...after]) {
      await trial.settle(() => fresh.unwrap(copyOf(wrapped), OPTIONS), 'unwrap');
    }
    const pairs = before.flatMap((made, i) => bothWays(made, after[i] as Made));
    for (const [one, { wrapped }] of pairs) {
      const { keyId } = wrapped;
      if (keyId === one.wrapped.keyId) continue;
      const what = 'a wrapped key under the name of another version';
      await trial.refusal(() => fresh.unwrap({ ...copyOf(one.wrapped), keyId }, OPTIONS), what);
    }
  },
};

/**
 * Expects a version to have exactly one spelling. Without versions, a suffix names another KMS key, which
 * WRAP-OTHER-KEY-NAMED checks.
 */
async function bindsSpelling(trial: KeyWrapperTrial): Promise<void> {
  const { keyWrapper, wrapped } = await trial.createOpened();
  const { keyId } = wrapped;
  if (keyWrapper.supports.keyVersions !== true) return;
  const ends = ['x', '\n', ' ', '/', '?x=y', '.0', 'e0'].map((end) => keyId + end);
  const numbers = ['0', ' ', '0x', '+'].map((before) => keyId.replace(/\d+$/, (digits) => before + digits));
  // These numbers have the same lowest 8, 16, 32 or 64 bits as the version.
  const overflowing = [8n, 16n, 32n, 64n].map((bits) =>
    keyId.replace(/\d+$/, (digits) => `${BigInt(digits) + 2n ** bits}`),
  );
  const names = new Set([...ends, ...numbers, ...overflowing, keyWrapper.keyId, keyId.slice(0, -1)]);
  names.delete(keyId);
  await trial.each(names, async (name) => {
    const what = `a wrapped key with a different spelling of its version: ${JSON.stringify(name).slice(-200)}`;
    await trial.refusal(() => keyWrapper.unwrap({ ...copyOf(wrapped), keyId: name }, OPTIONS), what);
  });
}

/** Wrapped keys from before a rotation, and wrapped keys of a new instance after it. */
async function rotated(trial: KeyWrapperTrial) {
  if (!trial.supports.versions) throw new NotApplicable('supports.versions is false');
  const control = trial.control('rotate');
  const before = await trial.makeEach(await trial.create());
  await control.rotate();
  const fresh = await trial.create();
  return { fresh, before, after: await trial.makeEach(fresh) };
}

type Pair = Parameters<KeyWrapperTrial['whileChanged']>[0];

function whileRefused(pair: Pair, kind: string): Check<KeyWrapperTrial> {
  return async (trial) => {
    trial.control(...pair);
    // A cached unwrap must not be used now, since an unwrap checks the permission to use the key.
    const { keyWrapper, ...made } = await trial.createOpened();
    for (let time = 1; time < TIMES; time++) await trial.expectOpens(keyWrapper, made);
    for (const { name, start } of trial.calls(keyWrapper, made)) await trial.settle(start, name);
    const entry = trial.random.bytes(32);
    const signature = keyWrapper.verify && (await trial.answer(() => keyWrapper.sign?.(entry), 'sign'));
    // Time to prepare a result for the next call.
    await pause(AHEAD_MS);
    await trial.whileChanged(pair, async () => {
      // The public key is pinned, so verify still works.
      const isGood = !types.isUint8Array(signature) || keyWrapper.verify?.(entry, signature) === true;
      expectThat(isGood, `while ${kind}, an earlier signature does not verify`);
      const answered = new Set<string>();
      const fresh = await trial.create();
      for (const asked of [keyWrapper, fresh]) {
        const isOwn = asked.owns?.(made.wrapped) ?? true;
        expectThat(isOwn, `while ${kind}, owns did not return true for the key wrapper’s own wrapped key`);
        for (let time = 0; time < TIMES; time++) {
          const calls = trial.calls(asked, made).map(async ({ name, start }) => {
            const what = `${name} while ${kind}`;
            const outcome = await trial.settle(start, what);
            if ('error' in outcome) {
              // A result that the service now refuses must not come from a cache.
              const wasKept = asked === fresh && answered.has(name);
              expectThat(!wasKept, `${what} succeeded on an earlier instance, but was refused on a new one`);
              return expectKind(outcome.error, kind, what);
            }
            if (asked === keyWrapper) answered.add(name);
            // Some services still wrap with a key that they refuse for unwrap, or sign with a separate key.
            expectThat(name !== 'unwrap', `${what} was not refused`);
            if (name === 'wrap') wrappedKeyOf(outcome.value, what);
            else if (name === 'generate') generatedOf(outcome.value, asked);
            else bytesOf(outcome.value, what);
          });
          await Promise.all(calls);
        }
      }
    });
  };
}

function afterRefused(pair: Pair): Check<KeyWrapperTrial> {
  return async (trial) => {
    trial.control(...pair);
    const { keyWrapper, ...made } = await trial.createOpened();
    const calls = trial.calls(keyWrapper, made);
    await trial.whileChanged(pair, async () => {
      for (const { name, start } of calls) await trial.settle(start, name);
    });
    await trial.expectOpens(keyWrapper, made, `a wrapped key from before ${pair.join(' and ')}`);
    for (const { name, start } of calls) await trial.answer(start, `${name} after ${pair[1]}`);
    for (const one of await trial.makeEach(keyWrapper)) {
      await trial.expectOpens(keyWrapper, one, `a wrap after ${pair[1]}`);
    }
  };
}
