import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';
import { packTarball } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const core = join(root, 'packages/core');
const { exports }: { readonly exports: Readonly<Record<string, { readonly default: string }>> } = JSON.parse(
  readFileSync(join(core, 'package.json'), 'utf8'),
);
const entries = Object.values(exports).map((entry) => entry.default);

const load = (folder: string, entry: string): Promise<Record<string, unknown>> =>
  import(pathToFileURL(join(folder, entry)).href);

describe('@sealring/core, as it is published', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-bundle-'));
  const published = join(folder, 'package');
  let tarball: string;
  beforeAll(() => {
    tarball = packTarball('core', folder);
    execFileSync('tar', ['-xzf', tarball, '-C', folder]);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('has one file for all its modules, and one for each entry point', () => {
    const files = readdirSync(join(published, 'dist'), { recursive: true, encoding: 'utf8' });
    const compiled = files.filter((file) => file.endsWith('.js')).map((file) => `./dist/${file}`);
    expect(compiled.toSorted()).toEqual(['./dist/bundle.js', ...entries].toSorted());
  });

  test.each(entries)('%s exports the same names as the build, and the same kinds of values', async (entry) => {
    const kindsOf = (module: object): object =>
      Object.fromEntries(Object.entries(module).map(([name, value]) => [name, typeof value]));
    expect(kindsOf(await load(published, entry))).toEqual(kindsOf(await load(core, entry)));
  });

  test('has each class once, whichever entry point it comes from', async () => {
    const { createKmsCodec, KeyWrapperError, localKeyWrapper, memoryRing } = await load(published, './dist/index.js');
    const adapter = await load(published, './dist/adapter/index.js');
    const modules = await Promise.all(entries.map((entry) => load(published, entry)));
    const byName = new Map<string, Set<unknown>>();
    for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
      byName.set(name, (byName.get(name) ?? new Set()).add(value));
    }
    expect([...byName].filter(([, values]) => values.size > 1).map(([name]) => name)).toEqual([]);
    expect([createKmsCodec, localKeyWrapper, memoryRing, KeyWrapperError].map((value) => typeof value)).toEqual(
      Array(4).fill('function'),
    );
    expect(Object.keys(adapter).length).toBeGreaterThan(5);
  });

  test('has source maps that lead to the sources in the package', () => {
    const map: { readonly sources: readonly string[]; readonly sourcesContent?: unknown } = JSON.parse(
      readFileSync(join(published, 'dist/bundle.js.map'), 'utf8'),
    );
    expect(map.sources.length).toBeGreaterThan(50);
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

  test('is imported in less time than its modules one by one', { timeout: 60_000 }, () => {
    const milliseconds = (path: string): number => {
      const program = `const began = performance.now(); await import(${JSON.stringify(pathToFileURL(path).href)});
process.stdout.write(String(performance.now() - began));`;
      // Without the options that a test run has for its own processes.
      const options = { encoding: 'utf8', env: { PATH: process.env['PATH'] } } as const;
      return Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], options));
    };
    const rounds = Array.from({ length: 7 }, () => ({
      bundle: milliseconds(join(published, 'dist/index.js')),
      modules: milliseconds(join(core, 'dist/index.js')),
    }));
    const best = (name: 'bundle' | 'modules'): number => Math.min(...rounds.map((round) => round[name]));
    expect(best('bundle') / best('modules')).toBeLessThan(0.75);
  });
});
