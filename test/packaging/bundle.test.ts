import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';
import { packTarball } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly bin?: object;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
}

/** Packages without programs are published with their modules in one file. */
const bundled = readdirSync(join(root, 'packages'))
  .filter((name) => existsSync(join(root, 'packages', name, 'package.json')))
  .map((name) => ({ name, manifest: manifestOf(name) }))
  .filter(({ manifest }) => manifest.bin === undefined)
  .map(({ name, manifest }) => ({ name, entries: Object.values(manifest.exports).map((entry) => entry.default) }));

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'));
}

const load = (folder: string, entry: string): Promise<Record<string, unknown>> =>
  import(pathToFileURL(join(folder, entry)).href);

/** Packs a package and unpacks it into `folder`. @returns the tarball. */
function unpacked(name: string, folder: string): string {
  const tarball = packTarball(name, folder);
  execFileSync('tar', ['-xzf', tarball, '-C', folder]);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return tarball;
}

test('fifteen packages are bundled', () => {
  expect(bundled.map(({ name }) => name)).toHaveLength(15);
});

describe.each(bundled)('@sealring/$name, as it is published', ({ name: folderName, entries }) => {
  const built = join(root, 'packages', folderName);
  const folder = mkdtempSync(join(tmpdir(), 'sealring-bundle-'));
  const published = join(folder, 'package');
  let tarball: string;
  beforeAll(() => {
    tarball = unpacked(folderName, folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('a published package has one file for all its modules, and one for each entry point', () => {
    const files = readdirSync(join(published, 'dist'), { recursive: true, encoding: 'utf8' });
    const compiled = files.filter((file) => file.endsWith('.js')).map((file) => `./dist/${file}`);
    expect(compiled.toSorted()).toEqual(['./dist/bundle.js', ...entries].toSorted());
  });

  test.each(entries)('%s exports the same names as the build, and the same kinds of values', async (entry) => {
    const kindsOf = (module: object): object =>
      Object.fromEntries(Object.entries(module).map(([name, value]) => [name, typeof value]));
    expect(kindsOf(await load(published, entry))).toEqual(kindsOf(await load(built, entry)));
  });

  test('a published package has each class only once, even if several entry points export it', async () => {
    const modules = await Promise.all(entries.map((entry) => load(published, entry)));
    const byName = new Map<string, Set<unknown>>();
    for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
      byName.set(name, (byName.get(name) ?? new Set()).add(value));
    }
    expect([...byName].filter(([, values]) => values.size > 1).map(([name]) => name)).toEqual([]);
    expect(byName.size).toBeGreaterThan(0);
  });

  test('a published package has source maps that lead to the sources in the package', () => {
    const map: { readonly sources: readonly string[]; readonly sourcesContent?: unknown } = JSON.parse(
      readFileSync(join(published, 'dist/bundle.js.map'), 'utf8'),
    );
    expect(map.sources.length).toBeGreaterThan(2);
    const own = map.sources.filter((source) => source.startsWith('../src/'));
    expect(own.filter((source) => !existsSync(join(published, 'dist', source)))).toEqual([]);
    expect(map.sources.filter((source) => !own.includes(source) && !source.startsWith('\0'))).toEqual([]);
    expect(map.sourcesContent).toBeUndefined();
  });

  test('passes publint and are-the-types-wrong', async () => {
    const tool = (name: string): string => join(root, 'node_modules/.bin', name);
    expect(await runProgram(tool('publint'), [tarball, '--strict'], { cwd: folder })).toMatchObject({ code: 0 });
    const attw = ['--profile', 'esm-only', '--no-summary', tarball];
    expect(await runProgram(tool('attw'), attw, { cwd: folder })).toMatchObject({ code: 0 });
  });
});

test('importing core takes less time than importing its modules one by one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-bundle-'));
  try {
    unpacked('core', folder);
    const milliseconds = (path: string): number => {
      const program = `const began = performance.now(); await import(${JSON.stringify(pathToFileURL(path).href)});
process.stdout.write(String(performance.now() - began));`;
      // The environment has none of the options that a test run sets for its own processes.
      const options = { encoding: 'utf8', env: { PATH: process.env['PATH'] } } as const;
      return Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], options));
    };
    const rounds = Array.from({ length: 7 }, () => ({
      bundle: milliseconds(join(folder, 'package/dist/index.js')),
      modules: milliseconds(join(root, 'packages/core/dist/index.js')),
    }));
    const best = (name: 'bundle' | 'modules'): number => Math.min(...rounds.map((round) => round[name]));
    expect(best('bundle') / best('modules')).toBeLessThan(0.75);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
