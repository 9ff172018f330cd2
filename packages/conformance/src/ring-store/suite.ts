import { describeSuite, type TestRunner } from '../describe.ts';
import type { ConformanceReport } from '../report.ts';
import { type Requirement, textsOf } from '../requirement.ts';
import { runSuite, type Suite } from '../run.ts';
import { ABORT_REQUIREMENTS } from './abort.ts';
import { ANSWER_REQUIREMENTS } from './answers.ts';
import { ARGUMENT_REQUIREMENTS } from './call-arguments.ts';
import { CONTEST_REQUIREMENTS } from './contests.ts';
import { DOCUMENT_REQUIREMENTS } from './documents.ts';
import { EXPECTATION_REQUIREMENTS } from './expectations.ts';
import { NAME_REQUIREMENTS } from './names.ts';
import { type RingStoreOptions, readRingStoreOptions } from './options.ts';
import { OUTAGE_REQUIREMENTS } from './outages.ts';
import { READING_REQUIREMENTS } from './reading.ts';
import type { RingStoreRequirement } from './requirement.ts';
import { REVISION_REQUIREMENTS } from './revisions.ts';
import { SERVICE_DATE_REQUIREMENTS } from './service-date.ts';
import { SIZE_REQUIREMENTS } from './sizes.ts';
import { type RingStoreTarget, readRingStoreTarget } from './target.ts';
import { RingStoreTrial } from './trial.ts';
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

/** What every ring store is held to, in the order in which it is tried. */
export const RING_STORE_REQUIREMENTS: readonly Requirement[] = textsOf(RING_STORE_CHECKS);

/** The suite of ring stores. */
const RING_STORE_SUITE: Suite<RingStoreTrial> = {
  name: 'ring-store',
  requirements: RING_STORE_CHECKS,
};

const IDS = RING_STORE_REQUIREMENTS.map(({ id }) => id);
const OWNER = 'runRingStoreConformance';

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
export async function runRingStoreConformance(
  target: RingStoreTarget,
  options?: RingStoreOptions,
): Promise<ConformanceReport> {
  const subject = readRingStoreTarget(OWNER, target);
  const settings = readRingStoreOptions(OWNER, options, IDS);
  const open = () => {
    const context = new RingStoreTrial(subject, settings);
    const { pending } = context;
    const [mend, close, cleanUp] = [() => context.mend(), () => context.close(), () => context.cleanUp()];
    return { context, pending, mend, close, cleanUp };
  };
  return runSuite(RING_STORE_SUITE, subject.name, settings, open, target);
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeRingStore(target: RingStoreTarget, runner: TestRunner, options: RingStoreOptions = {}): void {
  const { name } = readRingStoreTarget('describeRingStore', target);
  const { timeoutMs } = readRingStoreOptions('describeRingStore', options, IDS);
  describeSuite(`${name} ring store`, RING_STORE_REQUIREMENTS, runner, options, timeoutMs, (only) =>
    runRingStoreConformance(target, only),
  );
}
