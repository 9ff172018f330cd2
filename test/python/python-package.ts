import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDirectory, pythonVenv } from '../support/python-venv.ts';
import { type Ended, runProgram } from '../support/run-program.ts';
import { REQUIREMENTS } from './requirements.ts';

/** The sources of the Python package. */
export const packageFolder: string = fileURLToPath(new URL('../../packages/python', import.meta.url));

/** Everything that `pyproject.toml` names must be among the pinned packages. */
const EXTRAS = 'aws,azure,azure-blob,dynamodb,gcp,gcs,postgres,redis,s3,vault';

/** `packages/python`, built and installed. */
export interface PythonPackage {
  /** The interpreter in which the package is installed. */
  readonly python: string;
  /** The wheel that it was installed from. */
  readonly wheel: string;
  /** The tools of the virtual environment it was built with. */
  readonly tools: string;
}

/** Runs a program to its end. Writes no files beside the sources. */
export function run(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly timeoutMs?: number;
  } = {},
): Promise<Ended> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1', ...options.env };
  return runProgram(command, args, { timeoutMs: 300_000, ...options, env });
}

/** The interpreter that has this version of the sources installed: `.cache/sealring-python-<hash>`, kept between runs. */
export async function pythonWithPackage(): Promise<string> {
  await pythonVenv('python-reader', REQUIREMENTS);
  const folder = join(cacheDirectory, `sealring-python-${hashOfSources()}`);
  if (!existsSync(folder)) {
    // The installation is atomic: if several processes install at the same time, the first to finish wins.
    const own = mkdtempSync(`${folder}.`);
    await installPackage(own);
    try {
      renameSync(own, folder);
    } catch (error) {
      rmSync(own, { recursive: true });
      if (!existsSync(folder)) throw error;
    }
  }
  return join(folder, 'venv', 'bin', 'python');
}

function hashOfSources(): string {
  const hash = createHash('sha256').update(REQUIREMENTS.join());
  const files = readdirSync(packageFolder, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  for (const path of paths.filter((name) => !name.includes('__pycache__')).toSorted()) {
    hash.update(path).update(readFileSync(path));
  }
  return hash.digest('hex').slice(0, 12);
}

/**
 * Builds the wheel from a copy of the sources, with the pinned packages only, and installs it into a new virtual
 * environment in `folder`, which sees the pinned packages too.
 */
export async function installPackage(folder: string): Promise<PythonPackage> {
  const tools = await pythonVenv('python-reader', REQUIREMENTS);
  const shared = join(tools, 'python');
  const source = join(folder, 'source');
  cpSync(packageFolder, source, { recursive: true, filter: (path) => basename(path) !== '__pycache__' });
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--no-input'];
  const wheels = join(folder, 'wheels');
  await succeed(shared, [...pip, 'wheel', '--no-deps', '--no-build-isolation', '--no-index', '-w', wheels, source]);
  const [name = ''] = readdirSync(wheels);
  const wheel = join(wheels, name);

  const own = join(folder, 'venv');
  await succeed(shared, ['-m', 'venv', '--without-pip', own]);
  const [version = ''] = readdirSync(join(own, 'lib'));
  const packages = join('lib', version, 'site-packages');
  writeFileSync(join(own, packages, 'pinned.pth'), `${join(tools, '..', packages)}\n`);
  const python = join(own, 'bin', 'python');
  await succeed(shared, [...pip, '--python', python, 'install', '--no-index', `${wheel}[${EXTRAS}]`]);
  return { python, wheel, tools };
}

async function succeed(command: string, args: readonly string[]): Promise<void> {
  const { code, output } = await run(command, args);
  if (code !== 0) throw new Error(`${args.slice(0, 3).join(' ')} failed (${code}): ${output.slice(-3_000)}`);
}
