import { describeSuite, type TestRunner } from '../describe.ts';
import { type ConformanceOptions, readOptions } from '../options.ts';
import type { ConformanceReport } from '../report.ts';
import { runSuite, type Suite } from '../run.ts';
import { CONTEXT_CHECKS } from './context.ts';
import { CONTROL_CHECKS } from './control.ts';
import { ENDING_CHECKS } from './endings.ts';
import { FAILURE_CHECKS } from './failures.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { OTHER_KEY_CHECKS } from './other-keys.ts';
import { PURITY_CHECKS } from './purity.ts';
import { RECORD_CHECKS } from './records.ts';
import { KEY_WRAPPER_REQUIREMENTS } from './requirements.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { SIGNATURE_CHECKS } from './signatures.ts';
import { type KeyWrapperTarget, readKeyWrapperTarget } from './target.ts';
import { KeyWrapperTrial } from './trial.ts';
import { WRONG_ARGUMENT_CHECKS } from './wrong-arguments.ts';

/** The suite of key wrappers. */
export const KEY_WRAPPER_SUITE: Suite<KeyWrapperTrial> = {
  name: 'key-wrapper',
  requirements: KEY_WRAPPER_REQUIREMENTS,
  checks: [
    ...ROUND_TRIP_CHECKS,
    ...RECORD_CHECKS,
    ...CONTEXT_CHECKS,
    ...INTEGRITY_CHECKS,
    ...OTHER_KEY_CHECKS,
    ...ENDING_CHECKS,
    ...FAILURE_CHECKS,
    ...WRONG_ARGUMENT_CHECKS,
    ...SIGNATURE_CHECKS,
    ...CONTROL_CHECKS,
    ...PURITY_CHECKS,
  ],
};

const IDS = KEY_WRAPPER_REQUIREMENTS.map(({ id }) => id);
const OWNER = 'runKeyWrapperConformance';

/**
 * Holds a key wrapper to the contract of `KeyWrapper`, with some two hundred calls that reach its service. Resolves to a
 * report whatever the key wrapper does. Nothing about a KMS key is changed, unless the target has a `control`.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 *
 * @example
 * ```ts
 * import { localKeyWrapper } from '@sealring/core';
 * import { runKeyWrapperConformance } from '@sealring/conformance';
 *
 * const [a, b] = [randomBytes(32), randomBytes(32)];
 * const report = await runKeyWrapperConformance({
 *   name: 'local',
 *   create: () => ({ keyWrapper: localKeyWrapper({ masterKey: a }) }),
 *   createOtherKey: () => ({ keyWrapper: localKeyWrapper({ masterKey: b }) }),
 *   supports: { remote: false },
 * });
 * console.log(report.passed);
 * ```
 */
export async function runKeyWrapperConformance(
  target: KeyWrapperTarget,
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  const subject = readKeyWrapperTarget(OWNER, target);
  const settings = readOptions(OWNER, options, IDS);
  return runSuite(KEY_WRAPPER_SUITE, subject.name, settings, () => {
    const context = new KeyWrapperTrial(subject, settings.seed);
    return { context, close: () => context.close() };
  });
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in. One after the other, where the
 * target has a `control`.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeKeyWrapper(
  target: KeyWrapperTarget,
  runner: TestRunner,
  options: ConformanceOptions = {},
): void {
  const { name } = readKeyWrapperTarget('describeKeyWrapper', target);
  const { timeoutMs } = readOptions('describeKeyWrapper', options, IDS);
  describeSuite(`${name} key wrapper`, KEY_WRAPPER_REQUIREMENTS, runner, options, timeoutMs, (only) =>
    runKeyWrapperConformance(target, only),
  );
}
