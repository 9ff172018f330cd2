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

type Row = Omit<Requirement, 'id'>;

/** The requirements of a suite by id, in the order in which they are tried. */
export type RequirementTable = Readonly<Record<string, Row>>;

/**
 * Tries a requirement. Resolves when it holds, with a remark if there is one.
 *
 * @throws {Finding} when it does not hold, {@link NotApplicable} when it is not claimed.
 */
export type Check<Tried> = (trial: Tried) => void | string | Promise<void | string>;

/** Checks by the id of the requirement. */
export type Checks<Tried> = Readonly<Record<string, Check<Tried>>>;

export interface CheckedRequirement<Tried> extends Requirement {
  readonly run: Check<Tried>;
}

/** Makes the rows of a table: their source is the contract, unless they name another one. */
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
  if (stranger !== undefined) throw new Error(`${stranger} is a check of no requirement`);
  return Object.entries(table).map(([id, row]) => {
    const run = checks[id];
    if (run === undefined) throw new Error(`${id} has no check`);
    return { id, ...row, run };
  });
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
