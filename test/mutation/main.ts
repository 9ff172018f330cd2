import { spawn } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type MutationScore, publishTables } from '../support/hardening-tables.ts';
import { type SourceChange, withMutants } from './mutants.ts';
import { type Trial, Trials } from './trials.ts';

/*
 * Breaks files of core or mcp, one small change at a time, in a copy under .cache, and sees whether a test fails:
 *
 *   npm run mutants -- packages/core/src/formats/*.ts
 *
 * With `--resume` what the last run of the same sources found stays found: for when tests were added since.
 *
 * The scores go to test/mutation/scores.json and the hardening guide, what no test failed for to the terminal.
 */
const ROOT = new URL('../../', import.meta.url);
const SCORES = new URL('scores.json', import.meta.url);
/** A trial that lasts longer is a loop without an end. */
const HANGS_AFTER_MS = 30_000;
/**
 * The quickest tests are tried first, since each pass is left only what those before it let live; tests longer than the
 * last are never tried. Milliseconds.
 */
const PASSES = [4, 15, 60, 300, 1_500] as const;
/** A test that takes so many times as long as the slowest of its pass, or a second, is one that does not end. */
const LATE = 4;

const VITEST = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', ROOT));
/** The tests of one file, for one change that is made before a module loads. */
const LONGEST_RUN_MS = 60_000;
/** A test of many seconds, which kills nothing that another does not. */
const SLOW = 'no .salt, nonce. repeats over';

/** Tests whose subject is in another process, where no change is active, or that measure time. */
const LEFT_OUT = {
  core: ['bounds', 'plain-script', 'constant-time'],
  mcp: ['conformance', 'hosting/*', 'constant-time'],
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { resume: { type: 'boolean', default: false } },
});
const files = positionals.flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
const folder = /^packages\/(core|mcp)\/src\//.exec(files[0] ?? '')?.[1] as 'core' | 'mcp' | undefined;
if (folder === undefined || !files.every((file) => file.startsWith(`packages/${folder}/src/`))) {
  process.stderr.write(
    'Usage: npm run mutants -- [--resume] packages/(core|mcp)/src/FILE.ts ...   files of one package\n',
  );
  process.exit(2);
}

const { sources, changes } = await withMutants(ROOT, files);
const copy = fileURLToPath(new URL(`.cache/mutants/${folder}/`, ROOT));
const trialsFile = join(copy, 'trials.jsonl');
/** Whether a file of tests passes without any change, where it was tried. */
const sound = new Map<string, boolean>();
makeCopy(folder);
for (const slowest of PASSES) {
  const began = performance.now();
  while (!(await tryAll(slowest)));
  const minutes = ((performance.now() - began) / 60_000).toFixed(1);
  process.stdout.write(
    `with tests of at most ${slowest} ms: ${killedOf(changes).length} of ${changes.length} killed (${minutes} min)\n`,
  );
}
await tryLoaded();
report();

function makeCopy(name: 'core' | 'mcp'): void {
  const found = values.resume ? foundBefore() : [];
  rmSync(copy, { recursive: true, force: true });
  const here = join(copy, 'packages', name);
  mkdirSync(here, { recursive: true });
  const original = fileURLToPath(new URL(`packages/${name}/`, ROOT));
  for (const part of ['src', 'test', 'package.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(original, part), join(here, part), { recursive: true });
  }
  for (const shared of ['vectors', 'node_modules', 'tsconfig.base.json', 'tsconfig.test.json', 'tsconfig.package.json'])
    symlinkSync(fileURLToPath(new URL(shared, ROOT)), join(copy, shared));
  for (const other of name === 'mcp' ? ['core', 'conformance'] : [])
    symlinkSync(fileURLToPath(new URL(`packages/${other}`, ROOT)), join(copy, 'packages', other));
  if (existsSync(join(original, 'node_modules')))
    symlinkSync(join(original, 'node_modules'), join(here, 'node_modules'));
  for (const [file, source] of sources) writeFileSync(join(copy, file), source);
  const trials = new Trials(trialsFile);
  for (const trial of found) trials.add(trial);
  const test = {
    include: ['test/**/*.test.ts'],
    exclude: LEFT_OUT[name].map((file) => `test/${file}.test.ts`),
    pool: 'forks',
    maxWorkers: Number(process.env['MUTATION_WORKERS'] ?? 2),
    hookTimeout: 20_000,
    reporters: ['dot'],
  };
  const runner = fileURLToPath(new URL('runner.ts', import.meta.url));
  writeConfig(join(here, 'vitest.config.mjs'), { ...test, runner });
  writeConfig(join(here, 'plain.config.mjs'), { ...test, testTimeout: 20_000 });
}

/** What a test failed for in the last run. @throws where that run had other sources. */
function foundBefore(): readonly Trial[] {
  for (const [file, source] of sources) {
    const last = join(copy, file);
    if (existsSync(last) && readFileSync(last, 'utf8') === source) continue;
    throw new Error(`--resume: ${file} is another one than in the last run, or was not in it`);
  }
  const trials = new Trials(trialsFile);
  trials.refresh();
  return trials.found;
}

function writeConfig(path: string, test: object): void {
  writeFileSync(path, `export default ${JSON.stringify({ test }, null, 2)};\n`);
}

/** Runs the tests with every change that is still alive. False when it had to be ended. */
async function tryAll(slowest: number): Promise<boolean> {
  const cwd = join(copy, 'packages', folder ?? '');
  const env = { ...process.env, MUTATION_TRIALS: trialsFile, MUTATION_SLOWEST_MS: String(slowest) };
  const args = [VITEST, 'run', `--testTimeout=${Math.max(1_000, LATE * slowest)}`];
  const child = spawn(process.execPath, args, { cwd, env, stdio: 'ignore', detached: true });
  const seen = new Trials(trialsFile);
  let last = seen.refresh();
  let since = performance.now();
  let hung = false;
  const watch = setInterval(() => {
    const now = seen.refresh();
    if (now !== undefined) [last, since] = [now, performance.now()];
    if (last?.outcome !== 'start' || performance.now() - since < HANGS_AFTER_MS || child.pid === undefined) return;
    hung = true;
    seen.add({ ...last, outcome: 'hung' });
    process.kill(-child.pid, 'SIGKILL');
  }, 1_000);
  await new Promise((resolve) => child.once('exit', resolve));
  clearInterval(watch);
  return !hung;
}

/** What runs while a module loads is changed for a whole process, and the files that load it run until a test fails. */
async function tryLoaded(): Promise<void> {
  const trials = new Trials(trialsFile);
  trials.refresh();
  const left = changes.filter(({ id }) => !trials.isKilled(id) && trials.loadedBy(id).length > 0);
  const began = performance.now();
  for (const [done, { id }] of left.entries()) {
    const minutes = ((performance.now() - began) / 60_000).toFixed(1);
    process.stdout.write(`${done} of ${left.length} that are met while a module loads were tried (${minutes} min)\n`);
    for (const file of trials.loadedBy(id)) {
      if (await isSound(file, id)) continue;
      trials.add({ test: file, mutant: id, outcome: 'killed' });
      break;
    }
  }
}

/** Whether a file of tests passes with a change; one that fails without any shows nothing. */
async function isSound(file: string, mutant: string): Promise<boolean> {
  if (!sound.has(file)) sound.set(file, await passes(file, ''));
  return sound.get(file) === false || passes(file, mutant);
}

async function passes(file: string, mutant: string): Promise<boolean> {
  const cwd = join(copy, 'packages', folder ?? '');
  const env = { ...process.env, __STRYKER_ACTIVE_MUTANT__: mutant };
  const args = [VITEST, 'run', file, '--bail=1', '--config=plain.config.mjs', `--testNamePattern=^(?!.*(?:${SLOW}))`];
  const child = spawn(process.execPath, args, { cwd, env, stdio: 'ignore', detached: true });
  const late = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'), LONGEST_RUN_MS);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  clearTimeout(late);
  return code === 0;
}

function killedOf(some: readonly SourceChange[]): readonly SourceChange[] {
  const trials = new Trials(trialsFile);
  trials.refresh();
  return some.filter(({ id }) => trials.isKilled(id));
}

function report(): void {
  const scores: Record<string, MutationScore> = existsSync(SCORES) ? JSON.parse(readFileSync(SCORES, 'utf8')) : {};
  for (const file of files) {
    const mine = changes.filter((change) => change.file === file);
    const killed = new Set(killedOf(mine));
    const survivors = mine.filter((change) => !killed.has(change)).map(lineOf);
    const date = new Date().toISOString().slice(0, 10);
    scores[file] = { mutants: mine.length, killed: killed.size, date, survivors };
    process.stdout.write(`${file}: ${killed.size} of ${mine.length} killed\n`);
    for (const survivor of survivors) process.stdout.write(`  ${survivor}\n`);
  }
  const sorted = Object.fromEntries(Object.entries(scores).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(SCORES, `${JSON.stringify(sorted, null, 2)}\n`);
  publishTables();
}

function lineOf({ line, column, replacement }: SourceChange): string {
  return `${line}:${column} ${replacement.slice(0, 120)}`;
}
