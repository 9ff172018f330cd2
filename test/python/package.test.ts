import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installPackage, type PythonPackage, packageFolder, run } from './python-package.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealring-wheel-'));
const vectors = fileURLToPath(new URL('../../vectors', import.meta.url));
let installed: PythonPackage;

beforeAll(async () => {
  installed = await installPackage(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the wheel has the package, its types and its licence, but no tests', async () => {
  const { output } = await run(installed.python, ['-m', 'zipfile', '-l', installed.wheel]);
  const files = output.split('\n').flatMap((line) => /^(\S+\/\S+)/.exec(line)?.[1] ?? []);
  expect(basename(installed.wheel)).toBe('sealring-0.1.0-py3-none-any.whl');
  expect(files).toEqual(
    expect.arrayContaining([
      'sealring/__init__.py',
      'sealring/py.typed',
      'sealring/formats/native.py',
      'sealring/ring/keeper.py',
      'sealring/stores/postgres.py',
      'sealring/stores/redis.py',
      'sealring/wrappers/gcp_kms.py',
      'sealring/wrappers/local.py',
      'sealring-0.1.0.dist-info/licenses/LICENSE',
    ]),
  );
  expect(files.filter((file) => !/^sealring(-0\.1\.0\.dist-info)?\//.test(file))).toEqual([]);
});

test('the package requires cryptography only, and imports vendor SDKs and mcp only when they are used', async () => {
  const program = `
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('azure', 'boto3', 'botocore', 'google', 'google_crc32c', 'hvac', 'mcp', 'psycopg', 'redis'):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Nothing())
import sealring
for use in (
    lambda: sealring.S3Ring(bucket='b', key='k'),
    lambda: sealring.PostgresRing(url='postgresql://host/database'),
    lambda: sealring.VaultTransitKeyWrapper(key_id='key', address='https://vault', token='token'),
):
    try:
        use()
    except ModuleNotFoundError as error:
        print(error.name)
`;
  const { code, output } = await run(installed.python, ['-W', 'error', '-c', program]);
  expect(output).toBe('boto3\npsycopg\nhvac\n');
  expect(code).toBe(0);
});

test('the installed wheel passes all tests of the package', async () => {
  const report = join(folder, 'report.xml');
  const { code, output } = await run(
    installed.python,
    ['-m', 'pytest', '-q', '--junitxml', report, `--rootdir=${packageFolder}`, join(packageFolder, 'tests')],
    { cwd: folder, env: { SEALRING_VECTORS: vectors } },
  );
  expect(code, output.slice(-6_000)).toBe(0);
  const counts = /<testsuite [^>]*>/.exec(readFileSync(report, 'utf8'))?.[0] ?? '';
  expect(counts).toContain('errors="0" failures="0" skipped="0"');
  expect(Number(/tests="(\d+)"/.exec(counts)?.[1])).toBeGreaterThan(300);
});

test.each([
  ['ruff check', ['check', '--no-cache', '.']],
  ['ruff format', ['format', '--no-cache', '--check', '.']],
])('%s reports nothing', async (_, args) => {
  const { code, output } = await run(join(installed.tools, 'ruff'), args, { cwd: packageFolder });
  expect(code, output).toBe(0);
});

test('mypy --strict reports nothing', async () => {
  const cache = join(folder, 'mypy');
  const { code, output } = await run(
    join(installed.tools, 'mypy'),
    ['--strict', `--cache-dir=${cache}`, '--python-executable', installed.python, 'src'],
    { cwd: packageFolder },
  );
  expect(code, output).toBe(0);
});

const readme = readFileSync(join(packageFolder, 'README.md'), 'utf8');
const fences = [...readme.matchAll(/^```python\b([^\n]*)\n(.*?)^```$/gms)].map(
  ({ 1: marks = '', 2: code = '', index }) => ({
    place: `README.md:${readme.slice(0, index).split('\n').length}`,
    code,
    runs: !marks.includes('no-run'),
  }),
);

test('the README has examples that can run', () => {
  expect(fences.filter(({ runs }) => runs).length).toBeGreaterThan(0);
});

test.each(fences)('the code at $place type-checks, and runs unless marked no-run', async ({ place, code, runs }) => {
  const file = join(folder, `${place.replaceAll(/[^A-Za-z0-9]+/g, '_')}.py`);
  writeFileSync(file, code);
  const types = ['--strict', `--cache-dir=${join(folder, 'mypy')}`, '--python-executable', installed.python];
  const config = ['--config-file', join(packageFolder, 'pyproject.toml')];
  const typed = await run(join(installed.tools, 'mypy'), [...types, ...config, file], { cwd: folder });
  expect(typed.code, typed.output).toBe(0);
  if (!runs) return;
  const ended = await run(installed.python, ['-W', 'error', file], { cwd: folder });
  expect(ended.code, ended.output).toBe(0);
});
