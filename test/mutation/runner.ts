import { existsSync, readFileSync, rmSync } from 'node:fs';
import {
  type RunnerTask,
  type RunnerTestCase,
  type RunnerTestFile,
  type RunnerTestSuite,
  TestRunner,
  type TestTryOptions,
} from 'vitest';
import { type Pass, Trials } from './trials.ts';

/*
 * A vitest runner that runs each test once unchanged, in the first pass, to see which changes of the source it meets,
 * and then once for each of those that no test has failed for yet. In one process, with the hooks of the test around
 * every run: a process for each change would take a hundred times as long.
 *
 * A change may leave state behind in the process. So after each failure the test runs unchanged again: if that fails
 * too, the failure shows nothing, and this process learns no more from the test.
 */
interface Switches {
  activeMutant: string | undefined;
  currentTestId: string | undefined;
  hitCount: number | undefined;
  hitLimit: number;
  mutantCoverage?: {
    readonly static: object;
    readonly perTest: Readonly<Record<string, Readonly<Record<string, number>>>>;
  };
}

const {
  MUTATION_TRIALS = '',
  MUTATION_SOURCES = '',
  MUTATION_QUICKEST_MS = '0',
  MUTATION_SLOWEST_MS = '50',
} = process.env;
const PASS: Pass = { quickestMs: Number(MUTATION_QUICKEST_MS), slowestMs: Number(MUTATION_SLOWEST_MS) };
const trials = new Trials(MUTATION_TRIALS, JSON.parse(readFileSync(MUTATION_SOURCES, 'utf8')));
const switches: Switches = {
  activeMutant: undefined,
  currentTestId: undefined,
  hitCount: undefined,
  hitLimit: Number.POSITIVE_INFINITY,
};
Reflect.set(globalThis, '__stryker__', switches);

/** Where the processes that a test starts leave the changes that they met. */
const MET = `${MUTATION_TRIALS}.${process.pid}.met`;

type Attempt = 'first' | 'mutant' | 'check';

export default class MutationRunner extends TestRunner {
  #attempt: Attempt = 'first';
  #startedAt = 0;
  /** Changes left for the test; undefined if that is not known yet. */
  #queue: string[] | undefined;
  #underTest: string | undefined;

  /** One at a time, because all tests of a process share one switch, and only the tests of this process pass. */
  onCollected(files: RunnerTestFile[]): void {
    trials.refresh();
    for (const file of files) readyForPass(file);
  }

  /** Everything is loaded, and no test of the file has run yet. */
  override async onBeforeRunSuite(suite: RunnerTestSuite): Promise<void> {
    await super.onBeforeRunSuite(suite);
    if (suite.file !== suite) return;
    trials.refresh();
    for (const mutant of Object.keys(switches.mutantCoverage?.static ?? {})) {
      if (!trials.filesFor(mutant).includes(suite.name)) trials.add({ test: suite.name, mutant, outcome: 'loaded' });
    }
  }

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    await super.onBeforeRunTask(test);
    if (test.type !== 'test') return;
    trials.refresh();
    this.#attempt = trials.isKnown(nameOf(test)) ? 'mutant' : 'first';
    this.#queue = undefined;
    test.retry = 0;
    test.repeats = 1_000_000;
  }

  override onBeforeTryTask(test: RunnerTask, options: TestTryOptions): void {
    if (test.type === 'test' && this.#attempt === 'mutant') {
      this.#underTest = this.#next(test);
      if (this.#underTest === undefined) test.context.skip('every mutant that these tests reach was tried');
    }
    switches.activeMutant = this.#attempt === 'mutant' ? this.#underTest : undefined;
    switches.currentTestId = this.#attempt === 'first' ? nameOf(test) : undefined;
    setVariable('__STRYKER_ACTIVE_MUTANT__', switches.activeMutant);
    setVariable('MUTATION_MET', this.#attempt === 'first' ? MET : undefined);
    switches.hitCount = 0;
    switches.hitLimit = this.#limitOf(test);
    this.#startedAt = performance.now();
    super.onBeforeTryTask(test, options);
  }

  override async onAfterRetryTask(test: RunnerTestCase, options: TestTryOptions): Promise<void> {
    switches.activeMutant = undefined;
    switches.currentTestId = undefined;
    const { result } = test;
    if (result === undefined || result.state === 'skip') return;
    const failed = (result.state === 'fail') !== (test.fails === true);
    result.state = test.fails === true ? 'fail' : 'pass';
    if (result.errors !== undefined) result.errors.length = 0;
    if (test.fails === true) result.errors = [{ message: 'as expected' }];
    this.#learn(test, failed);
    await super.onAfterRetryTask(test, options);
  }

  #learn(test: RunnerTestCase, failed: boolean): void {
    const name = nameOf(test);
    if (this.#attempt === 'first') {
      const took = performance.now() - this.#startedAt;
      const met = { ...metByProcesses(), ...switches.mutantCoverage?.perTest[name] };
      if (!failed) trials.add({ test: name, mutant: '', outcome: 'took', ms: took, met });
      this.#attempt = 'mutant';
      return;
    }
    const mutant = this.#underTest ?? '';
    if (this.#attempt === 'mutant') {
      if (failed) this.#attempt = 'check';
      else trials.add({ test: name, mutant, outcome: 'survived' });
      return;
    }
    trials.add({ test: name, mutant, outcome: failed ? 'doubtful' : 'killed' });
    if (failed) this.#queue = [];
    this.#attempt = 'mutant';
  }

  /** A change that is met this much more often than usual is an endless loop. */
  #limitOf(test: RunnerTask): number {
    if (this.#attempt !== 'mutant') return Number.POSITIVE_INFINITY;
    return 1_000 + 100 * trials.hits(nameOf(test), this.#underTest ?? '');
  }

  #next(test: RunnerTask): string | undefined {
    trials.refresh();
    const name = nameOf(test);
    this.#queue ??= trials.toTry(name, PASS).toReversed();
    for (let mutant = this.#queue.pop(); mutant !== undefined; mutant = this.#queue.pop()) {
      if (trials.isSettled(name, mutant)) continue;
      trials.add({ test: name, mutant, outcome: 'start' });
      return mutant;
    }
    return undefined;
  }
}

/** Leaves out changes of another pass. @returns whether some are left. */
function readyForPass(task: RunnerTask): boolean {
  task.concurrent = false;
  const isLeft =
    task.type === 'suite'
      ? task.tasks.map(readyForPass).includes(true)
      : !trials.isKnown(nameOf(task)) || trials.toTry(nameOf(task), PASS).length > 0;
  if (!isLeft) task.mode = 'skip';
  return isLeft;
}

/** Each counts once. */
function metByProcesses(): Readonly<Record<string, number>> {
  if (!existsSync(MET)) return {};
  const met = readFileSync(MET, 'utf8').split('\n').filter(Boolean);
  rmSync(MET);
  return Object.fromEntries(met.map((mutant) => [mutant, 1]));
}

/** Of the environment, which the processes of a test inherit. */
function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

function nameOf(test: RunnerTask): string {
  const names: string[] = [];
  for (let task: RunnerTask | undefined = test; task !== undefined; task = task.suite) names.unshift(task.name);
  return `${test.file.name} > ${names.join(' > ')}`;
}
