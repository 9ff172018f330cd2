import type { ConformanceOptions } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf } from '../run.ts';
import type { TestRunner } from '../runner.ts';
import { ABORT_CHECKS } from './aborts.ts';
import { BUFFER_CHECKS } from './buffers.ts';
import { CONTEXT_CHECKS } from './context.ts';
import { CONTROL_CHECKS } from './control.ts';
import { CLOSING_CHECKS, ENDING_CHECKS, PURITY_CHECKS } from './endings.ts';
import { FAILURE_CHECKS } from './failures.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { OTHER_KEY_CHECKS } from './other-keys.ts';
import { RECORD_CHECKS } from './records.ts';
import { KEY_WRAPPER_TABLE } from './requirements.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { SIGNATURE_CHECKS } from './signatures.ts';
import { checkKeyWrapperTarget, type KeyWrapperTarget } from './target.ts';
import { type KeyWrapperChecks, KeyWrapperTrial } from './trial.ts';
import { WRONG_ARGUMENT_CHECKS } from './wrong-arguments.ts';

/** Requirements that cannot be checked through a pipe, with the reason. */
export const UNSEEN_THROUGH_PIPE: Readonly<Record<string, string>> = {
  'WRAP-PROMISES': 'the kit’s side of the pipe creates the promises',
  'WRAP-VIEW': 'the program creates the buffers',
  'WRAP-OWN-BYTES': 'the kit receives only a copy of the bytes',
  'WRAP-CALLERS-BYTES': 'the program creates the buffers',
  'WRAP-CALLERS-BYTES-AT-ONCE': 'the program creates the buffers',
  'WRAP-SIGNAL-AFTER': 'an abort is forwarded only while its call is in progress',
  'WRAP-CALLERS-RECORD': 'the kit receives only a copy of the record',
  'WRAP-ERROR-INSTANCE': 'the kit’s side of the pipe creates the errors',
  'WRAP-ERROR-CAUSE': 'the kit receives only the kind and the text of an error',
  'WRAP-OUTPUT-SECRET': 'the output of the program is not read',
  'WRAP-INSPECT-SECRET': 'the key wrapper is in another process',
  'WRAP-QUIET': 'the output of the program is not read',
  'WRAP-NO-GLOBALS': 'the key wrapper is in another process',
  'WRAP-ARGUMENTS': 'the protocol can carry only arguments of the right types',
  'WRAP-ARGUMENT-CONTEXT': 'the protocol can carry only arguments of the right types',
  'WRAP-ARGUMENT-BYTES': 'the protocol can carry only arguments of the right types',
  'WRAP-REJECTS': 'the kit’s side of the pipe creates the promises',
  'WRAP-NO-TIMERS': 'the timers are in another process',
  'WRAP-SIGNAL-LEFT': 'the listeners are in another process',
};

const KEY_WRAPPER_CHECKS: KeyWrapperChecks = {
  ...ROUND_TRIP_CHECKS,
  ...BUFFER_CHECKS,
  ...RECORD_CHECKS,
  ...CONTEXT_CHECKS,
  ...INTEGRITY_CHECKS,
  ...OTHER_KEY_CHECKS,
  ...ENDING_CHECKS,
  ...ABORT_CHECKS,
  ...FAILURE_CHECKS,
  ...WRONG_ARGUMENT_CHECKS,
  ...SIGNATURE_CHECKS,
  ...CONTROL_CHECKS,
  ...CLOSING_CHECKS,
  ...PURITY_CHECKS,
};

export const KEY_WRAPPER_SUITE: Suite<KeyWrapperTarget, ConformanceOptions> = suiteOf({
  name: 'key-wrapper',
  title: 'KeyWrapper',
  noun: 'key wrapper',
  requirements: KEY_WRAPPER_TABLE,
  checks: KEY_WRAPPER_CHECKS,
  unseenThroughPipe: UNSEEN_THROUGH_PIPE,
  timeoutMs: 60_000,
  check: checkKeyWrapperTarget,
  open: (target, { seed }) => new KeyWrapperTrial(target, seed),
});

/** The requirements for key wrappers, in the order of the checks. */
export const KEY_WRAPPER_REQUIREMENTS: readonly Requirement[] = KEY_WRAPPER_SUITE.requirements;

/**
 * Checks a key wrapper against the contract of `KeyWrapper`, with about 2 060 calls that reach its service (2 450 with
 * a complete `control`). Resolves to a report whatever the key wrapper does. Changes a KMS key only through `control`.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
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
 * Defines one test for each requirement, with the functions of any test runner. Tests run in sequence if the
 * target has a `control`.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 */
export function describeKeyWrapper(
  target: KeyWrapperTarget,
  runner: TestRunner,
  options: ConformanceOptions = {},
): void {
  KEY_WRAPPER_SUITE.describe(target, runner, options);
}
