import { types } from 'node:util';
import type { KeyWrapper } from '@sealring/core';
import { bothWays } from '../bytes.ts';
import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import type { KeyWrapperControl } from './target.ts';
import { copyOf, expectKind, type KeyWrapperChecks, type KeyWrapperTrial, type Made, OPTIONS } from './trial.ts';

/** How often a call is made that stays refused: what is remembered shows. */
const TIMES = 3;

/** What happens to wraps when the KMS key is changed; only where the target can do that. */
export const CONTROL_CHECKS: KeyWrapperChecks = {
  'WRAP-DISABLED': whileRefused('disable', 'enable', 'disabled'),
  'WRAP-ENABLED': afterRefused('disable', 'enable'),
  'WRAP-DENIED': whileRefused('deny', 'allow', 'denied'),
  'WRAP-ALLOWED': afterRefused('deny', 'allow'),
  'WRAP-ROTATED-OPENS': async (trial) => {
    const control = trial.control('rotate');
    const asked: KeyWrapper[] = [];
    const made: Made[] = [];
    for (let version = 0; version < 3; version++) {
      if (version > 0) await control.rotate();
      asked.push(await trial.create());
      for (const keyWrapper of asked) made.push(...(await trial.makeEach(keyWrapper)));
      for (const keyWrapper of asked) {
        for (const one of made) {
          const isOwn = keyWrapper.owns?.(one.wrapped) ?? true;
          expectThat(isOwn, `owns did not say true of what was wrapped before or after ${version} rotations`);
          await trial.expectOpens(keyWrapper, one, `what was wrapped before or after ${version} rotations`);
        }
      }
    }
  },
  'WRAP-ROTATED-NAMES': async (trial) => {
    const control = versionedControl(trial);
    const before = await trial.makeEach(await trial.create());
    await control.rotate();
    // The instance from before may continue with the version it knows for a while.
    for (const { by, wrapped } of await trial.makeEach(await trial.create())) {
      const isNew = before.every((one) => one.wrapped.keyId !== wrapped.keyId);
      expectThat(isNew, `a wrap of ${by} after a rotation names the version from before it`);
    }
  },
  'WRAP-VERSIONS-DECLARED': async (trial) => {
    const keyWrapper = await trial.create();
    const declares = keyWrapper.supports.keyVersions === true;
    if (declares && !trial.supports.versions) {
      throw new Finding('supports.keyVersions is true, and supports.versions of the target is false');
    }
    const control = versionedControl(trial);
    const before = await trial.make(keyWrapper);
    await control.rotate();
    const after = await trial.make(await trial.create());
    const names = before.wrapped.keyId !== after.wrapped.keyId;
    const words = names ? 'name another version' : 'name the same version';
    expectThat(names === declares, `supports.keyVersions is ${declares}, but wraps after a rotation ${words}`);
  },
  'WRAP-VERSION-BINDS': async (trial) => {
    const control = versionedControl(trial);
    const before = await trial.makeEach(await trial.create());
    await control.rotate();
    const fresh = await trial.create();
    const after = await trial.makeEach(fresh);
    const pairs = before.flatMap((made, i) => bothWays(made, after[i] as Made));
    for (const [one, { wrapped }] of pairs) {
      const { keyId } = wrapped;
      if (keyId === one.wrapped.keyId) continue;
      const what = 'a wrapped key under the name of another version';
      await trial.refusal(() => fresh.unwrap({ ...copyOf(one.wrapped), keyId }, OPTIONS), what);
    }
  },
};

type Pair = keyof Omit<KeyWrapperControl, 'rotate'>;

function whileRefused(change: Pair, undo: Pair, kind: string): Check<KeyWrapperTrial> {
  return async (trial) => {
    const control = trial.control(change, undo);
    // An earlier unwrap must not answer now: an unwrap checks the permission to use the key.
    const { keyWrapper, ...made } = await trial.createOpened();
    for (let time = 1; time < TIMES; time++) await trial.expectOpens(keyWrapper, made);
    const signs = keyWrapper.sign !== undefined && keyWrapper.verify !== undefined;
    const entry = trial.random.bytes(32);
    const signature = signs ? await trial.answer(() => keyWrapper.sign?.(entry), 'sign') : undefined;
    await control[change]();
    try {
      // Its public key is pinned.
      const isGood = !types.isUint8Array(signature) || keyWrapper.verify?.(entry, signature) === true;
      expectThat(isGood, `${kind}, a signature from before does not verify`);
      for (const asked of [keyWrapper, await trial.create()]) {
        for (let time = 0; time < TIMES; time++) {
          const calls = trial.calls(asked, made).map(async ({ name, start }) => {
            const what = `${name}, ${kind}`;
            const outcome = await trial.settle(() => start(), what);
            if ('error' in outcome) expectKind(outcome.error, kind, what);
            // Some services still wrap with a key that they would not unwrap with, or sign with another one.
            else expectThat(name !== 'unwrap', `${what}, was not refused`);
          });
          await Promise.all(calls);
        }
      }
    } finally {
      await control[undo]();
    }
  };
}

function afterRefused(change: Pair, undo: Pair): Check<KeyWrapperTrial> {
  return async (trial) => {
    const control = trial.control(change, undo);
    const { keyWrapper, ...made } = await trial.createOpened();
    const calls = trial.calls(keyWrapper, made);
    await control[change]();
    try {
      for (const { name, start } of calls) await trial.settle(() => start(), name);
    } finally {
      await control[undo]();
    }
    await trial.expectOpens(keyWrapper, made, `what was wrapped before ${change} and ${undo}`);
    for (const { name, start } of calls) {
      await trial.answer(() => start(), `${name} after ${undo}`);
    }
    for (const one of await trial.makeEach(keyWrapper))
      await trial.expectOpens(keyWrapper, one, `a wrap after ${undo}`);
  };
}

function versionedControl(trial: KeyWrapperTrial): Pick<Required<KeyWrapperControl>, 'rotate'> {
  if (!trial.supports.versions) throw new NotApplicable('supports.versions is false');
  return trial.control('rotate');
}
