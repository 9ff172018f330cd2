import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MUTANTS, type Mutant } from './mutants.ts';

/** The search that caught a mutant, and the invariant that failed. */
interface Caught {
  readonly search: string;
  readonly seed: number;
  readonly law: string;
}

/** The result for each mutant by its name; null if the mutant survived. */
export type MutantsRecord = Readonly<Record<string, Caught | null>>;

const ROOT = join(import.meta.dirname, '..', '..');
const RECORD = new URL('mutants-record.json', import.meta.url);
/** A search that does not end has caught it too. */
const LONGEST_TRIAL_MS = 1_200_000;
const ENDLESS: Caught = { search: 'any', seed: 0, law: 'a run ends' };

export function readRecord(): MutantsRecord {
  try {
    return JSON.parse(readFileSync(RECORD, 'utf8')) as MutantsRecord;
  } catch {
    return {};
  }
}

/**
 * Tries mutants in sequence, all of them or the named ones, and records the outcome. Returns true if all were
 * caught.
 */
export async function searchMutants(names: readonly string[], tell: (line: string) => void): Promise<boolean> {
  // A copy, so that edits of core meanwhile change no trial. It is below the root, so that the dependencies are found.
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const copy = mkdtempSync(join(ROOT, '.cache', 'mutated-core-'));
  try {
    cpSync(join(ROOT, 'packages', 'core', 'src'), copy, { recursive: true });
    return await tryEach(names, copy, tell);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

async function tryEach(names: readonly string[], copy: string, tell: (line: string) => void): Promise<boolean> {
  const wanted = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
  // A search that fails on the unchanged core shows nothing.
  const unsound = (await trial(undefined, copy, ['--every'])).map(({ search, seed }) => `${search} ${seed}`);
  for (const search of unsound) tell(`left out: ${search} fails without any mutant`);
  const without = unsound.flatMap((search) => ['--without', search]);
  let survivors = 0;
  for (const [i, mutant] of wanted.entries()) {
    const last = readRecord()[mutant.name];
    const first = last === undefined || last === null ? [] : ['--first', `${last.search} ${last.seed}`];
    const [caught = null] = await trial(mutant, copy, [...first, ...without]);
    if (caught === null) survivors += 1;
    const outcome = caught === null ? 'SURVIVED' : `${caught.search}, seed ${caught.seed}: ${caught.law}`;
    tell(`${i + 1} of ${wanted.length}  ${mutant.name}  ${outcome}`);
    record(mutant.name, caught);
  }
  tell(`${wanted.length - survivors} of ${wanted.length} mutants were caught`);
  return survivors === 0 && unsound.length === 0;
}

/** In the order of the list, not of the trials. */
function record(name: string, caught: Caught | null): void {
  const all = { ...readRecord(), [name]: caught };
  const known = MUTANTS.filter((mutant) => Object.hasOwn(all, mutant.name));
  const sorted = Object.fromEntries(known.map((mutant) => [mutant.name, all[mutant.name]]));
  writeFileSync(RECORD, `${JSON.stringify(sorted, undefined, 2)}\n`);
}

/** The failures of the fixed searches on the copy, with one guard removed or unchanged. */
function trial(mutant: Mutant | undefined, copy: string, options: readonly string[]): Promise<readonly Caught[]> {
  const args = ['--import', join(import.meta.dirname, 'mutate.ts'), '--stack-trace-limit=0'];
  const child = spawn(process.execPath, [...args, join(import.meta.dirname, 'mutant-trial.ts'), ...options], {
    env: { ...process.env, SEALRING_MUTANT: mutant?.name ?? '', SEALRING_CORE_COPY: copy },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, errors, isLate] = ['', '', false];
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, LONGEST_TRIAL_MS);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      const noticed = output.split('\n').filter(Boolean);
      if (isLate) resolve([ENDLESS]);
      else if (code !== 0) reject(new Error(`${mutant?.name ?? 'core as it is'}: ${errors.slice(-500)}`));
      else resolve(noticed.map((line) => JSON.parse(line) as Caught));
    });
  });
}
