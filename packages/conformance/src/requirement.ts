/** The result of one requirement. A failed MUST has the status `fail`, a failed SHOULD `warn`. */
export interface ConformanceResult {
  /** The id of the requirement, such as `CODEC-FORGE`. */
  readonly id: string;
  /** A SHOULD that fails is a warning. */
  readonly level: 'MUST' | 'SHOULD';
  /** `not-applicable`: the target does not claim the capability. */
  readonly status: 'pass' | 'fail' | 'warn' | 'not-applicable';
  /** The smallest failing input and how to repeat it, the reason for `not-applicable`, or an observation. */
  readonly detail?: string;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** The contract that a suite checks. */
export type SuiteName = 'codec' | 'key-wrapper' | 'ring-store' | 'single-use';

/** The result of a run of a suite. */
export interface ConformanceReport {
  /** The target's name. */
  readonly target: string;
  /** The contract. */
  readonly suite: SuiteName;
  /** Whether every checked MUST holds. */
  readonly passed: boolean;
  /** One result for each requirement, in the order of the checks. A program that did not start ends the run. */
  readonly results: readonly ConformanceResult[];
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** The version of this package. */
  readonly kitVersion: string;
  /** The seed that repeats the run. */
  readonly seed: number;
}

/** A requirement of a contract. A failed `MUST` fails the run, a failed `SHOULD` warns. */
export interface Requirement {
  /** Stable, such as `CODEC-ROUNDTRIP-BYTES`. */
  readonly id: string;
  readonly level: 'MUST' | 'SHOULD';
  /** One sentence in plain words. */
  readonly text: string;
  /** The document, and the clause in it, that states the requirement. */
  readonly source: string;
}

type Row = Omit<Requirement, 'id'>;

/** The requirements of a suite by id, in the order of the checks. */
export type RequirementTable = Readonly<Record<string, Row>>;

/**
 * Checks a requirement. Resolves if it holds, optionally with a remark.
 *
 * @throws {Finding} if it does not hold, {@link NotApplicable} if the target does not claim it.
 */
export type Check<Tried> = (trial: Tried) => void | string | Promise<void | string>;

/** Checks by the id of the requirement. */
export type Checks<Tried> = Readonly<Record<string, Check<Tried>>>;

export interface CheckedRequirement<Tried> extends Requirement {
  readonly run: Check<Tried>;
}

/** Creates rows of a table whose source is the contract, unless they name another one. */
export function requiredBy(
  contract: string,
): Readonly<Record<'must' | 'should', (text: string, source?: string) => Row>> {
  const rowOf =
    (level: Requirement['level']) =>
    (text: string, source = contract): Row => ({ level, text, source });
  return { must: rowOf('MUST'), should: rowOf('SHOULD') };
}

/** @throws {Error} unless every requirement has a check, and every check a requirement. */
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

/** A requirement does not hold. The message shows the smallest failing input, and never the bytes of a key. */
export class Finding extends Error {
  override readonly name: string = 'Finding';
}

/** The program of a target never gave a valid answer, so nothing else can be checked. */
export class DidNotStart extends Finding {
  constructor(why: string) {
    super(`your program did not start: ${why}`);
  }
}

/** The target does not claim the capability that a requirement checks. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** @throws {Finding} unless `holds`. */
export function expectThat(holds: boolean, finding: string): asserts holds {
  if (!holds) throw new Finding(finding);
}
