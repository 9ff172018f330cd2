import * as v from 'valibot';
import { aWholeNumber } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf, type TestRunner } from '../run.ts';
import { ABORT_REQUIREMENTS } from './abort.ts';
import { ANSWER_REQUIREMENTS, ARGUMENT_REQUIREMENTS, SERVICE_DATE_REQUIREMENTS } from './answers.ts';
import { CONTEST_REQUIREMENTS } from './contests.ts';
import { DOCUMENT_REQUIREMENTS, NAME_REQUIREMENTS } from './documents.ts';
import { OUTAGE_REQUIREMENTS } from './outages.ts';
import { READING_REQUIREMENTS } from './reading.ts';
import { EXPECTATION_REQUIREMENTS, REVISION_REQUIREMENTS } from './revisions.ts';
import { SIZE_REQUIREMENTS } from './sizes.ts';
import { checkRingStoreTarget, type RingStoreOptions, type RingStoreTarget } from './target.ts';
import { type RingStoreRequirement, RingStoreTrial } from './trial.ts';
import { WATCH_REQUIREMENTS } from './watch.ts';

/** Every requirement with its check and what that covers, in the order in which they are tried. */
const RING_STORE_CHECKS: readonly RingStoreRequirement[] = [
  ...ANSWER_REQUIREMENTS,
  ...DOCUMENT_REQUIREMENTS,
  ...NAME_REQUIREMENTS,
  ...SIZE_REQUIREMENTS,
  ...REVISION_REQUIREMENTS,
  ...EXPECTATION_REQUIREMENTS,
  ...CONTEST_REQUIREMENTS,
  ...READING_REQUIREMENTS,
  ...ABORT_REQUIREMENTS,
  ...OUTAGE_REQUIREMENTS,
  ...SERVICE_DATE_REQUIREMENTS,
  ...WATCH_REQUIREMENTS,
  ...ARGUMENT_REQUIREMENTS,
];

/** The suite. */
export const RING_STORE_SUITE: Suite<RingStoreTarget, RingStoreOptions> = suiteOf({
  name: 'ring-store',
  title: 'RingStore',
  noun: 'ring store',
  checks: RING_STORE_CHECKS,
  // A store far away takes its time for 200 contests.
  timeoutMs: 600_000,
  options: { rounds: v.optional(aWholeNumber(1, 100_000)), writers: v.optional(aWholeNumber(2, 1_000)) },
  check: checkRingStoreTarget,
  open: (target, settings, options) => new RingStoreTrial(target, settings, options),
});

/** What every ring store is held to, in the order in which it is tried. */
export const RING_STORE_REQUIREMENTS: readonly Requirement[] = RING_STORE_SUITE.requirements;

/**
 * Holds a ring store to the contract of `RingStore`. Resolves to a report whatever the store does. Needs a real backend:
 * it writes some hundred documents of its own, most of them contested, and removes them where the target can.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
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
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeRingStore(target: RingStoreTarget, runner: TestRunner, options: RingStoreOptions = {}): void {
  RING_STORE_SUITE.describe(target, runner, options);
}
