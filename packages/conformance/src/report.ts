/** What became of one requirement. `fail` is for a MUST, `warn` for a SHOULD. */
export interface ConformanceResult {
  readonly id: string;
  readonly level: 'MUST' | 'SHOULD';
  readonly status: 'pass' | 'fail' | 'warn' | 'not-applicable';
  /** The smallest input found and how to repeat it, why it does not apply, or what was seen. */
  readonly detail?: string;
  readonly durationMs: number;
}

/** What was tried: which of the three contracts. */
export type SuiteName = 'codec' | 'key-wrapper' | 'ring-store';

/** What a run of a suite came to. */
export interface ConformanceReport {
  /** The target's name. */
  readonly target: string;
  readonly suite: SuiteName;
  /** Whether every MUST holds. */
  readonly passed: boolean;
  readonly results: readonly ConformanceResult[];
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly kitVersion: string;
  /** Repeats the run. */
  readonly seed: number;
}
