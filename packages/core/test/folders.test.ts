import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/** What a folder may import of the others; every folder may import the contracts and tools beside them. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  formats: [],
  ring: ['formats'],
  adapter: ['ring'],
  kms: ['ring', 'formats'],
  stores: ['ring', 'adapter'],
  member: ['ring', 'kms', 'stores'],
};

function filesOf(folder: string): string[] {
  return readdirSync(join(SOURCE, folder)).filter((name) => name.endsWith('.ts'));
}

/** The folders that a file imports from, without its own; the root is `.`. */
function importsOf(folder: string, name: string): string[] {
  const text = readFileSync(join(SOURCE, folder, name), 'utf8');
  const targets = [...text.matchAll(/ from '(\.[^']+)'/g)].map(([, target = '']) => target);
  return targets.map((target) => relative(SOURCE, dirname(normalize(join(SOURCE, folder, target)))) || '.');
}

describe('the folders of core', () => {
  test('are the ones listed here', () => {
    const folders = readdirSync(SOURCE, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).toSorted()).toEqual(Object.keys(MAY_IMPORT).toSorted());
  });

  test.each(Object.keys(MAY_IMPORT))('%s imports one way', (folder) => {
    const names = filesOf(folder);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const foreign = importsOf(folder, name).filter((other) => other !== folder && other !== '.');
      expect(foreign.filter((other) => MAY_IMPORT[folder]?.includes(other) !== true)).toEqual([]);
    }
  });

  test('hold at most 20 files each', () => {
    for (const folder of Object.keys(MAY_IMPORT)) expect(filesOf(folder).length).toBeLessThanOrEqual(20);
  });
});
