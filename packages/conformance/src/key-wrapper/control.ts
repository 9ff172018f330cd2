import { type Check, expectThat, Finding, NotApplicable } from '../requirement.ts';
import type { KeyWrapperControl } from './target.ts';
import { CONTEXT, copyOf, expectKind, type KeyWrapperTrial, settle } from './trial.ts';

/** What becomes of wraps when somebody changes the KMS key; only where the target can do that. */
export const CONTROL_CHECKS: readonly Check<KeyWrapperTrial>[] = [
  whileRefused('WRAP-DISABLED', 'disable', 'enable', 'disabled'),
  afterRefused('WRAP-ENABLED', 'disable', 'enable'),
  whileRefused('WRAP-DENIED', 'deny', 'allow', 'denied'),
  afterRefused('WRAP-ALLOWED', 'deny', 'allow'),
  {
    id: 'WRAP-ROTATED-OPENS',
    async run(trial) {
      const control = trial.control('rotate');
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const before = await trial.wrap(keyWrapper, dataKey);
      await control.rotate();
      const fresh = await trial.create();
      for (const asked of [keyWrapper, fresh]) {
        await trial.expectOpens(asked, before, dataKey, 'what was wrapped before a rotation');
        const after = await trial.wrap(asked, dataKey);
        await trial.expectOpens(asked, after, dataKey, 'what was wrapped after a rotation');
      }
    },
  },
  {
    id: 'WRAP-ROTATED-NAMES',
    async run(trial) {
      const control = versionedControl(trial);
      const keyWrapper = await trial.create();
      const before = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      await control.rotate();
      // The one from before may go on with the version it knows for a while.
      const fresh = await trial.create();
      const after = await trial.wrap(fresh, trial.dataKey(fresh));
      expectThat(after.keyId !== before.keyId, 'wraps from before and after a rotation name the same version');
    },
  },
  {
    id: 'WRAP-VERSIONS-DECLARED',
    async run(trial) {
      const keyWrapper = await trial.create();
      const declares = keyWrapper.supports.keyVersions === true;
      if (declares && !trial.subject.supports.versions) {
        throw new Finding('supports.keyVersions is true, and supports.versions of the target is false');
      }
      const control = versionedControl(trial);
      const before = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      await control.rotate();
      const fresh = await trial.create();
      const after = await trial.wrap(fresh, trial.dataKey(fresh));
      const names = after.keyId !== before.keyId;
      expectThat(
        names || !declares,
        'supports.keyVersions is true, and wraps from before and after a rotation name the same version',
      );
      expectThat(
        declares || !names,
        'wraps name the version that made them, and supports.keyVersions does not say so: no member looks for a new one',
      );
    },
  },
  {
    id: 'WRAP-VERSION-BINDS',
    async run(trial) {
      const control = versionedControl(trial);
      const keyWrapper = await trial.create();
      const before = await trial.wrap(keyWrapper, trial.dataKey(keyWrapper));
      await control.rotate();
      const fresh = await trial.create();
      const { keyId } = await trial.wrap(fresh, trial.dataKey(fresh));
      const what = 'a wrapped key that names another version';
      await trial.refusal(() => fresh.unwrap({ ...copyOf(before), keyId }, { context: CONTEXT }), what);
    },
  },
];

type Pair = keyof Omit<KeyWrapperControl, 'rotate'>;

function whileRefused(id: string, change: Pair, undo: Pair, kind: string): Check<KeyWrapperTrial> {
  return {
    id,
    async run(trial) {
      const control = trial.control(change, undo);
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      // What it opened before must not answer now: an unwrap is the proof of the right to use the key.
      await trial.expectOpens(keyWrapper, made, dataKey);
      await control[change]();
      try {
        for (const asked of [keyWrapper, await trial.create()]) {
          const what = `unwrap, ${kind},`;
          expectKind(await trial.refusal(() => asked.unwrap(copyOf(made), { context: CONTEXT }), what), kind, what);
        }
        // Some services still wrap with a key that they would not unwrap with.
        const wrap = await settle(() => keyWrapper.wrap(dataKey, { context: CONTEXT }));
        if ('error' in wrap) expectKind(wrap.error, kind, `wrap, ${kind},`);
      } finally {
        await control[undo]();
      }
    },
  };
}

function afterRefused(id: string, change: Pair, undo: Pair): Check<KeyWrapperTrial> {
  return {
    id,
    async run(trial) {
      const control = trial.control(change, undo);
      const keyWrapper = await trial.create();
      const dataKey = trial.dataKey(keyWrapper);
      const made = await trial.wrap(keyWrapper, dataKey);
      await control[change]();
      try {
        await settle(() => keyWrapper.unwrap(copyOf(made), { context: CONTEXT }));
        await settle(() => keyWrapper.wrap(Uint8Array.from(dataKey), { context: CONTEXT }));
      } finally {
        await control[undo]();
      }
      await trial.expectOpens(keyWrapper, made, dataKey, `what was wrapped before ${change} and ${undo}`);
      await trial.expectOpens(keyWrapper, await trial.wrap(keyWrapper, dataKey), dataKey, `a wrap after ${undo}`);
    },
  };
}

function versionedControl(trial: KeyWrapperTrial): Pick<Required<KeyWrapperControl>, 'rotate'> {
  if (!trial.subject.supports.versions) throw new NotApplicable('supports.versions is false');
  return trial.control('rotate');
}
