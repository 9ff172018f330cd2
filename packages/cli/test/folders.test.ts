import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/** The imports that a folder may have from the others. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  terminal: [],
  policy: [],
  probe: [],
  health: [],
  settings: ['terminal'],
  ring: ['settings', 'terminal'],
  doctor: ['ring', 'settings'],
  migration: ['ring', 'settings'],
  proxy: ['health', 'ring', 'settings'],
  keeper: ['health', 'ring', 'settings', 'terminal'],
  revocation: ['ring'],
  commands: ['doctor', 'keeper', 'migration', 'policy', 'probe', 'proxy', 'revocation', 'ring', 'settings', 'terminal'],
};

/** Files beside the folders, which every folder may import: they import none of them. */
const SHARED: readonly string[] = ['exit-code.ts', 'failure.ts', 'foreign-error.ts', 'usage-error.ts'];

function filesOf(folder: string): string[] {
  return readdirSync(join(SOURCE, folder)).filter((name) => name.endsWith('.ts'));
}

/** The files that a file imports, from the root of the sources. */
function importsOf(folder: string, name: string): string[] {
  const text = readFileSync(join(SOURCE, folder, name), 'utf8');
  const targets = [...text.matchAll(/(?: from |import\()'(\.[^']+)'/g)].map(([, target = '']) => target);
  return targets.map((target) => relative(SOURCE, normalize(join(SOURCE, folder, target))));
}

describe('the folders of the command line', () => {
  test('the folders of the command line are exactly those listed in this test', () => {
    const folders = readdirSync(SOURCE, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).toSorted()).toEqual(Object.keys(MAY_IMPORT).toSorted());
  });

  test.each(Object.keys(MAY_IMPORT))('%s imports only from the folders that are listed for it', (folder) => {
    const names = filesOf(folder);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const foreign = importsOf(folder, name).filter((path) => dirname(path) !== folder && !SHARED.includes(path));
      expect(foreign.filter((path) => MAY_IMPORT[folder]?.includes(dirname(path)) !== true)).toEqual([]);
    }
  });

  test('shared files of the command line import nothing from its folders', () => {
    for (const name of SHARED) expect(importsOf('.', name).filter((path) => !SHARED.includes(path))).toEqual([]);
  });

  test('each folder of the command line has at most 20 files of at most 300 lines each', () => {
    for (const folder of ['.', ...Object.keys(MAY_IMPORT)]) {
      const names = filesOf(folder);
      expect(names.length).toBeLessThanOrEqual(20);
      for (const name of names) {
        expect(readFileSync(join(SOURCE, folder, name), 'utf8').split('\n').length, name).toBeLessThanOrEqual(301);
      }
    }
  });
});
