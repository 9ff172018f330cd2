import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { runPlay } from './adversary/episode.ts';
import { PLAYS } from './adversary/plays.ts';
import { readRecord } from './mutant-search.ts';
import { MUTANTS, type Mutant } from './mutants.ts';
import { ADVERSARY_SEARCHES, STANDING_SEARCHES } from './searches.ts';

// Computation only, on machines that may be busy.
vi.setConfig({ testTimeout: 900_000 });

const CORE = new URL('../../packages/core/src/', import.meta.url);

/** Compiles a copy under packages/core/.cache. A name may be unused once the guard that needed it is gone. */
const COMPILER = {
  extends: '../../tsconfig.json',
  compilerOptions: {
    rootDir: 'src',
    noEmit: true,
    composite: false,
    declaration: false,
    declarationMap: false,
    isolatedDeclarations: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    tsBuildInfoFile: null,
  },
  include: ['src'],
};

interface Group {
  readonly names: string[];
  /** The changed sources, by their path in core. */
  readonly files: Map<string, string>;
}

/** Groups of mutants that can be applied together: the compiler is slow. */
function compatible(mutants: readonly Mutant[]): readonly Group[] {
  const groups: Group[] = [];
  for (const mutant of mutants) {
    if (groups.some((group) => joins(mutant, group))) continue;
    const group: Group = { names: [], files: new Map() };
    if (!joins(mutant, group)) throw new Error(`${mutant.name} cannot be applied`);
    groups.push(group);
  }
  return groups;
}

function joins({ name, edits }: Mutant, { names, files }: Group): boolean {
  const changed = new Map<string, string>();
  for (const { file, from, to } of edits) {
    const parts = (changed.get(file) ?? files.get(file) ?? readFileSync(new URL(file, CORE), 'utf8')).split(from);
    if (parts.length !== 2) return false;
    changed.set(file, parts.join(to));
  }
  for (const [file, text] of changed) files.set(file, text);
  names.push(name);
  return true;
}

function compilerErrors(folder: string): string {
  const { stdout, error } = spawnSync('tsc', ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' });
  if (error !== undefined) throw error;
  return stdout.trim();
}

// A fixed budget; the rest is `npm run simulate -- --adversary all --seeds 1-200`.
describe('adversary searches', () => {
  for (const { name, seed, report } of ADVERSARY_SEARCHES) {
    test(`a fleet keeps its promises against ${name}, seed ${seed} (F36–F40, F43, F45, F46)`, async () => {
      const { violations, deliveries } = await report();
      const repeat = `npm run simulate -- --adversary ${name} --seeds ${seed}-${seed} --members 8 --trace`;
      expect(violations, repeat).toEqual([]);
      expect(deliveries, repeat).toBeGreaterThan(0);
    });
  }
});

describe('adversary plays', () => {
  for (const name of Object.keys(PLAYS)) {
    test(`a fleet keeps its promises during ${name} (F36–F38, F43)`, async () => {
      const { violations, deliveries } = await runPlay(name, 1);
      expect(violations).toEqual([]);
      expect(deliveries).toBeGreaterThan(0);
    });
  }
});

describe('mutants that test the oracle', () => {
  test.each(MUTANTS)('$name can be applied, because core has each text that it replaces exactly once', ({ edits }) => {
    for (const { file, from, to } of edits) {
      expect(readFileSync(new URL(file, CORE), 'utf8').split(from), file).toHaveLength(2);
      expect(to).not.toBe(from);
    }
  });

  // A mutant that does not compile is caught for that reason alone.
  test('every mutant compiles', () => {
    const core = fileURLToPath(new URL('..', CORE));
    mkdirSync(join(core, '.cache'), { recursive: true });
    const copy = mkdtempSync(join(core, '.cache', 'mutants-'));
    try {
      writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(COMPILER));
      const groups = compatible(MUTANTS);
      for (const { files, names } of [{ files: new Map<string, string>(), names: ['core itself'] }, ...groups]) {
        cpSync(CORE, join(copy, 'src'), { recursive: true });
        for (const [file, text] of files) writeFileSync(join(copy, 'src', file), text);
        expect(compilerErrors(copy), `one of: ${names.join(', ')}`).toBe('');
      }
      expect(groups.flatMap(({ names }) => names)).toHaveLength(MUTANTS.length);
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  const record = readRecord();
  const searches = STANDING_SEARCHES.map(({ name, seed }) => `${name} ${seed}`);

  // To add a mutant, try it with `npm run simulate -- --mutants NAME`.
  test.each(MUTANTS)('$name is caught by one of the fixed searches, as recorded', ({ name }) => {
    const caught = record[name];
    expect(searches).toContain(`${caught?.search ?? 'nothing'} ${caught?.seed ?? 0}`);
  });

  test('the record has the same mutants as the list, in the same order', () => {
    expect(Object.keys(record)).toEqual(MUTANTS.map(({ name }) => name));
  });
});
