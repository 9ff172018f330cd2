import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory, MissingPrerequisite } from './python-venv.ts';

/** How to install a test server. */
export interface InstallRecipe {
  /** The folder, `.cache/<name>`; the name contains the version, so that another version is installed beside it. */
  readonly name: string;
  readonly command: string;
  /** Called with the folder to install into, which exists and is empty. */
  args(folder: string): readonly string[];
  /** Added to the environment of this process. */
  env?(folder: string): Readonly<Record<string, string>>;
  /** The message if the command is missing. */
  readonly missing: string;
}

/**
 * Installs into `.cache/<name>`, unless it is already there, and returns the folder. The installation is atomic:
 * processes that install at the same time each use their own folder, and the first to finish wins.
 *
 * @throws {MissingPrerequisite} without the command, or access to what it installs.
 */
export async function installedOnce(recipe: InstallRecipe): Promise<string> {
  const folder = join(cacheDirectory, recipe.name);
  if (existsSync(folder)) return folder;
  process.stdout.write(`installing ${recipe.name} into .cache/${recipe.name} (once)\n`);
  await mkdir(cacheDirectory, { recursive: true });
  const own = await mkdtemp(`${folder}.`);
  try {
    await install(recipe, own);
    await rename(own, folder);
  } catch (error) {
    await rm(own, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

async function install(recipe: InstallRecipe, folder: string): Promise<void> {
  const { name, command, missing } = recipe;
  const logName = `${name}.install-${process.pid}.log`;
  const log = await open(join(cacheDirectory, logName), 'w');
  try {
    const installer = spawn(command, recipe.args(folder), {
      cwd: folder,
      stdio: ['ignore', log.fd, log.fd],
      env: { ...process.env, ...recipe.env?.(folder) },
    });
    const [code] = await once(installer, 'exit').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') throw new MissingPrerequisite(missing);
      throw error;
    });
    if (code !== 0) throw new MissingPrerequisite(`${name}: ${command} could not install it; see .cache/${logName}`);
  } finally {
    await log.close();
  }
  await rm(join(cacheDirectory, logName), { force: true });
}
