import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the test servers and their logs: git-ignored, kept between runs. */
export const cacheDirectory: string = fileURLToPath(new URL('../../.cache/', import.meta.url));

/** A test server needs something that this machine lacks. The message names it in one line. */
export class MissingPrerequisite extends Error {
  override readonly name = 'MissingPrerequisite';
}

// A lock of the kernel, released with its process: a killed installer does not block the next one.
const INSTALL = `
import fcntl, os, shutil, subprocess, sys
directory, wanted = sys.argv[1], sys.argv[2]
stamp = os.path.join(directory, 'requirements.txt')
with open(directory + '.lock', 'w') as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not (os.path.exists(stamp) and open(stamp).read() == wanted):
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([sys.executable, '-m', 'venv', directory], check=True)
        pip = [os.path.join(directory, 'bin', 'python'), '-m', 'pip', '--disable-pip-version-check', '--no-input']
        subprocess.run(pip + ['install', '--quiet', '--progress-bar', 'off'] + wanted.split(), check=True)
        with open(stamp, 'w') as file:
            file.write(wanted)
`;

/**
 * Creates a Python virtual environment `.cache/<name>` with the packages, unless it exists. Concurrent processes wait
 * for the one that installs.
 *
 * @param requirements - pip requirements, every one pinned with `==`.
 * @returns The environment's `bin` directory.
 * @throws {MissingPrerequisite} without python3, its venv module, or access to the packages.
 */
export async function pythonVenv(name: string, requirements: readonly string[]): Promise<string> {
  await mkdir(cacheDirectory, { recursive: true });
  const directory = join(cacheDirectory, name);
  const wanted = requirements.map((line) => `${line}\n`).join('');
  if ((await stampOf(directory)) !== wanted) {
    process.stdout.write(`installing ${requirements.join(' ')} into .cache/${name} (once)\n`);
    await install(name, directory, wanted);
  }
  return join(directory, 'bin');
}

async function install(name: string, directory: string, wanted: string): Promise<void> {
  const log = await open(`${directory}.install.log`, 'w');
  try {
    const python = spawn('python3', ['-c', INSTALL, directory, wanted], { stdio: ['ignore', log.fd, log.fd] });
    const [code] = await once(python, 'exit').catch((error: unknown) => {
      if (isNotFound(error)) throw new MissingPrerequisite(`${name}: python3 (with venv and pip) is missing`);
      throw error;
    });
    if (code !== 0) {
      throw new MissingPrerequisite(`${name}: pip could not install it; see .cache/${name}.install.log`);
    }
  } finally {
    await log.close();
  }
}

async function stampOf(directory: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, 'requirements.txt'), 'utf8');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
