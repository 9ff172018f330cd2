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

/** What is tried: a `MUST` that fails fails the run, a `SHOULD` warns. */
export interface Requirement {
  /** Stable: `CODEC-ROUNDTRIP-BYTES`. */
  readonly id: string;
  readonly level: 'MUST' | 'SHOULD';
  /** One sentence in plain words. */
  readonly text: string;
  /** The document, and the clause in it, that it comes from. */
  readonly source: string;
}

/** A requirement together with its check: neither exists without the other. */
export interface CheckedRequirement<Context> extends Requirement {
  /**
   * Tries it on a target of its suite.
   *
   * Resolves when the requirement holds, with a remark if there is one.
   * @throws {Finding} when it does not hold, {@link NotApplicable} when it is not claimed.
   */
  run(context: Context): void | string | Promise<void | string>;
}

export function must<Context>(
  id: string,
  text: string,
  source: string,
  run: CheckedRequirement<Context>['run'],
): CheckedRequirement<Context> {
  return { id, level: 'MUST', text, source, run };
}

export function should<Context>(
  id: string,
  text: string,
  source: string,
  run: CheckedRequirement<Context>['run'],
): CheckedRequirement<Context> {
  return { id, level: 'SHOULD', text, source, run };
}

/** A requirement does not hold. The message shows the smallest input found; never the contents of a key. */
export class Finding extends Error {
  override readonly name: string = 'Finding';
}

/** The program of a target never gave a valid answer: there is nothing to try, and nothing more to find. */
export class DidNotStart extends Finding {
  constructor(why: string) {
    super(`your program did not start: ${why}`);
  }
}

/** A target declares that it does not claim this. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** @throws {Finding} unless `holds`. */
export function expectThat(holds: boolean, finding: string): asserts holds {
  if (!holds) throw new Finding(finding);
}
