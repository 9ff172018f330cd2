import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Tests that are left out: their files, and the reason. */
const LEFT_OUT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cli: {
    folders: 'reads the source, which is another one here',
    readme: 'reads files only',
    terminal: 'runs the command with an environment of its own, where no change is active',
  },
  core: {
    architecture: 'reads files only',
    bounds: 'measures memory',
    'constant-time': 'measures time',
    folders: 'reads the source, which is another one here',
    'plain-script': 'runs another process, where no change is active',
  },
  'gcp-kms': { 'sdk-versions': 'runs another process' },
  mcp: {
    conformance: 'runs another process',
    'constant-time': 'measures time',
    folders: 'reads the source, which is another one here',
    'hosting/*': 'runs other processes',
  },
  postgres: { readme: 'runs another process' },
  redis: { readme: 'runs another process' },
};

/** Tests of many seconds, by title: each has quicker ones beside it. */
const SLOW = 'no .salt, nonce. repeats over|several processes on one file ring';

/** Packages whose tests start processes, and how many times as long they take as other tests. */
const PATIENCE: Readonly<Record<string, number>> = { cli: 4 };

export function patienceOf(name: string): number {
  return PATIENCE[name] ?? 1;
}

/** A package with its changes, among links to everything else of the repository. */
export interface Copy {
  /** The folder that takes the place of the repository's root. */
  readonly root: string;
  /** The package in it. */
  readonly folder: string;
  readonly trials: string;
  /** Information about each change: its source, and a hint. */
  readonly sources: string;
  /** The tests that failed in earlier runs, by the text of the change, and those that were far too slow. */
  readonly hints: string;
}

/** Where the copy of a package is, or will be. */
export function copyOf(repository: URL, name: string): Copy {
  const root = fileURLToPath(new URL(`.cache/mutants/${name}/`, repository));
  return {
    root,
    folder: join(root, 'packages', name),
    trials: join(root, 'trials.jsonl'),
    sources: join(root, 'sources.json'),
    hints: fileURLToPath(new URL(`.cache/mutants/${name}.hints.json`, repository)),
  };
}

/** Creates it, with the given sources, by their path from the root. */
export function makeCopy(
  { root, folder }: Copy,
  repository: URL,
  name: string,
  sources: ReadonlyMap<string, string>,
): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const original = fileURLToPath(repository);
  linkAll(original, root, ['.cache', '.git', 'packages']);
  linkAll(join(original, 'packages'), join(root, 'packages'), [name]);
  const own = ['src', 'test', 'package.json'];
  const built = commandsOf(join(original, 'packages', name)).length > 0 ? ['dist'] : [];
  linkAll(join(original, 'packages', name), folder, [...own, ...built, 'vitest.config.ts', '.turbo']);
  for (const part of own) cpSync(join(original, 'packages', name, part), join(folder, part), { recursive: true });
  for (const [file, source] of sources) writeFileSync(join(root, file), source);
  for (const command of commandsOf(folder)) makeCommand(folder, command);
}

/** The built files of a package that its tests run as a process. */
function commandsOf(folder: string): readonly string[] {
  const { bin = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.values<string>(bin);
}

/** In place of a built command, one that runs the copied source, and records which changes it met. */
function makeCommand(folder: string, command: string): void {
  const path = join(folder, command);
  const source = join(folder, command.replace('dist/', 'src/').replace(/js$/, 'ts'));
  const child = fileURLToPath(new URL('child.ts', import.meta.url));
  mkdirSync(dirname(path), { recursive: true });
  const modules = [child, source].map(
    (module) => `await import(${JSON.stringify(relative(dirname(path), module))});\n`,
  );
  writeFileSync(path, modules.join(''));
}

/** The sources that each file of tests imports, from the root of the repository. */
export function importsOf({ root, folder }: Copy): Record<string, readonly string[]> {
  const files = globSync('test/**/*.test.ts', { cwd: folder });
  return Object.fromEntries(
    files.map((file) => {
      const imports = readFileSync(join(folder, file), 'utf8').matchAll(/ from '(\.[^']+)';/g);
      const paths = Array.from(imports, ([, path = '']) => join(folder, dirname(file), path).slice(root.length));
      return [file, paths];
    }),
  );
}

/** The options of vitest for its tests: the package's own, with the addresses of running servers. */
export function testOptions(name: string, own: { readonly globalSetup?: unknown }, provide: object): object {
  const { globalSetup: _, ...rest } = own;
  const exclude = Object.keys(LEFT_OUT[name] ?? {}).map((file) => `test/${file}.test.ts`);
  const testNamePattern = `^(?!.*(?:${SLOW}))`;
  return { ...rest, provide, exclude, testNamePattern, pool: 'forks', hookTimeout: 20_000, reporters: ['dot'] };
}

function linkAll(from: string, to: string, without: readonly string[]): void {
  for (const entry of readdirSync(from)) if (!without.includes(entry)) symlinkSync(join(from, entry), join(to, entry));
}
