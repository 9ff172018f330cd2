import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '..', 'src');

/** The imports that a folder may have from the others. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  boundary: ['shared'],
  typescript: ['boundary', 'shared'],
  server: ['boundary', 'shared'],
  fetch: ['server', 'boundary', 'shared'],
  mcpd: ['server', 'boundary', 'shared'],
};
const SDK = '@modelcontextprotocol/';
/** Folders that use the SDK, with its types. */
const MAY_KNOW_SDK: readonly string[] = ['typescript', 'server', 'fetch', 'mcpd'];

interface SourceFile {
  readonly folder: string;
  readonly name: string;
  /** The names in its imports and exports: a package, or a path from `src`. */
  readonly imports: readonly string[];
}

const FILES: readonly SourceFile[] = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => {
    const text = readFileSync(join(SOURCE, path), 'utf8');
    const targets = [...text.matchAll(/(?: from |import\()'([^']+)'/g)].map(([, target = '']) => target);
    const imports = targets.map((target) => (target.startsWith('.') ? normalize(join(dirname(path), target)) : target));
    return { folder: dirname(path), name: relative(dirname(path), path), imports };
  });

const filesOf = (folder: string): readonly SourceFile[] => FILES.filter((file) => file.folder === folder);
/** The other folders that files import from. */
const foldersOf = ({ folder, imports }: SourceFile): string[] =>
  imports
    .filter((target) => target.endsWith('.ts'))
    .map((target) => dirname(target))
    .filter((other) => other !== folder);

describe('the source folders of mcp', () => {
  test('the source folders of mcp are those listed here, and only the entry point is outside them', () => {
    const expected = [...Object.keys(MAY_IMPORT), '.'].toSorted();
    expect([...new Set(FILES.map(({ folder }) => folder))].toSorted()).toEqual(expected);
    expect(filesOf('.').map(({ name }) => name)).toEqual(['index.ts']);
  });

  test.each(Object.keys(MAY_IMPORT))('%s imports only from the folders that are listed for it', (folder) => {
    const foreign = filesOf(folder).flatMap(foldersOf);
    expect(foreign.filter((other) => MAY_IMPORT[folder]?.includes(other) !== true)).toEqual([]);
  });

  test('the entry point does not import mcp.d, which has its own entry point', () => {
    expect(filesOf('.').flatMap(foldersOf)).not.toContain('mcpd');
    expect(FILES.some(({ folder, name }) => folder === 'mcpd' && name === 'index.ts')).toBe(true);
  });

  test('the source folders import the SDK only where that is expected', () => {
    const knowing = FILES.filter(({ imports }) => imports.some((target) => target.startsWith(SDK)));
    expect([...new Set(knowing.map(({ folder }) => folder))].toSorted()).toEqual(MAY_KNOW_SDK.toSorted());
  });

  test('each source folder of mcp has at most 20 files, of at most 300 lines each', () => {
    for (const folder of Object.keys(MAY_IMPORT)) expect(filesOf(folder).length).toBeLessThanOrEqual(20);
    const linesOf = ({ folder, name }: SourceFile) =>
      readFileSync(join(SOURCE, folder, name), 'utf8').split('\n').length;
    expect(FILES.filter((file) => linesOf(file) > 300)).toEqual([]);
  });
});
