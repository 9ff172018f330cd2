import { describeSuite, type TestRunner } from '../describe.ts';
import { type ConformanceOptions, readOptions } from '../options.ts';
import type { ConformanceReport } from '../report.ts';
import { type Requirement, textsOf } from '../requirement.ts';
import { runSuite, type Suite } from '../run.ts';
import { BUFFER_REQUIREMENTS } from './buffers.ts';
import { CLOSING_REQUIREMENTS } from './closing.ts';
import { CONTEXT_REQUIREMENTS } from './context.ts';
import { CONTROL_REQUIREMENTS } from './control.ts';
import { ENDING_REQUIREMENTS } from './endings.ts';
import { FAILURE_REQUIREMENTS } from './failures.ts';
import { INTEGRITY_REQUIREMENTS } from './integrity.ts';
import { OTHER_KEY_REQUIREMENTS } from './other-keys.ts';
import { PURITY_REQUIREMENTS } from './purity.ts';
import { RECORD_REQUIREMENTS } from './records.ts';
import type { KeyWrapperRequirement } from './requirement.ts';
import { ROUND_TRIP_REQUIREMENTS } from './round-trip.ts';
import { SIGNATURE_REQUIREMENTS } from './signatures.ts';
import { type KeyWrapperTarget, readKeyWrapperTarget } from './target.ts';
import { KeyWrapperTrial } from './trial.ts';
import { WRONG_ARGUMENT_REQUIREMENTS } from './wrong-arguments.ts';

/** Every requirement with its check and what that covers, in the order in which they are tried. */
const KEY_WRAPPER_CHECKS: readonly KeyWrapperRequirement[] = [
  ...ROUND_TRIP_REQUIREMENTS,
  ...BUFFER_REQUIREMENTS,
  ...RECORD_REQUIREMENTS,
  ...CONTEXT_REQUIREMENTS,
  ...INTEGRITY_REQUIREMENTS,
  ...OTHER_KEY_REQUIREMENTS,
  ...ENDING_REQUIREMENTS,
  ...FAILURE_REQUIREMENTS,
  ...WRONG_ARGUMENT_REQUIREMENTS,
  ...SIGNATURE_REQUIREMENTS,
  ...CONTROL_REQUIREMENTS,
  ...CLOSING_REQUIREMENTS,
  ...PURITY_REQUIREMENTS,
];

/** What every key wrapper is held to, in the order in which it is tried. */
export const KEY_WRAPPER_REQUIREMENTS: readonly Requirement[] = textsOf(KEY_WRAPPER_CHECKS);

/** The suite of key wrappers. */
const KEY_WRAPPER_SUITE: Suite<KeyWrapperTrial> = {
  name: 'key-wrapper',
  requirements: KEY_WRAPPER_CHECKS,
  closing: 'WRAP-INSTANCE-CLOSES',
};

const IDS = KEY_WRAPPER_REQUIREMENTS.map(({ id }) => id);
const OWNER = 'runKeyWrapperConformance';

/**
 * Holds a key wrapper to the contract of `KeyWrapper`, with some nine hundred calls that reach its service. Resolves to a
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
  const open = () => {
    const context = new KeyWrapperTrial(subject, settings.seed);
    return { context, pending: context.pending, close: () => context.close() };
  };
  return runSuite(KEY_WRAPPER_SUITE, subject.name, settings, open, target);
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
