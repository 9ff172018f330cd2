import type { KeyWrapper } from '@sealring/core';
import { expectThat, Finding, must, NotApplicable, should } from '../requirement.ts';
import type { KeyWrapperControl } from './target.ts';
import {
  CONTRACT,
  copyOf,
  expectKind,
  type KeyWrapperRequirement,
  type KeyWrapperTrial,
  type Made,
  OPTIONS,
} from './trial.ts';

/** How often a call is made that stays refused: what is remembered shows. */
const TIMES = 3;

/** What happens to wraps when the KMS key is changed; only where the target can do that. */
export const CONTROL_REQUIREMENTS: readonly KeyWrapperRequirement[] = [
  whileRefused(
    'WRAP-DISABLED',
    'disable',
    'enable',
    'disabled',
    'While the KMS key is disabled, unwrap fails as disabled, every time.',
  ),
  afterRefused(
    'WRAP-ENABLED',
    'disable',
    'enable',
    'Once the KMS key is enabled again, keys that it wrapped before unwrap.',
  ),
  whileRefused(
    'WRAP-DENIED',
    'deny',
    'allow',
    'denied',
    'While the caller may not use the KMS key, unwrap fails as denied, every time.',
  ),
  afterRefused(
    'WRAP-ALLOWED',
    'deny',
    'allow',
    'Once the caller may use the KMS key again, keys that it wrapped before unwrap.',
  ),
  must('WRAP-ROTATED-OPENS', 'After a rotation, what was wrapped before still unwraps.', CONTRACT, async (trial) => {
    const control = trial.control('rotate');
    const asked: KeyWrapper[] = [];
    const made: Made[] = [];
    for (let version = 0; version < 3; version++) {
      if (version > 0) await control.rotate();
      asked.push(await trial.create());
      for (const keyWrapper of asked) made.push(...(await trial.makeEach(keyWrapper)));
      for (const keyWrapper of asked) {
        for (const one of made) {
          await trial.expectOpens(keyWrapper, one, `what was wrapped before or after ${version} rotations`);
        }
      }
    }
  }),
  must(
    'WRAP-ROTATED-NAMES',
    'After a rotation, new wraps name the new version.',
    `${CONTRACT}, WrappedKey.keyId`,
    async (trial) => {
      const control = versionedControl(trial);
      const before = await trial.makeEach(await trial.create());
      await control.rotate();
      // The instance from before may continue with the version it knows for a while.
      for (const [i, { by, wrapped }] of (await trial.makeEach(await trial.create())).entries()) {
        const isOther = wrapped.keyId !== before[i]?.wrapped.keyId;
        expectThat(isOther, `wraps of ${by} from before and after a rotation name the same version`);
      }
    },
  ),
  should(
    'WRAP-VERSIONS-DECLARED',
    'supports.keyVersions is true exactly where new wraps name a new version.',
    `${CONTRACT}, supports`,
    async (trial) => {
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
  ),
  should(
    'WRAP-VERSION-BINDS',
    'A wrapped key that names another version of its KMS key does not unwrap.',
    'Sealring decision 0009',
    async (trial) => {
      const control = versionedControl(trial);
      const before = await trial.makeEach(await trial.create());
      await control.rotate();
      const fresh = await trial.create();
      const after = await trial.makeEach(fresh);
      for (const [one, other] of [
        ...before.map((made, i) => [made, after[i]]),
        ...after.map((made, i) => [made, before[i]]),
      ]) {
        const { keyId } = (other as Made).wrapped;
        if (keyId === (one as Made).wrapped.keyId) continue;
        const what = 'a wrapped key under the name of another version';
        await trial.refusal(() => fresh.unwrap({ ...copyOf((one as Made).wrapped), keyId }, OPTIONS), what);
      }
    },
  ),
];

type Pair = keyof Omit<KeyWrapperControl, 'rotate'>;

function whileRefused(id: string, change: Pair, undo: Pair, kind: string, words: string): KeyWrapperRequirement {
  return must(id, words, `${CONTRACT}, KeyWrapperErrorKind`, async (trial) => {
    const control = trial.control(change, undo);
    // An earlier unwrap must not answer now: an unwrap checks the permission to use the key.
    const { keyWrapper, ...made } = await trial.createOpened();
    await control[change]();
    try {
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
  });
}

function afterRefused(id: string, change: Pair, undo: Pair, words: string): KeyWrapperRequirement {
  return must(id, words, CONTRACT, async (trial) => {
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
  });
}

function versionedControl(trial: KeyWrapperTrial): Pick<Required<KeyWrapperControl>, 'rotate'> {
  if (!trial.supports.versions) throw new NotApplicable('supports.versions is false');
  return trial.control('rotate');
}
