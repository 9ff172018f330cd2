import { existsSync, statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import { refusedOptionIn } from '../foreign-error.ts';
import { UsageError } from '../usage-error.ts';
import { closeConfig, type SealringConfig, type Settings } from './settings.ts';

/** In the working directory, the first that is there. */
export const CONFIG_FILES: readonly string[] = ['sealring.config.js', 'sealring.config.mjs', 'sealring.config.ts'];

const KNOWN: readonly string[] = [
  'keyWrapper',
  'ring',
  'ringName',
  'role',
  'policy',
  'wrapQuorum',
  'acceptKeysCreatedAfter',
  'dangerouslyTrustStore',
  'clock',
  'probe',
];

/** The configuration file of the working directory; undefined where there is none. */
export function findConfigFile(): string | undefined {
  return CONFIG_FILES.find((name) => existsSync(name));
}

/** @throws {UsageError} when the file is no configuration. */
export async function loadConfigFile(path: string, named: string): Promise<Settings> {
  checkFile(path, named);
  const { href } = pathToFileURL(resolve(path));
  const module = await importModule(path, href);
  const exported = await made(path, href, module['default']);
  const config = checkConfig(path, exported);
  const { close } = module;
  if (close !== undefined && typeof close !== 'function') throw new UsageError(`${path}: close must be a function`);
  return {
    config,
    origin: path,
    async close() {
      await closeConfig(config);
      await (close as (() => unknown) | undefined)?.();
    },
  };
}

function checkFile(path: string, named: string): void {
  const extension = extname(path);
  if (!['.js', '.mjs', '.ts', '.mts'].includes(extension)) {
    throw new UsageError(`${named} must end in .js, .mjs, .ts or .mts`);
  }
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw new UsageError(`${named} is not there`);
  // False where types are not stripped; unknown to Node before 22.10.
  const { typescript } = process.features as { readonly typescript?: unknown };
  if (extension.endsWith('ts') && (typescript === undefined || typescript === false)) {
    throw new UsageError(
      `${named} is TypeScript: that takes Node 22.18 or 23.6 or later, this is ${process.version}; write it as .mjs`,
    );
  }
}

async function importModule(path: string, href: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(href);
  } catch (error) {
    throw new UsageError(`cannot load ${path}: ${nameAndPlace(error, href)}`);
  }
}

async function made(path: string, href: string, exported: unknown): Promise<unknown> {
  try {
    return await (typeof exported === 'function' ? exported() : exported);
  } catch (error) {
    throw new UsageError(`the configuration of ${path} could not be made: ${nameAndPlace(error, href)}`);
  }
}

function checkConfig(path: string, exported: unknown): SealringConfig {
  if (typeof exported !== 'object' || exported === null || Array.isArray(exported)) {
    throw new UsageError(`${path} exports no configuration: export an object with ring and keyWrapper as default`);
  }
  const unknown = Object.keys(exported).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw new UsageError(`${path}: unknown option "${unknown}"; known: ${KNOWN.join(', ')}`);
  const { ring, keyWrapper, probe } = exported as Partial<Record<keyof SealringConfig, unknown>>;
  if (!has(ring, 'read', 'write')) throw new UsageError(`${path}: ring must be a ring store, as s3Ring makes one`);
  const wrappers: readonly unknown[] = Array.isArray(keyWrapper) ? keyWrapper : [keyWrapper];
  if (wrappers.length === 0 || !wrappers.every((wrapper) => has(wrapper, 'wrap', 'unwrap'))) {
    throw new UsageError(`${path}: keyWrapper must be a key wrapper, as awsKmsKeyWrapper makes one, or several`);
  }
  if (probe !== undefined && (!has(probe, 'remove') || !has(Reflect.get(Object(probe), 'ring'), 'read', 'write'))) {
    throw new UsageError(`${path}: probe must have a ring store as ring, and a function remove`);
  }
  return exported as SealringConfig;
}

function has(value: unknown, ...methods: readonly string[]): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof Reflect.get(value, name) === 'function')
  );
}

/** What a module threw, and where. Its text may hold a secret, unless it is the loader's or an adapter's own. */
function nameAndPlace(error: unknown, href: string): string {
  if (!types.isNativeError(error)) return 'something was thrown that is no Error';
  const { code } = error as NodeJS.ErrnoException;
  const isLoaders = error.name === 'SyntaxError' || code?.startsWith('ERR_MODULE') === true;
  const told = refusedOptionIn(error) ?? (isLoaders ? error.message.split('\n')[0] : undefined);
  const text = told === undefined ? error.name : `${error.name}: ${told}`;
  const place = error.stack?.split('\n').find((line) => line.includes(href));
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1];
  return line === undefined ? text : `${text} in line ${line}`;
}
