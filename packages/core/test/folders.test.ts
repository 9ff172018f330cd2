import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/**
 * The imports that a folder may have, lowest first: each names only folders above it in this list, so there is no
 * cycle. No file imports the entry points, which are beside the folders.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  contracts: [],
  formats: ['base', 'contracts'],
  keys: ['base', 'formats'],
  ring: ['base', 'contracts', 'formats', 'keys'],
  adapter: ['base', 'contracts', 'ring'],
  kms: ['base', 'contracts', 'formats', 'keys', 'ring'],
  stores: ['base', 'contracts', 'adapter', 'ring'],
  tokens: ['base', 'contracts', 'formats', 'keys', 'ring'],
  member: ['base', 'contracts', 'adapter', 'keys', 'ring', 'kms', 'stores'],
  codec: ['base', 'contracts', 'adapter', 'formats', 'keys', 'ring', 'kms', 'stores', 'tokens', 'member'],
};

const FOLDERS = Object.keys(MAY_IMPORT);

function filesOf(folder: string): string[] {
  return readdirSync(join(SOURCE, folder)).filter((name) => name.endsWith('.ts'));
}

/** The folders that a file imports from, without its own; the entry points are `.`. */
function importsOf(folder: string, name: string): string[] {
  const text = readFileSync(join(SOURCE, folder, name), 'utf8');
  const targets = [...text.matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(([, target = '']) => target);
  const folders = targets.map((target) => relative(SOURCE, dirname(normalize(join(SOURCE, folder, target)))) || '.');
  return folders.filter((other) => other !== folder);
}

describe('the folders of core', () => {
  test('the folders of core are exactly those listed in this test', () => {
    const folders = readdirSync(SOURCE, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).toSorted()).toEqual(FOLDERS.toSorted());
  });

  test('each folder of core is listed after those that it imports', () => {
    const late = FOLDERS.flatMap((folder, i) => MAY_IMPORT[folder]?.filter((other) => FOLDERS.indexOf(other) >= i));
    expect(late).toEqual([]);
  });

  test.each(FOLDERS)('%s imports exactly what is listed for it', (folder) => {
    const imported = new Set(filesOf(folder).flatMap((name) => importsOf(folder, name)));
    expect([...imported].toSorted()).toEqual(MAY_IMPORT[folder]?.toSorted());
  });

  test('each folder of core, and the one of the entry points, has at most 20 files', () => {
    for (const folder of ['.', ...FOLDERS]) expect(filesOf(folder).length, folder).toBeLessThanOrEqual(20);
  });

  test('no file of core exceeds 300 lines without a reason at its top', () => {
    const long = FOLDERS.flatMap((folder) => filesOf(folder).map((name) => join(folder, name))).filter((path) => {
      const text = readFileSync(join(SOURCE, path), 'utf8');
      return text.split('\n').length > 301 && !text.slice(0, 2_000).includes('One file, because ');
    });
    expect(long).toEqual([]);
  });
});
