import * as v from 'valibot';
import { aWholeNumber } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf } from '../run.ts';
import type { TestRunner } from '../runner.ts';
import { ABORT_CHECKS } from './abort.ts';
import { ANSWER_CHECKS } from './answers.ts';
import { CONTEST_CHECKS } from './contests.ts';
import { DOCUMENT_CHECKS } from './documents.ts';
import { NAME_CHECKS } from './names.ts';
import { OUTAGE_CHECKS } from './outages.ts';
import { PURITY_CHECKS } from './purity.ts';
import { READING_CHECKS } from './reading.ts';
import { RING_STORE_TABLE } from './requirements.ts';
import { REVISION_CHECKS } from './revisions.ts';
import { SIZE_CHECKS } from './sizes.ts';
import { checkRingStoreTarget, type RingStoreOptions, type RingStoreTarget } from './target.ts';
import { RingStoreTrial } from './trial.ts';
import { WATCH_CHECKS } from './watch.ts';

/** Requirements that cannot be checked through a pipe, with the reason. */
export const UNSEEN_THROUGH_PIPE: Readonly<Record<string, string>> = {
  'RING-ASYNCHRONOUS': 'the kit’s side of the pipe creates the promises',
  'RING-NO-TIMERS': 'the timers are in another process',
  'RING-QUIET': 'the output of the program is not read',
  'RING-NO-GLOBALS': 'the store is in another process',
  'RING-CLOSED': 'the protocol cannot call a closed store',
  'RING-CLOSED-UNAVAILABLE': 'the protocol cannot call a closed store',
  'RING-OWN-RESULT': 'the kit receives only a copy of the result',
  'RING-SIGNAL-LEFT': 'the signal stays on the kit’s side of the pipe',
  'RING-ERROR-INSTANCE': 'the kit’s side of the pipe creates the errors',
  'RING-WATCH-ARGUMENT': 'the protocol can carry only arguments of the right types',
  'RING-WRITE-ARGUMENTS': 'the protocol can carry only arguments of the right types',
  'RING-READ-ARGUMENTS': 'the protocol can carry only arguments of the right types',
};

export const RING_STORE_SUITE: Suite<RingStoreTarget, RingStoreOptions> = suiteOf({
  name: 'ring-store',
  title: 'RingStore',
  noun: 'ring store',
  requirements: RING_STORE_TABLE,
  checks: {
    ...ANSWER_CHECKS,
    ...DOCUMENT_CHECKS,
    ...NAME_CHECKS,
    ...SIZE_CHECKS,
    ...REVISION_CHECKS,
    ...CONTEST_CHECKS,
    ...READING_CHECKS,
    ...ABORT_CHECKS,
    ...OUTAGE_CHECKS,
    ...WATCH_CHECKS,
    ...PURITY_CHECKS,
  },
  unseenThroughPipe: UNSEEN_THROUGH_PIPE,
  // A remote store needs time for 200 contests.
  timeoutMs: 600_000,
  options: { rounds: v.optional(aWholeNumber(1, 100_000)), writers: v.optional(aWholeNumber(2, 1_000)) },
  check: checkRingStoreTarget,
  open: (target, settings, options) => new RingStoreTrial(target, settings, options),
});

/** The requirements for ring stores, in the order of the checks. */
export const RING_STORE_REQUIREMENTS: readonly Requirement[] = RING_STORE_SUITE.requirements;

/**
 * Checks a ring store against the contract of `RingStore`. Resolves to a report whatever the store does. Needs a real
 * backend, where it writes several hundred documents; it removes them afterwards if the target has `remove`.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 *
 * @example
 * ```ts
 * import { runRingStoreConformance } from '@sealring/conformance';
 *
 * const report = await runRingStoreConformance({
 *   name: 'my store',
 *   create: (ringName) => ({ store: myStore({ name: ringName }) }),
 * });
 * console.log(report.passed);
 * ```
 */
export function runRingStoreConformance(
  target: RingStoreTarget,
  options?: RingStoreOptions,
): Promise<ConformanceReport> {
  return RING_STORE_SUITE.run(target, options);
}

/**
 * Defines one test for each requirement, with the functions of any test runner.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 */
export function describeRingStore(target: RingStoreTarget, runner: TestRunner, options: RingStoreOptions = {}): void {
  RING_STORE_SUITE.describe(target, runner, options);
}
