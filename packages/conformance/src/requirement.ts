/** The result of one requirement. A failed MUST has the status `fail`; a failed SHOULD has the status `warn`. */
export interface ConformanceResult {
  /** The id of the requirement, such as `CODEC-FORGE`. */
  readonly id: string;
  /** A SHOULD that fails is a warning. */
  readonly level: 'MUST' | 'SHOULD';
  /** `not-applicable`: the target does not claim the capability. */
  readonly status: 'pass' | 'fail' | 'warn' | 'not-applicable';
  /** The smallest failing input and how to repeat it, the reason for `not-applicable`, or an observation. */
  readonly detail?: string;
  /** How long the check took, in milliseconds. */
  readonly durationMs: number;
}

/** The name of a suite: the contract that it checks. */
export type SuiteName = 'codec' | 'key-wrapper' | 'ring-store' | 'single-use';

/** The result of a run of a suite. */
export interface ConformanceReport {
  /** The target's name. */
  readonly target: string;
  /** The contract that was checked. */
  readonly suite: SuiteName;
  /** Whether every checked MUST requirement passed or did not apply. */
  readonly passed: boolean;
  /**
   * One result for each checked requirement, in the order of the checks. If the program of a target does not start, the
   * run ends there.
   */
  readonly results: readonly ConformanceResult[];
  /** When the run started: ISO 8601, UTC. */
  readonly startedAt: string;
  /** The version of this package. */
  readonly kitVersion: string;
  /** The seed that repeats the run. */
  readonly seed: number;
}

/** A requirement of a contract. A failed `MUST` fails the run; a failed `SHOULD` only causes a warning. */
export interface Requirement {
  /** A stable name, such as `CODEC-ROUNDTRIP-BYTES`. */
  readonly id: string;
  readonly level: 'MUST' | 'SHOULD';
  /** One sentence in plain words. */
  readonly text: string;
  /** The document and clause that state the requirement. */
  readonly source: string;
}

type Row = Omit<Requirement, 'id'>;

/** The requirements of a suite by id, in the order of the checks. */
export type RequirementTable = Readonly<Record<string, Row>>;

/**
 * Checks a requirement. Resolves if it holds, optionally with a remark.
 *
 * @throws {Finding} if it does not hold, and {@link NotApplicable} if the target does not claim the capability.
 */
export type Check<Tried> = (trial: Tried) => void | string | Promise<void | string>;

/** Checks by the id of the requirement. */
export type Checks<Tried> = Readonly<Record<string, Check<Tried>>>;

export interface CheckedRequirement<Tried> extends Requirement {
  readonly run: Check<Tried>;
}

/** Creates rows of a requirement table. The source of a row is the contract, unless the row names another source. */
export function requiredBy(
  contract: string,
): Readonly<Record<'must' | 'should', (text: string, source?: string) => Row>> {
  const rowOf =
    (level: Requirement['level']) =>
    (text: string, source = contract): Row => ({ level, text, source });
  return { must: rowOf('MUST'), should: rowOf('SHOULD') };
}

/**
 * Joins the requirements with their checks.
 * @throws {Error} unless every requirement has a check, and every check has a requirement.
 */
export function withChecks<Tried>(
  table: RequirementTable,
  checks: Checks<Tried>,
): readonly CheckedRequirement<Tried>[] {
  const stranger = Object.keys(checks).find((id) => table[id] === undefined);
  if (stranger !== undefined) throw new Error(`${stranger} is not a requirement of this suite`);
  return Object.entries(table).map(([id, row]) => {
    const run = checks[id];
    if (run === undefined) throw new Error(`${id} has no check`);
    return { id, ...row, run };
  });
}

/**
 * Thrown if a requirement does not hold. The message shows the smallest failing input, but never the bytes of a key.
 */
export class Finding extends Error {
  override readonly name: string = 'Finding';
}

/** Thrown if the program of a target never gave a valid answer, so that nothing else can be checked. */
export class DidNotStart extends Finding {
  constructor(why: string) {
    super(`your program did not start: ${why}`);
  }
}

/** Thrown if the target does not claim the capability that a requirement checks. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** @throws {Finding} unless `holds`. */
export function expectThat(holds: boolean, finding: string): asserts holds {
  if (!holds) throw new Finding(finding);
}
