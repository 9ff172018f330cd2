import { describeSuite, type TestRunner } from '../describe.ts';
import { type ConformanceOptions, readOptions } from '../options.ts';
import type { ConformanceReport } from '../report.ts';
import { type Requirement, textsOf } from '../requirement.ts';
import { runSuite, type Suite } from '../run.ts';
import { SINGLE_USE_CHECKS } from './checks.ts';
import { checkSingleUseTarget, type SingleUseTarget } from './target.ts';
import { SingleUseTrial } from './trial.ts';

/** What every single-use store is held to, in the order in which it is tried. */
export const SINGLE_USE_REQUIREMENTS: readonly Requirement[] = textsOf(SINGLE_USE_CHECKS);

const SINGLE_USE_SUITE: Suite<SingleUseTrial> = { name: 'single-use', requirements: SINGLE_USE_CHECKS };

const IDS = SINGLE_USE_REQUIREMENTS.map(({ id }) => id);
const OWNER = 'runSingleUseConformance';

/**
 * Holds a single-use store to the contract of `SingleUseStore` of `@sealring/mcp`. Resolves to a report whatever the
 * store does. Needs a real backend: it claims some hundred ids of its own, which end by themselves.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 *
 * @example
 * ```ts
 * import { runSingleUseConformance } from '@sealring/conformance';
 *
 * const report = await runSingleUseConformance({ name: 'my store', create: () => ({ store: mySingleUse() }) });
 * console.log(report.passed);
 * ```
 */
export async function runSingleUseConformance(
  target: SingleUseTarget,
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  checkSingleUseTarget(OWNER, target);
  const open = () => {
    const context = new SingleUseTrial(target);
    return { context, pending: context.pending, mend: () => context.mend(), close: () => context.close() };
  };
  return runSuite(SINGLE_USE_SUITE, target.name, readOptions(OWNER, options, IDS), open, target);
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeSingleUse(target: SingleUseTarget, runner: TestRunner, options: ConformanceOptions = {}): void {
  checkSingleUseTarget('describeSingleUse', target);
  const { timeoutMs } = readOptions('describeSingleUse', options, IDS);
  describeSuite(`${target.name} single-use store`, SINGLE_USE_REQUIREMENTS, runner, options, timeoutMs, (only) =>
    runSingleUseConformance(target, only),
  );
}
