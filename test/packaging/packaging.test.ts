import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportedValues } from './api-report.ts';
import { findSystemNode } from './system-node.ts';

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const published = readdirSync(join(root, 'packages'))
  .map((name) => join(root, 'packages', name))
  .filter((folder) => existsSync(join(folder, 'package.json')))
  .map((folder) => ({ folder, manifest: readManifest(folder) }))
  .filter(({ manifest }) => manifest.private !== true);
const oldest = findSystemNode(root, 20);
const temporary = mkdtempSync(join(tmpdir(), 'sealring-packaging-'));

beforeAll(() => {
  for (const { folder, manifest } of published) {
    unpack(folder, installed(manifest.name));
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
      if (!name.startsWith('@sealring/')) linkThirdParty(folder, name);
    }
  }
}, 300_000);

afterAll(() => rmSync(temporary, { recursive: true, force: true }));

test('every published package has the same script words', () => {
  for (const { manifest } of published) {
    expect(Object.keys(manifest.scripts), manifest.name).toEqual(['build', 'typecheck', 'test', 'api', 'check']);
  }
});

describe.each(published)('the tarball of $manifest.name', ({ folder, manifest }) => {
  test('holds the build, the licence and the README', () => {
    const files = filesOf(installed(manifest.name));
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
    for (const entry of Object.values(manifest.exports)) {
      expect(files).toEqual(expect.arrayContaining([entry.types.slice(2), entry.default.slice(2)]));
    }
  });

  test('holds no test and no build information', () => {
    const unwanted = /(^|\/)(tests?|\.cache|\.turbo|node_modules)\/|\.test\.|\.tsbuildinfo$/;
    expect(filesOf(installed(manifest.name)).filter((file) => unwanted.test(file))).toEqual([]);
  });

  test('holds no compiled file whose source is gone', () => {
    const files = filesOf(installed(manifest.name));
    const compiled = files.filter((file) => file.startsWith('dist/') && file.endsWith('.js'));
    expect(compiled.filter((file) => !files.includes(`src${file.slice(4, -3)}.ts`))).toEqual([]);
  });

  test.each(Object.keys(manifest.exports))(`exports on ${oldest.title} what its api report lists: %s`, (entry) => {
    const report = ['api', ...entry.split('/').slice(1), 'md'].join('.');
    const expected = exportedValues(readFileSync(join(folder, report), 'utf8'));
    expect(importedNames(join(manifest.name, entry))).toEqual(expected);
  });
});

function readManifest(folder: string): Manifest {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return manifest;
}

function installed(name: string): string {
  return join(temporary, 'node_modules', name);
}

function unpack(folder: string, target: string): void {
  const options = ['--json', '--silent', '--ignore-scripts', '--pack-destination', temporary];
  const printed = execFileSync('npm', ['pack', ...options], { cwd: folder, encoding: 'utf8' });
  const [packed]: readonly { readonly filename: string }[] = JSON.parse(printed);
  if (packed === undefined) throw new Error(`npm packed nothing in ${folder}`);
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', join(temporary, packed.filename), '-C', target, '--strip-components=1']);
}

function linkThirdParty(folder: string, name: string): void {
  const target = installed(name);
  if (existsSync(target)) return;
  const nested = join(folder, 'node_modules', name);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(existsSync(nested) ? nested : join(root, 'node_modules', name), target, 'junction');
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) =>
      join(file.parentPath, file.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    );
}

function importedNames(specifier: string): string[] {
  const program = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(specifier)})).sort()))`;
  const args = ['--input-type=module', '--eval', program];
  const names: string[] = JSON.parse(execFileSync(oldest.path, args, { cwd: temporary, encoding: 'utf8' }));
  return names;
}
