import type { ConformanceOptions } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf, type TestRunner } from '../run.ts';
import { BUFFER_REQUIREMENTS } from './buffers.ts';
import { CONTEXT_REQUIREMENTS } from './context.ts';
import { CONTROL_REQUIREMENTS } from './control.ts';
import { CLOSING_REQUIREMENTS, ENDING_REQUIREMENTS, PURITY_REQUIREMENTS } from './endings.ts';
import { FAILURE_REQUIREMENTS } from './failures.ts';
import { INTEGRITY_REQUIREMENTS } from './integrity.ts';
import { OTHER_KEY_REQUIREMENTS } from './other-keys.ts';
import { RECORD_REQUIREMENTS } from './records.ts';
import { ROUND_TRIP_REQUIREMENTS } from './round-trip.ts';
import { SIGNATURE_REQUIREMENTS } from './signatures.ts';
import { checkKeyWrapperTarget, type KeyWrapperTarget } from './target.ts';
import { type KeyWrapperRequirement, KeyWrapperTrial } from './trial.ts';
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

/** The suite. */
export const KEY_WRAPPER_SUITE: Suite<KeyWrapperTarget, ConformanceOptions> = suiteOf({
  name: 'key-wrapper',
  title: 'KeyWrapper',
  noun: 'key wrapper',
  checks: KEY_WRAPPER_CHECKS,
  timeoutMs: 60_000,
  check: checkKeyWrapperTarget,
  open: (target, { seed }) => new KeyWrapperTrial(target, seed),
});

/** What every key wrapper is held to, in the order in which it is tried. */
export const KEY_WRAPPER_REQUIREMENTS: readonly Requirement[] = KEY_WRAPPER_SUITE.requirements;

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
export function runKeyWrapperConformance(
  target: KeyWrapperTarget,
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  return KEY_WRAPPER_SUITE.run(target, options);
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
  KEY_WRAPPER_SUITE.describe(target, runner, options);
}
