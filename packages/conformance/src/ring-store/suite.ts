import { describeSuite, type TestRunner } from '../describe.ts';
import type { ConformanceReport } from '../report.ts';
import { runSuite, type Suite } from '../run.ts';
import { type RingStoreOptions, readRingStoreOptions } from './options.ts';
import { CHECKED_RING_STORE_REQUIREMENTS, RING_STORE_REQUIREMENTS } from './requirements.ts';
import { type RingStoreTarget, readRingStoreTarget } from './target.ts';
import { RingStoreTrial } from './trial.ts';

/** The suite of ring stores. */
const RING_STORE_SUITE: Suite<RingStoreTrial> = {
  name: 'ring-store',
  requirements: RING_STORE_REQUIREMENTS,
  checks: CHECKED_RING_STORE_REQUIREMENTS,
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
  return runSuite(RING_STORE_SUITE, subject.name, settings, () => {
    const context = new RingStoreTrial(subject, settings);
    return { context, close: () => context.close() };
  });
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
    runRingStoreConformance(target, { ...options, ...only }),
  );
}
