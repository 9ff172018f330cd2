import type { ConformanceOptions } from './options.ts';
import type { ConformanceReport } from './report.ts';
import type { Requirement } from './requirement.ts';

/** The functions of a test runner: vitest, jest, mocha and node:test have them. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly test: (name: string, body: () => Promise<void>) => unknown;
}

/** One test for each requirement of a suite. What a target does not claim passes; a SHOULD that fails is printed. */
export function describeSuite(
  title: string,
  requirements: readonly Requirement[],
  { describe, test }: TestRunner,
  options: ConformanceOptions,
  run: (options: ConformanceOptions) => Promise<ConformanceReport>,
): void {
  describe(title, () => {
    for (const { id, text } of requirements) {
      test(`${id}: ${text}`, async () => {
        const { results } = await run({ ...options, only: [id] });
        const failed = results.find(({ status }) => status === 'fail');
        if (failed !== undefined) throw new Error(`${id}: ${failed.detail ?? ''}`);
        const warned = results.find(({ status }) => status === 'warn');
        if (warned !== undefined) process.emitWarning(`${id}: ${warned.detail ?? ''}`, 'ConformanceWarning');
      });
    }
  });
}
