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

/**
 * One test for each requirement of a suite. What does not apply to a target is skipped with the reason, by runners that
 * can skip a test under way (node:test, vitest, mocha); a SHOULD that fails is printed.
 */
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
      // Rest parameters: a runner that sees one declared parameter may wait for a callback.
      const body = async function (this: unknown, ...given: readonly unknown[]): Promise<void> {
        const contexts = [given[0], this];
        call(contexts, 'timeout', timeoutMs + SLACK_MS);
        const { results } = await run({ ...options, only: [id] });
        for (const { status, detail = '' } of results) {
          if (status === 'fail') throw new Error(`${id}: ${detail}`);
          if (status === 'warn') process.emitWarning(`${id}: ${detail}`, 'ConformanceWarning');
          if (status === 'not-applicable') skip(contexts, detail);
        }
      };
      test(`${id}: ${text}`, body, timeoutMs + SLACK_MS);
    }
  });
}

/** Mocha skips without a reason: it is put into the title. */
function skip(contexts: readonly unknown[], reason: string): void {
  const [, mocha] = contexts;
  const runnable: unknown = typeof mocha === 'object' && mocha !== null ? Reflect.get(mocha, 'test') : undefined;
  if (typeof runnable === 'object' && runnable !== null && 'title' in runnable) {
    runnable.title = `${String(runnable.title)} (${reason})`;
  }
  call(contexts, 'skip', reason);
}

/** Calls a method of the first context that has it: node:test and vitest pass theirs, mocha binds its own. */
function call(contexts: readonly unknown[], name: string, argument: unknown): void {
  for (const context of contexts) {
    if (typeof context !== 'object' || context === null) continue;
    const method: unknown = Reflect.get(context, name);
    if (typeof method === 'function') return void Reflect.apply(method, context, [argument]);
  }
}
