import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';
import { packTarballs, publishedFolders, type Tarball } from '../support/tarballs.ts';
import { reportNameOf } from './api-report.ts';

interface Manifest {
  readonly name: string;
  readonly license?: string;
  readonly version: string;
  readonly engines?: { readonly node: string };
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-packaging-'));
const published = publishedFolders().map((name) => {
  const folder = join(root, 'packages', name);
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { folder, manifest };
});
let tarballs: readonly Tarball[] = [];

beforeAll(() => {
  tarballs = packTarballs(temporary);
});
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

test('every published package has the same scripts, and none that runs during an installation', () => {
  for (const { manifest } of published) {
    expect(Object.keys(manifest.scripts), manifest.name).toEqual([
      'build',
      'typecheck',
      'test',
      'api',
      'check',
      'prepack',
    ]);
  }
});

test('all packages have the same version and licence, and require the oldest tested Node or a newer one', () => {
  expect(new Set(published.map(({ manifest }) => manifest.version)).size).toBe(1);
  for (const { manifest } of published) {
    expect(manifest.license, manifest.name).toBe('Apache-2.0');
    expect(['>=20.19', '>=22'], manifest.name).toContain(manifest.engines?.node);
  }
});

describe.each(published)('the tarball of $manifest.name', ({ folder, manifest }) => {
  const filesOf = () => tarballs.find(({ name }) => name === manifest.name)?.files ?? [];

  test('the tarball has the build, the licence and the README', () => {
    expect(filesOf()).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
    for (const entry of Object.values(manifest.exports)) {
      expect(filesOf()).toEqual(expect.arrayContaining([entry.types.slice(2), entry.default.slice(2)]));
    }
    for (const program of Object.values(manifest.bin ?? {})) expect(filesOf()).toContain(program.slice(2));
  });

  test('the tarball has no test and no build information', () => {
    const unwanted = /(^|\/)(tests?|\.cache|\.turbo|node_modules)\/|\.test\.|\.tsbuildinfo$/;
    expect(filesOf().filter((file) => unwanted.test(file))).toEqual([]);
  });

  test('the tarball has no compiled file without its source', () => {
    const compiled = filesOf().filter((file) => file.startsWith('dist/') && file.endsWith('.js'));
    expect(compiled.length).toBeGreaterThan(0);
    const withoutSource = compiled.filter((file) => !existsSync(join(folder, `src${file.slice(4, -3)}.ts`)));
    // All modules of a package are in one file, unless it has programs.
    expect(withoutSource).toEqual(manifest.bin === undefined ? ['dist/bundle.js'] : []);
  });

  test('the package has a report of the public API for every entry point', () => {
    const reports = Object.keys(manifest.exports).map(reportNameOf);
    expect(reports.filter((report) => !existsSync(join(folder, report)))).toEqual([]);
  });
});

test('no package has grown by more than a tenth since its size was recorded', async () => {
  expect(await runProgram(process.execPath, [join(root, 'scripts', 'sizes.mjs')])).toEqual({ code: 0, output: '' });
});
