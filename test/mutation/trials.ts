import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * `start`: it has not ended. `doubtful`: after the change, the test failed without it too. `loaded`: a test file met it
 * outside of all tests, usually while a module loads. `took`: how long the test lasts unchanged, and which changes it
 * meets.
 */
type Outcome = 'start' | 'survived' | 'killed' | 'doubtful' | 'hung' | 'loaded' | 'took';

/**
 * If tests have run for this long with a change and none has failed, only the tests that import its file are run with
 * it, and after the next limit only the tests named like the file: other tests hardly ever fail.
 */
const LONGEST_MS = 1_500;
const LONGEST_OF_IMPORTERS_MS = 5_000;

/** Whether a test file is named like a source: `ring-view.test.ts` like `view.ts`. */
export function isNamedLike(tests: string, source: string): boolean {
  return basename(tests, '.test.ts').includes(basename(source, '.ts'));
}

/** The result of one test, or test file, with one change of the source. */
export interface Trial {
  readonly test: string;
  readonly mutant: string;
  readonly outcome: Outcome;
  /** With `took`. */
  readonly ms?: number;
  /** Present together with `took`: the changes that the test meets, and how often. */
  readonly met?: Readonly<Record<string, number>>;
}

/** The tests of a pass: those that last longer than `quickestMs`, and at most `slowestMs`. */
export interface Pass {
  readonly quickestMs: number;
  readonly slowestMs: number;
}

/** The first pass: each test runs unchanged, and with the changes that it failed for in the last run. */
export const FIRST_PASS: Pass = { quickestMs: 0, slowestMs: 0 };

/** Information about the changes at the start of a run. */
export interface Sources {
  /** The place of each change that is tried. */
  readonly files: Readonly<Record<string, string>>;
  /** The test that failed for it in the last run. */
  readonly hints: Readonly<Record<string, string>>;
  /** The sources that each test file imports. */
  readonly imports: Readonly<Record<string, readonly string[]>>;
  /** Tests that were far too slow in an earlier run. */
  readonly slow: readonly string[];
  /** How many times as long as usual the tests take. */
  readonly patience: number;
}

/** The trials so far: a file of lines, so that it outlives a process that hangs. */
export class Trials {
  readonly #path: string;
  readonly #sources: Sources;
  readonly #killed = new Map<string, Trial>();
  readonly #tried = new Set<string>();
  readonly #alone = new Map<string, string[]>();
  readonly #took = new Map<string, number>();
  readonly #met = new Map<string, Readonly<Record<string, number>>>();
  readonly #survivedMs = new Map<string, number>();
  #read = 0;

  constructor(path: string, sources: Sources = { files: {}, hints: {}, imports: {}, slow: [], patience: 1 }) {
    this.#path = path;
    this.#sources = sources;
  }

  add(trial: Trial): void {
    appendFileSync(this.#path, `${JSON.stringify(trial)}\n`);
  }

  isKilled(mutant: string): boolean {
    return this.#killed.has(mutant);
  }

  /** The test files to try it with in a separate process: they met it outside of all tests, or left it in doubt. */
  filesFor(mutant: string): readonly string[] {
    return this.#alone.get(mutant) ?? [];
  }

  /** Whether a test ran unchanged, in this run or an earlier one. */
  isKnown(test: string): boolean {
    return this.#met.has(test) || this.#sources.slow.includes(test);
  }

  /** The tests that take longer than that, in milliseconds. */
  slowerThan(ms: number): readonly string[] {
    return [...this.#took].filter(([, took]) => took > ms).map(([test]) => test);
  }

  /** How often a test meets a change. */
  hits(test: string, mutant: string): number {
    return this.#met.get(test)?.[mutant] ?? 0;
  }

  /** The changes to try a test with in a pass. */
  toTry(test: string, { quickestMs, slowestMs }: Pass): readonly string[] {
    const took = this.#took.get(test) ?? 0;
    const isOfPass = took > quickestMs && took <= slowestMs;
    const met = isOfPass || slowestMs === 0 ? Object.keys(this.#met.get(test) ?? {}) : [];
    const tried = met.filter((mutant) => mutant in this.#sources.files);
    return tried.filter(
      (mutant) => (isOfPass || this.#sources.hints[mutant] === test) && !this.isSettled(test, mutant),
    );
  }

  /** The test files with changes to try in a pass. */
  filesToTry(pass: Pass): readonly string[] {
    const tests = [...this.#met.keys()].filter((test) => this.toTry(test, pass).length > 0);
    return [...new Set(tests.map(fileOf))];
  }

  /** Milliseconds of all tests of a file. */
  tookFile(file: string): number {
    const times = [...this.#took].filter(([test]) => fileOf(test) === file);
    return times.reduce((sum, [, ms]) => sum + ms, 0);
  }

  /** One trial for each change for which a test failed or did not end. */
  get found(): readonly Trial[] {
    return [...this.#killed.values()];
  }

  /** Whether a test file covers a source. */
  isOwn(tests: string, source: string): boolean {
    return isNamedLike(tests, source) || (this.#sources.imports[tests] ?? []).includes(source);
  }

  /** Whether this test can show nothing more about this change. */
  isSettled(test: string, mutant: string): boolean {
    return this.#killed.has(mutant) || this.#tried.has(`${mutant} ${test}`) || this.#isOften(fileOf(test), mutant);
  }

  #isOften(tests: string, mutant: string): boolean {
    const source = this.#sources.files[mutant] ?? '-';
    const most = this.#sources.patience * (this.isOwn(tests, source) ? LONGEST_OF_IMPORTERS_MS : LONGEST_MS);
    return !isNamedLike(tests, source) && (this.#survivedMs.get(mutant) ?? 0) > most;
  }

  /** Reads what other processes have added. @returns the last trial. */
  refresh(): Trial | undefined {
    const lines = this.#newText().split('\n').filter(Boolean);
    const trials = lines.map((line): Trial => JSON.parse(line));
    for (const trial of trials) {
      const { test, mutant, outcome, ms, met } = trial;
      if (ms !== undefined) this.#took.set(test, ms);
      if (met !== undefined) this.#met.set(test, met);
      if (outcome === 'killed' || outcome === 'hung') this.#killed.set(mutant, trial);
      if (outcome === 'survived')
        this.#survivedMs.set(mutant, (this.#survivedMs.get(mutant) ?? 0) + (this.#took.get(test) ?? 0));
      if (outcome === 'loaded' || outcome === 'doubtful')
        this.#alone.set(mutant, [...this.filesFor(mutant), fileOf(test)]);
      if (outcome !== 'loaded') this.#tried.add(`${mutant} ${test}`);
    }
    return trials.at(-1);
  }

  #newText(): string {
    if (!existsSync(this.#path)) return '';
    const file = openSync(this.#path, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#read);
      const count = readSync(file, bytes, 0, bytes.length, this.#read);
      // Another process may be in the middle of a line.
      const end = bytes.lastIndexOf(0x0a, count - 1) + 1;
      this.#read += end;
      return bytes.toString('utf8', 0, end);
    } finally {
      closeSync(file);
    }
  }
}

function fileOf(test: string): string {
  return test.split(' > ', 1)[0] ?? test;
}
