import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmEnvironment } from '../support/npm-environment.ts';
import { type PackageRegistry, servePackages } from '../support/package-registry.ts';
import { type Ended, runProgram } from '../support/run-program.ts';
import { packTarballs } from '../support/tarballs.ts';

/*
 * Each page with an `npm install` line as a reader meets it: an empty folder, `npm init -y`, only the install lines as
 * printed, and the programs below them. The packages of this repository come from a registry of the test, and all
 * others come from the usual registry. The README installs tarballs, which are where its own command puts them.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-pages-'));

interface Fence {
  readonly line: number;
  readonly language: string;
  readonly marks: readonly string[];
  readonly text: string;
}

function fencesOf(page: string): readonly Fence[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```$/gms)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    language: match[1] ?? '',
    marks: (match[2] ?? '').split(' '),
    text: match[3] ?? '',
  }));
}

const isInstall = (line: string): boolean => line.startsWith('npm install ');
const installsOf = (page: string): readonly string[] =>
  fencesOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.split('\n').filter(isInstall));

function pages(): string[] {
  const documents = ['.', 'guides', 'providers'].flatMap((folder) =>
    readdirSync(join(root, 'docs', folder)).map((name) => join('docs', folder, name)),
  );
  const readmes = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'README.md'));
  return ['README.md', ...documents, ...readmes].filter((page) => page.endsWith('.md') && installsOf(page).length > 0);
}

const found = pages();
let registry: PackageRegistry;
/** As `npm init -y` makes it. */
let manifest = '';

beforeAll(async () => {
  const command = /^npm run pack -- \.\.\/(\S+)$/m.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? '';
  const { code, output } = await runProgram('npm', ['run', 'pack', '--', join(temporary, command)], {
    cwd: root,
  });
  if (code !== 0) throw new Error(output);
  registry = await servePackages(packTarballs(temporary));
  const init = { cwd: mkdtempSync(join(temporary, 'project-')), env: npmEnvironment() };
  await runProgram('npm', ['init', '-y'], init);
  manifest = readFileSync(join(init.cwd, 'package.json'), 'utf8');
});
afterAll(async () => {
  await registry?.[Symbol.asyncDispose]();
  rmSync(temporary, { recursive: true, force: true });
});

test('the pages with install lines include the README, the guide to the first server and the README of every npm package', () => {
  expect(found).toEqual(expect.arrayContaining(['README.md', join('docs', 'guides', 'first-server.md')]));
  const manifests = readdirSync(join(root, 'packages')).filter((name) => name !== 'python');
  expect(found).toEqual(expect.arrayContaining(manifests.map((name) => join('packages', name, 'README.md'))));
});

describe.each(found)('%s, in an empty project', (page) => {
  const project = mkdtempSync(join(temporary, 'project-'));
  const programs = fencesOf(page).filter(({ language }) => language === 'ts');
  const fileOf = ({ line }: Fence): string => `line-${line}.mts`;

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const environment = npmEnvironment();
  const run = (command: string, args: readonly string[]): Promise<Ended> =>
    runProgram(command, args, {
      cwd: project,
      env: {
        ...environment,
        PATH: [dirname(process.execPath), environment['PATH']].join(delimiter),
      },
    });

  test('the install lines of the page succeed without a warning', async () => {
    writeFileSync(join(project, 'package.json'), manifest);
    writeFileSync(join(project, '.npmrc'), registry.npmrc);
    for (const line of new Set(installsOf(page))) {
      const { code, output } = await run('bash', ['-c', line]);
      expect(code, output).toBe(0);
      expect(output).not.toMatch(/ERESOLVE|EBADENGINE|deprecated/);
    }
  });

  test.runIf(programs.length > 0)('every program compiles with the installed packages', async () => {
    for (const fence of programs) {
      // A module, although a code block without imports would be a script.
      const isModule = /^(import|export) /m.test(fence.text);
      writeFileSync(join(project, fileOf(fence)), isModule ? fence.text : `${fence.text}\nexport {};\n`);
    }
    const config = {
      compilerOptions: {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        allowImportingTsExtensions: true,
        module: 'nodenext',
        target: 'esnext',
        lib: ['esnext'],
        types: ['node'],
        typeRoots: [join(root, 'node_modules', '@types')],
      },
      include: ['*.mts'],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
    const { code, output } = await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', '.']);
    expect(output).toBe('');
    expect(code).toBe(0);
  });

  for (const fence of programs.filter(({ marks }) => !marks.includes('no-run'))) {
    test(`runs the program at line ${fence.line}`, async () => {
      const { code, output } = await run(process.execPath, [fileOf(fence)]);
      expect(output).not.toMatch(/Warning:.*(MODULE_TYPELESS|ExperimentalWarning)/);
      expect(code, output).toBe(0);
    });
  }
});
