import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from '../usage-error.ts';

/**
 * Loads a package that is installed beside the project in the working directory or beside this one: adapters are
 * optional, and nobody needs the SDKs of all clouds.
 *
 * @throws {UsageError} naming the package to install.
 */
export async function loadPackage(name: string, why: string): Promise<Readonly<Record<string, unknown>>> {
  const url = resolved(name);
  if (url === undefined) throw new UsageError(`${why} needs the package ${name}: npm install ${name}`);
  return import(url);
}

/** The same for a package that another one brings; undefined where it cannot be found. */
export async function loadPackageOf(
  owner: string,
  name: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const from = resolved(owner);
  if (from === undefined) return undefined;
  const url = resolvedFrom(from, name);
  return url === undefined ? undefined : import(url);
}

/** One function that a package exports; what it returns is for the caller to know. */
export function functionOf(
  module: Readonly<Record<string, unknown>>,
  owner: string,
  name: string,
): (options: object) => unknown {
  const value = module[name];
  if (typeof value !== 'function') throw new UsageError(`${owner} has no ${name}: install the version of this command`);
  return value as (options: object) => unknown;
}

function resolved(name: string): string | undefined {
  return (
    resolvedFrom(pathToFileURL(join(process.cwd(), 'package.json')).href, name) ?? resolvedFrom(import.meta.url, name)
  );
}

function resolvedFrom(from: string, name: string): string | undefined {
  try {
    return pathToFileURL(createRequire(from).resolve(name)).href;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
