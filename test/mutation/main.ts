import { type StdioOptions, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, globSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type MutationScore, publishTables, SCORES } from '../support/hardening-tables.ts';
import { copyOf, importsOf, makeCopy, patienceOf, testOptions } from './copy.ts';
import { type SourceChange, withMutants } from './mutants.ts';
import { FIRST_PASS, isNamedLike, type Pass, type Trial, Trials } from './trials.ts';

const USAGE = `Usage: npm run mutants -- [--resume] [--own] [--sample N] [--workers N] packages/NAME/src/FILE.ts ...

Breaks files of one package, one small change at a time, in a copy under .cache, and sees whether a test fails.
A pattern is a file too: packages/core/src/formats/*.ts, 'packages/redis/src/**/*.ts'.

  --resume     keep what the last run of the same sources found: for when tests were added since
  --own        only the files of tests that are named like a source or import it: quicker, and a lower score
  --sample N   try only one change in N, always the same ones: for a package whose tests are slow
  --workers N  run N files of tests at a time (default: 2)

Scores go to test/mutation/scores.json and the hardening guide; what no test fails for is printed.
`;

const ROOT = new URL('../../', import.meta.url);
/** A trial that lasts this many times as long as the slowest test of its pass counts as an endless loop. */
const HANGS_AFTER_MS = 6_000;
const HUNG = 10;
/** How long the hooks of a test may take after the test has passed with a change. */
const HOOKS_HANG_AFTER_MS = 60_000;
/**
 * The quickest tests are tried first, because each pass gets only the changes that survived earlier passes; tests
 * slower than the last limit are never tried. Milliseconds.
 */
const LONGEST_TEST_MS = 1_500;
const LIMITS = [0, 4, 15, 60, 300, LONGEST_TEST_MS] as const;
/**
 * A test that takes this many times as long as the slowest of its pass, or two seconds, counts as one that does not
 * end.
 */
const LATE = 6;

const VITEST = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', ROOT));
/**
 * If a change applies to a whole process, whole test files run: those named like the source, and the quickest others.
 */
const LOADED_TESTS_MS = 1_000;
/** A run that takes longer counts as one that does not end. */
const LONGEST_RUN_MS = 90_000;
const PLAIN = ['--config=plain.config.mjs', '--maxWorkers=1'] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', default: false },
    own: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    sample: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
  },
});
const files = [...new Set(positionals.flatMap((pattern) => globSync(pattern, { cwd: fileURLToPath(ROOT) })))];
const name = /^packages\/([\w-]+)\/src\//.exec(files[0] ?? '')?.[1] ?? '';
const workers = Number(values.workers);
const sample = Number(values.sample);
const areCounts = [workers, sample].every((count) => Number.isInteger(count) && count >= 1);
const isOnePackage = name !== '' && files.every((file) => file.startsWith(`packages/${name}/src/`));
if (values.help || !isOnePackage || !areCounts) {
  (values.help ? process.stdout : process.stderr).write(USAGE);
  process.exit(values.help ? 0 : 2);
}

/** How many times as long the package's tests take as those of others. */
const patience = patienceOf(name);
const longestTestMs = LONGEST_TEST_MS * patience;
const passes: readonly Pass[] = [
  FIRST_PASS,
  ...LIMITS.slice(1).map((ms, index) => ({ quickestMs: patience * (LIMITS[index] ?? 0), slowestMs: patience * ms })),
];
const { sources, changes: all } = await withMutants(ROOT, files);
const changes = all.filter(isInSample);
const copy = copyOf(ROOT, name);
const found = values.resume ? foundBefore() : [];
const { hints, slow } = existsSync(copy.hints) ? JSON.parse(readFileSync(copy.hints, 'utf8')) : { hints: {}, slow: [] };
makeCopy(copy, ROOT, name, sources);
const known = {
  files: Object.fromEntries(changes.map(({ id, file }) => [id, file])),
  hints: Object.fromEntries(changes.map(({ id, text }) => [id, hints[text]])),
  imports: importsOf(copy),
  slow,
  patience,
};
writeFileSync(copy.sources, JSON.stringify(known));
for (const trial of found) new Trials(copy.trials).add(trial);
const { default: config } = await import(new URL(`packages/${name}/vitest.config.ts`, ROOT).href);
const provide: Record<string, unknown> = {};
/** Whether a test file passes without any change, if it was tried. */
const sound = new Map<string, boolean>();
const stops = await Promise.all([config.test.globalSetup ?? []].flat().map(startServers));
try {
  const options = testOptions(name, config.test, provide);
  const runner = fileURLToPath(new URL('runner.ts', import.meta.url));
  writeConfig('vitest.config.mjs', { ...options, maxWorkers: workers, runner });
  writeConfig('plain.config.mjs', { ...options, testTimeout: 20_000, isolate: false });
  for (const pass of passes) {
    const began = performance.now();
    while (!(await tryAll(pass)));
    const killed = `${killedOf(changes).length} of ${changes.length} killed`;
    const tests = pass === FIRST_PASS ? 'that failed before' : `of at most ${pass.slowestMs} ms`;
    process.stdout.write(`with tests ${tests}: ${killed} (${minutesSince(began)} min)\n`);
  }
  await tryAlone();
  report();
} finally {
  for (const stop of stops) await stop?.();
}

/** Chosen by its text, so that the same changes are tried after a change elsewhere in the file. */
function isInSample({ text }: SourceChange): boolean {
  return createHash('sha256').update(text).digest().readUInt32BE() % sample === 0;
}

/** Starts the services of a package's tests once, instead of for each run of them. */
async function startServers(path: string): Promise<(() => Promise<void>) | undefined> {
  const { default: setup } = await import(new URL(path, new URL(`packages/${name}/`, ROOT)).href);
  return setup({ provide: (key: string, value: unknown) => Object.assign(provide, { [key]: value }) });
}

/** The tests that failed in the last run. @throws if that run had other sources. */
function foundBefore(): readonly Trial[] {
  for (const [file, source] of sources) {
    const last = join(copy.root, file);
    if (existsSync(last) && readFileSync(last, 'utf8') === source) continue;
    throw new Error(`--resume: ${file} is another one than in the last run, or was not in it`);
  }
  const trials = new Trials(copy.trials);
  trials.refresh();
  return trials.found;
}

function writeConfig(file: string, test: object): void {
  writeFileSync(join(copy.folder, file), `export default ${JSON.stringify({ test }, null, 2)};\n`);
}

/** Runs the tests with every change that has survived so far. False if it had to be ended. */
async function tryAll(pass: Pass): Promise<boolean> {
  const env = {
    MUTATION_TRIALS: copy.trials,
    MUTATION_SOURCES: copy.sources,
    MUTATION_QUICKEST_MS: String(pass.quickestMs),
    MUTATION_SLOWEST_MS: String(pass.slowestMs),
  };
  const seen = new Trials(copy.trials, known);
  let last = seen.refresh();
  const tests = pass === FIRST_PASS ? firstFiles(seen) : seen.filesToTry(pass);
  if (tests.length === 0) return true;
  const slowest = pass === FIRST_PASS ? longestTestMs : pass.slowestMs;
  const run = startVitest([...tests, `--testTimeout=${Math.max(2_000, LATE * slowest)}`], env);
  let since = performance.now();
  let hung = false;
  const watch = setInterval(() => {
    const now = seen.refresh();
    if (now !== undefined) [last, since] = [now, performance.now()];
    if (last?.outcome !== 'start' && last?.outcome !== 'survived') return;
    const most = last.outcome === 'start' ? Math.max(HANGS_AFTER_MS, HUNG * slowest) : HOOKS_HANG_AFTER_MS;
    if (performance.now() - since < most) return;
    hung = true;
    seen.add({ ...last, outcome: 'hung' });
    run.kill();
  }, 1_000);
  await run.ended;
  clearInterval(watch);
  return !hung;
}

/** The test files to begin with. */
function firstFiles(trials: Trials): readonly string[] {
  return Object.keys(known.imports).filter((tests) => !values.own || files.some((file) => trials.isOwn(tests, file)));
}

/**
 * Changes that run while a module loads, or are in doubt, are made for a whole process, in which whole test files run.
 */
async function tryAlone(): Promise<void> {
  const trials = new Trials(copy.trials, known);
  trials.refresh();
  const left = changes.filter(({ id }) => !trials.isKilled(id) && trials.filesFor(id).length > 0);
  if (left.length === 0) return;
  const began = performance.now();
  const queue = [...left.entries()];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, change] = next;
      const tests = await soundOf(chosenOf(trials, change));
      if (tests.length > 0 && !(await succeed(tests, change.id)))
        trials.add({ test: tests.join(' '), mutant: change.id, outcome: 'killed' });
      const done = `${index + 1} of ${left.length}`;
      process.stdout.write(`${done} were tried in separate processes (${minutesSince(began)} min)\n`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

/** The test files that are named like the source, and the quickest of those that import it and of the others. */
function chosenOf(trials: Trials, { id, file }: SourceChange): readonly string[] {
  const timeOf = (tests: string): number => (isNamedLike(tests, file) ? 0 : trials.tookFile(tests));
  const rankOf = (tests: string): number => (trials.isOwn(tests, file) ? 0 : 1);
  const tests = [...new Set(trials.filesFor(id))].toSorted((a, b) => rankOf(a) - rankOf(b) || timeOf(a) - timeOf(b));
  const upTo = (index: number): number => tests.slice(0, index + 1).reduce((sum, test) => sum + timeOf(test), 0);
  return tests.filter((_, index) => index === 0 || upTo(index) <= LOADED_TESTS_MS);
}

/** The tests that pass without any change; a failure of any other test shows nothing. */
async function soundOf(tests: readonly string[]): Promise<readonly string[]> {
  const unknown = tests.filter((test) => !sound.has(test));
  const areAllSound = unknown.length === 0 || (await succeed(unknown, ''));
  for (const test of unknown) sound.set(test, areAllSound || (await succeed([test], '')));
  return tests.filter((test) => sound.get(test));
}

async function succeed(tests: readonly string[], mutant: string): Promise<boolean> {
  const args = [...tests, '--bail=1', ...PLAIN];
  const run = startVitest(args, { __STRYKER_ACTIVE_MUTANT__: mutant });
  const late = setTimeout(run.kill, LONGEST_RUN_MS);
  const code = await run.ended;
  clearTimeout(late);
  return code === 0;
}

interface Run {
  /** Its exit code; null if it had to be ended. */
  readonly ended: Promise<number | null>;
  /** Ends it with all its processes. */
  readonly kill: () => void;
}

function startVitest(args: readonly string[], env: object = {}): Run {
  const log = openSync(join(copy.root, 'vitest.log'), 'a');
  const stdio: StdioOptions = ['ignore', log, log];
  const options = { cwd: copy.folder, env: { ...process.env, ...env }, stdio, detached: true };
  const child = spawn(process.execPath, [VITEST, 'run', ...args], options);
  closeSync(log);
  return {
    ended: new Promise((resolve) => child.once('exit', resolve)),
    kill: () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL')),
  };
}

function killedOf(some: readonly SourceChange[]): readonly SourceChange[] {
  const trials = new Trials(copy.trials);
  trials.refresh();
  return some.filter(({ id }) => trials.isKilled(id));
}

function report(): void {
  const trials = new Trials(copy.trials);
  trials.refresh();
  if (trials.found.length === 0) throw new Error(`no test failed for any change: see ${copy.root}vitest.log`);
  const scores: Record<string, MutationScore> = existsSync(SCORES) ? JSON.parse(readFileSync(SCORES, 'utf8')) : {};
  for (const file of files) {
    const mine = changes.filter((change) => change.file === file);
    const killed = new Set(killedOf(mine));
    const survivors = mine.filter((change) => !killed.has(change)).map(lineOf);
    const date = new Date().toISOString().slice(0, 10);
    scores[file] = { mutants: mine.length, killed: killed.size, date, survivors, ...(sample > 1 && { sample }) };
    process.stdout.write(`${file}: ${killed.size} of ${mine.length} killed\n`);
    for (const survivor of survivors) process.stdout.write(`  ${survivor}\n`);
  }
  const textOf = new Map(changes.map(({ id, text }) => [id, text]));
  for (const { mutant, test } of trials.found) hints[textOf.get(mutant) ?? ''] = test;
  const tooSlow = [...new Set([...slow, ...trials.slowerThan(2 * longestTestMs)])];
  writeFileSync(copy.hints, JSON.stringify({ hints, slow: tooSlow }));
  const sorted = Object.fromEntries(Object.entries(scores).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(SCORES, `${JSON.stringify(sorted, null, 2)}\n`);
  publishTables();
}

function minutesSince(began: number): string {
  return ((performance.now() - began) / 60_000).toFixed(1);
}

function lineOf({ line, column, replacement }: SourceChange): string {
  return `${line}:${column} ${replacement.slice(0, 120)}`;
}
