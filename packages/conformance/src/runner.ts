import type { ConformanceReport, Requirement } from './requirement.ts';

/** Functions of a test runner, such as vitest, jest, mocha or node:test. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  /** The third argument is the timeout of the test in milliseconds, for runners that accept one there. */
  readonly test: (name: string, body: () => Promise<void>, timeoutMs?: number) => unknown;
}

/**
 * Defines one test. Runners that can skip a running test (node:test, vitest, mocha) skip requirements that do not
 * apply, and show the reason. A SHOULD that fails is emitted as a warning.
 */
export function describeOne(
  { id, text }: Requirement,
  runner: TestRunner,
  timeoutMs: number,
  run: () => Promise<ConformanceReport>,
): void {
  // If the function declared a parameter, some runners would wait for a callback, so it has only a rest parameter.
  const body = async function (this: unknown, ...given: readonly unknown[]): Promise<void> {
    const contexts = [given[0], this];
    call(contexts, 'timeout', timeoutMs);
    const { results } = await run();
    for (const { status, detail = '' } of results) {
      if (status === 'fail') throw new Error(`${id}: ${detail}`);
      if (status === 'warn') process.emitWarning(`${id}: ${detail}`, 'ConformanceWarning');
      if (status === 'not-applicable') skip(contexts, detail);
    }
  };
  runner.test(`${id}: ${text}`, body, timeoutMs);
}

/** Skips the running test. Mocha does not show a reason for a skip, so the title contains it. */
function skip(contexts: readonly unknown[], reason: string): void {
  const [, mocha] = contexts;
  const runnable: unknown = typeof mocha === 'object' && mocha !== null ? Reflect.get(mocha, 'test') : undefined;
  if (typeof runnable === 'object' && runnable !== null && 'title' in runnable) {
    runnable.title = `${String(runnable.title)} (${reason})`;
  }
  call(contexts, 'skip', reason);
}

/**
 * Calls a method on the first context that has it. node:test and vitest pass their context as an argument; mocha binds
 * its context as `this`.
 */
function call(contexts: readonly unknown[], name: string, argument: unknown): void {
  for (const context of contexts) {
    if (typeof context !== 'object' || context === null) continue;
    const method: unknown = Reflect.get(context, name);
    if (typeof method === 'function') return void Reflect.apply(method, context, [argument]);
  }
}
