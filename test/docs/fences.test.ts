import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const RUN_MS = 100_000;

/** One ```ts block of a document. */
interface Fence {
  /** `docs/guides/first-server.md:12`. */
  readonly place: string;
  /** Its file in the work folder: the place, without characters that are special in paths. */
  readonly file: string;
  readonly code: string;
  /** Unless it is marked ```ts no-run, because it needs a service or never ends. */
  readonly runs: boolean;
}

function documents(): string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !name.split(sep).includes('node_modules'))
      .map((name) => join(folder, name));
  const readmes = readdirSync(join(root, 'packages')).flatMap((name) =>
    readdirSync(join(root, 'packages', name))
      .filter((file) => file === 'README.md')
      .map((file) => join('packages', name, file)),
  );
  return ['README.md', ...readmes, ...below('docs')].toSorted();
}

function fencesOf(document: string): Fence[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/^```ts\b([^\n]*)\n(.*?)^```$/gms)].map(({ 1: marks = '', 2: code = '', index }) => {
    const line = text.slice(0, index).split('\n').length;
    return {
      place: `${document}:${line}`,
      file: `${document.replaceAll(/[^A-Za-z0-9]+/g, '-')}-${line}.ts`,
      // Compiled with the document's own line numbers.
      code: `${'\n'.repeat(line)}${code}`,
      runs: !marks.split(' ').includes('no-run'),
    };
  });
}

// Inside the workspace, so that its packages resolve; ignored by git.
let folder = '';
let compiled: Ended;
const fences = documents().flatMap(fencesOf);

describe('the code in the documentation', () => {
  beforeAll(async () => {
    const cache = join(root, '.cache');
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, 'fences-'));
    for (const { file, code } of fences) writeFileSync(join(folder, file), code);
    const config = {
      extends: relative(folder, join(root, 'tsconfig.test.json')),
      // An example may show a value that it does not use.
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, moduleDetection: 'force' },
      include: ['*.ts'],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(root, 'node_modules', '.bin', 'tsc');
    compiled = await runProgram(tsc, ['-p', '.', '--pretty', 'false'], { cwd: folder, timeoutMs: RUN_MS });
  }, 2 * RUN_MS);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('includes the code in the README', () => {
    expect(fences.map(({ place }) => place.replace(/:\d+$/, ''))).toContain('README.md');
  });

  test('compiles as a whole', () => {
    expect(compiled).toEqual({ code: 0, output: '' });
  });

  test.each(fences)('the code at $place compiles', ({ file }) => {
    expect(compiled.output.split('\n').filter((line) => line.startsWith(`${file}(`))).toEqual([]);
  });

  test.each(fences.filter(({ runs }) => runs))('the code at $place runs', { timeout: 2 * RUN_MS }, async ({ file }) => {
    const { code, output } = await runProgram(process.execPath, [file], { cwd: folder, timeoutMs: RUN_MS });
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
  });
});
