/** What became of one requirement. `fail` is for a MUST, `warn` for a SHOULD. */
export interface ConformanceResult {
  /** That of the requirement, as in `CODEC-FORGE`. */
  readonly id: string;
  /** A SHOULD that fails is a warning. */
  readonly level: 'MUST' | 'SHOULD';
  /** `not-applicable`: the target denies what the requirement is about. */
  readonly status: 'pass' | 'fail' | 'warn' | 'not-applicable';
  /** The smallest input found and how to repeat it, why it does not apply, or what was seen. */
  readonly detail?: string;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** What was tried: which of the four contracts. */
export type SuiteName = 'codec' | 'key-wrapper' | 'ring-store' | 'single-use';

/** What a run of a suite came to. */
export interface ConformanceReport {
  /** The target's name. */
  readonly target: string;
  /** Which contract. */
  readonly suite: SuiteName;
  /** Whether every MUST holds. */
  readonly passed: boolean;
  /** One for each requirement, in the order in which they were tried. A program that did not start ends the run. */
  readonly results: readonly ConformanceResult[];
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** The version of this package. */
  readonly kitVersion: string;
  /** Repeats the run. */
  readonly seed: number;
}
