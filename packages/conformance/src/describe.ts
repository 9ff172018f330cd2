import type { ConformanceOptions } from './options.ts';
import type { ConformanceReport } from './report.ts';
import type { Requirement } from './requirement.ts';

/** The functions of a test runner: vitest, jest, mocha and node:test have them. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  /** The third argument is the longest time of the test in milliseconds, for runners that take one there. */
  readonly test: (name: string, body: () => Promise<void>, timeoutMs?: number) => unknown;
}

/** What a test may take longer than its requirement: making and closing instances. */
const SLACK_MS = 10_000;

/** Mocha's context takes the longest time of a test; other runners were given it. */
function allow(context: unknown, milliseconds: number): void {
  const timeout: unknown =
    typeof context === 'object' && context !== null ? Reflect.get(context, 'timeout') : undefined;
  if (typeof timeout === 'function') Reflect.apply(timeout, context, [milliseconds]);
}

/** One test for each requirement of a suite. What a target does not claim passes; a SHOULD that fails is printed. */
export function describeSuite(
  title: string,
  requirements: readonly Requirement[],
  runner: TestRunner,
  options: ConformanceOptions,
  timeoutMs: number,
  run: (options: ConformanceOptions) => Promise<ConformanceReport>,
): void {
  const { describe, test } = runner;
  describe(title, () => {
    for (const { id, text } of requirements) {
      const body = async function (this: unknown): Promise<void> {
        allow(this, timeoutMs + SLACK_MS);
        const { results } = await run({ ...options, only: [id] });
        const failed = results.find(({ status }) => status === 'fail');
        if (failed !== undefined) throw new Error(`${id}: ${failed.detail ?? ''}`);
        const warned = results.find(({ status }) => status === 'warn');
        if (warned !== undefined) process.emitWarning(`${id}: ${warned.detail ?? ''}`, 'ConformanceWarning');
      };
      test(`${id}: ${text}`, body, timeoutMs + SLACK_MS);
    }
  });
}
