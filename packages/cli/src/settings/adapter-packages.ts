import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from '../usage-error.ts';

/**
 * Loads a package that is installed in the project of the working directory, or next to this package. Adapters are
 * optional: few projects need the SDKs of all providers.
 *
 * @throws {UsageError} that names the package to install.
 */
export async function loadPackage(name: string, why: string): Promise<Readonly<Record<string, unknown>>> {
  const url = resolved(name);
  if (url === undefined) throw new UsageError(`${why} requires the package ${name}. Run: npm install ${name}`);
  return import(url);
}

/** Loads a dependency of an installed package; undefined if it cannot be found. */
export async function loadPackageOf(
  owner: string,
  name: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const from = resolved(owner);
  if (from === undefined) return undefined;
  const url = resolvedFrom(from, name);
  return url === undefined ? undefined : import(url);
}

/** A function that a package exports. The caller must know its return type. */
export function functionOf(
  module: Readonly<Record<string, unknown>>,
  owner: string,
  name: string,
): (options: object) => unknown {
  const value = module[name];
  if (typeof value !== 'function') {
    throw new UsageError(`the installed version of ${owner} has no ${name}: install the same version as @sealring/cli`);
  }
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
