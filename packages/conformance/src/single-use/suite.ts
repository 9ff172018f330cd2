import type { ConformanceOptions } from '../options.ts';
import type { Checks, ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf } from '../run.ts';
import type { TestRunner } from '../runner.ts';
import { ARGUMENT_CHECKS } from './arguments.ts';
import { CLAIM_CHECKS } from './claims.ts';
import { END_CHECKS } from './ends.ts';
import { FAULT_CHECKS } from './faults.ts';
import { SINGLE_USE_TABLE } from './requirements.ts';
import { checkSingleUseTarget, type SingleUseTarget } from './target.ts';
import { SingleUseTrial } from './trial.ts';

const SINGLE_USE_CHECKS: Checks<SingleUseTrial> = {
  ...CLAIM_CHECKS,
  ...END_CHECKS,
  ...ARGUMENT_CHECKS,
  ...FAULT_CHECKS,
};

export const SINGLE_USE_SUITE: Suite<SingleUseTarget, ConformanceOptions> = suiteOf({
  name: 'single-use',
  title: 'SingleUse',
  noun: 'single-use store',
  requirements: SINGLE_USE_TABLE,
  checks: SINGLE_USE_CHECKS,
  timeoutMs: 60_000,
  check: (owner, target) => checkSingleUseTarget(owner, target),
  open: (target, { seed }) => new SingleUseTrial(target, seed),
});

/** The requirements for single-use stores, in the order of the checks. */
export const SINGLE_USE_REQUIREMENTS: readonly Requirement[] = SINGLE_USE_SUITE.requirements;

/**
 * Checks a single-use store against the contract of `SingleUseStore` in `@sealring/mcp`. Always resolves to a report,
 * whatever the store does. Requires a real backend, in which it claims about ten thousand ids that expire.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 *
 * @example
 * ```ts
 * import { runSingleUseConformance } from '@sealring/conformance';
 *
 * const report = await runSingleUseConformance({ name: 'my store', create: () => ({ store: mySingleUse() }) });
 * console.log(report.passed);
 * ```
 */
export function runSingleUseConformance(
  target: SingleUseTarget,
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  return SINGLE_USE_SUITE.run(target, options);
}

/**
 * Defines one test for each requirement, with the functions of any test runner.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 */
export function describeSingleUse(target: SingleUseTarget, runner: TestRunner, options: ConformanceOptions = {}): void {
  SINGLE_USE_SUITE.describe(target, runner, options);
}
