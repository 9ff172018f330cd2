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
   * Resolves when the requirement holds, to what was seen if that is worth telling.
   * @throws {Finding} when it does not hold, {@link NotApplicable} when it is not claimed.
   */
  run(context: Context): void | string | Promise<void | string>;
}

/** Requirements as they are published: without their checks. */
export function textsOf(requirements: readonly Requirement[]): readonly Requirement[] {
  return requirements.map(({ id, level, text, source }) => ({ id, level, text, source }));
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
