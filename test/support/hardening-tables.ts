import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * The tables of docs/guides/hardening.md, from the records of the long runs. Each follows a comment with its name,
 * `<!-- fuzzing -->`, and ends at the next empty line.
 */
const ROOT = new URL('../../', import.meta.url);
export const GUIDE: URL = new URL('../../docs/guides/hardening.md', import.meta.url);
const FUZZING = new URL('../fuzz/record.json', import.meta.url);
export const SCORES: URL = new URL('../mutation/scores.json', import.meta.url);

/** The record of a parser by test/fuzz/main.ts. */
export interface FuzzRecord {
  /** `YYYY-MM-DD`, of the last run. */
  readonly date: string;
  readonly node: string;
  readonly runs: readonly FuzzRun[];
}

/** A run with another seed continues where the ones before it ended. */
export interface FuzzRun {
  readonly inputs: number;
  readonly seed: number;
  readonly seconds: number;
  readonly accepted: number;
  /** Inputs that reached new code. */
  readonly found: number;
  readonly failures: number;
}

/** The record of a file by test/mutation/main.ts. */
export interface MutationScore {
  /** Changes that were tried. */
  readonly mutants: number;
  /** Changes that failed a test, or made one run without an end. */
  readonly killed: number;
  /** `YYYY-MM-DD`. */
  readonly date: string;
  /** The rest: `line:column replacement`. */
  readonly survivors: readonly string[];
  /** Only one change in so many was tried. Default: every one. */
  readonly sample?: number;
}

/** The guide with its tables written again. @throws if it has no place for one of them. */
export function withTables(guide: string): string {
  const fuzzing: Record<string, FuzzRecord> = JSON.parse(readFileSync(FUZZING, 'utf8'));
  return withScores(replaced(guide, 'fuzzing', fuzzingTable(fuzzing)), recordedScores());
}

/** The scores that were recorded, by file. */
export function recordedScores(): Readonly<Record<string, MutationScore>> {
  return JSON.parse(readFileSync(SCORES, 'utf8'));
}

/** The guide with the table of these scores, and the folders that have none. */
export function withScores(guide: string, scores: Readonly<Record<string, MutationScore>>): string {
  return replaced(replaced(guide, 'scores', scoresTable(scores)), 'unmeasured', unmeasured(scores));
}

/** Writes the tables into the guide. */
export function publishTables(): void {
  writeFileSync(GUIDE, withTables(readFileSync(GUIDE, 'utf8')));
}

function replaced(guide: string, name: string, made: string): string {
  const mark = `<!-- ${name} -->\n`;
  const start = guide.indexOf(mark) + mark.length;
  if (start < mark.length) throw new Error(`docs/guides/hardening.md has no <!-- ${name} -->`);
  return `${guide.slice(0, start)}${made}${guide.slice(guide.indexOf('\n\n', start))}`;
}

function fuzzingTable(record: Readonly<Record<string, FuzzRecord>>): string {
  const sorted = Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const rows = sorted.map(([name, { date, runs }]) => {
    const seeds = runs.map(({ seed }) => seed);
    const [first, last] = [Math.min(...seeds), Math.max(...seeds)];
    const span = first === last ? String(first) : `${first} to ${last}`;
    const sum = (key: 'inputs' | 'accepted' | 'found' | 'failures') =>
      spaced(runs.reduce((total, run) => total + run[key], 0));
    return [`\`${name}\``, date, sum('inputs'), span, sum('accepted'), sum('found'), sum('failures')];
  });
  return table(['parser', 'date', 'inputs', 'seeds', 'accepted', 'found new code', 'failures'], rows);
}

function scoresTable(scores: Readonly<Record<string, MutationScore>>): string {
  const files = Object.keys(scores);
  const row = (name: string, mine: readonly string[]): readonly string[] => {
    const measured = mine.flatMap((file) => scores[file] ?? []);
    const sum = (key: 'mutants' | 'killed'): number => measured.reduce((total, score) => total + score[key], 0);
    const oldest = measured.map(({ date }) => date).toSorted()[0] ?? '';
    const samples = [...new Set(measured.map(({ sample = 1 }) => sample))].toSorted((a, b) => a - b);
    const tried = samples.map((sample) => (sample === 1 ? 'all' : `1 in ${sample}`)).join(', ');
    return [name, oldest, spaced(mine.length), tried, ...scored(sum('mutants'), sum('killed'))];
  };
  const rows = grouped(files, packageOf).flatMap(([name, mine]) => {
    const folders = grouped(mine, dirname).map(([folder, some]) => row(`\`${folder}\``, some));
    return folders.length > 1 ? [...folders, row(`**${name}**`, mine)] : folders;
  });
  return table(['folder', 'date', 'files', 'tried', 'mutants', 'killed', 'score'], rows);
}

/** A sentence that names the source folders without a measured file; for a package without any, the package. */
function unmeasured(scores: Readonly<Record<string, MutationScore>>): string {
  const measured = Object.keys(scores);
  const sources = globSync('packages/*/src/**/*.ts', { cwd: fileURLToPath(ROOT) }).toSorted();
  const names = grouped(sources, packageOf).flatMap(([name, mine]) => {
    if (!measured.some((file) => packageOf(file) === name)) return [`\`packages/${name}\``];
    const folders = grouped(mine, dirname).map(([folder]) => folder);
    return folders.filter((folder) => !measured.some((file) => dirname(file) === folder)).map((it) => `\`${it}\``);
  });
  return names.length === 0 ? 'Every folder is measured.' : `Not measured: ${names.join(', ')}.`;
}

const packageOf = (file: string): string => file.split('/')[1] ?? '';

function grouped(files: readonly string[], keyOf: (file: string) => string): readonly [string, readonly string[]][] {
  const keys = [...new Set(files.map(keyOf))].toSorted();
  return keys.map((key) => [key, files.filter((file) => keyOf(file) === key)]);
}

function scored(mutants: number, killed: number): readonly string[] {
  const score = mutants === 0 ? '–' : `${((100 * killed) / mutants).toFixed(1)} %`;
  return [spaced(mutants), spaced(killed), score];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** 1000000 as `1 000 000`. */
function spaced(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ' ');
}
