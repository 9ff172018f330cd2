import { CODEC_REQUIREMENTS, runCodecConformance } from '../codec/suite.ts';
import type { CodecTarget } from '../codec/target.ts';
import { KEY_WRAPPER_REQUIREMENTS, runKeyWrapperConformance } from '../key-wrapper/suite.ts';
import type { KeyWrapperTarget } from '../key-wrapper/target.ts';
import type { ConformanceReport, SuiteName } from '../report.ts';
import type { Requirement } from '../requirement.ts';
import { RING_STORE_REQUIREMENTS, runRingStoreConformance } from '../ring-store/suite.ts';
import type { RingStoreTarget } from '../ring-store/target.ts';
import { runSingleUseConformance, SINGLE_USE_REQUIREMENTS } from '../single-use/suite.ts';
import type { SingleUseTarget } from '../single-use/target.ts';
import type { LoadedTarget } from './load-target.ts';
import type { TrialOptions } from './messages.ts';

/** What the command line knows of a suite before it runs. */
interface SuiteFacts {
  readonly requirements: readonly Requirement[];
  /** Default of the longest time for one requirement, milliseconds. */
  readonly timeoutMs: number;
}

export const SUITES: Readonly<Record<SuiteName, SuiteFacts>> = {
  codec: { requirements: CODEC_REQUIREMENTS, timeoutMs: 60_000 },
  'key-wrapper': { requirements: KEY_WRAPPER_REQUIREMENTS, timeoutMs: 60_000 },
  // A store far away takes its time for 200 contests.
  'ring-store': { requirements: RING_STORE_REQUIREMENTS, timeoutMs: 600_000 },
  'single-use': { requirements: SINGLE_USE_REQUIREMENTS, timeoutMs: 60_000 },
};

/**
 * Tries one requirement: the one place where the command line calls a suite.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong: never because of what a target does.
 */
export function tryRequirement(
  suite: SuiteName,
  { target, module }: LoadedTarget,
  { rounds, writers, ...common }: TrialOptions,
  id: string,
): Promise<ConformanceReport> {
  const options = { ...common, only: [id] };
  switch (suite) {
    case 'codec':
      return runCodecConformance(target as CodecTarget, { ...options, ...(module !== undefined && { module }) });
    case 'key-wrapper':
      return runKeyWrapperConformance(target as KeyWrapperTarget, options);
    case 'ring-store':
      return runRingStoreConformance(target as RingStoreTarget, {
        ...options,
        ...(rounds !== undefined && { rounds }),
        ...(writers !== undefined && { writers }),
      });
    case 'single-use':
      return runSingleUseConformance(target as SingleUseTarget, options);
  }
}
