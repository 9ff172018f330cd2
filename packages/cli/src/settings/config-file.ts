import { existsSync, statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import { resolvePolicy } from '@sealring/core/ring';
import { kmsFailuresOf, rejectedOptionIn, storeFailureOf } from '../foreign-error.ts';
import { UsageError } from '../usage-error.ts';
import { ConfigFailure } from './config-failure.ts';
import { closeConfig, type SealringConfig, type Settings } from './settings.ts';

/** The names of a configuration file, in the order in which the working directory is searched. */
export const CONFIG_FILES: readonly string[] = [
  'sealring.config.js',
  'sealring.config.mjs',
  'sealring.config.ts',
  'sealring.config.mts',
];

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
  'singleUse',
];

/** The configuration file in the working directory; undefined if it has none. */
export function findConfigFile(): string | undefined {
  return CONFIG_FILES.find((name) => existsSync(name));
}

/**
 * Loads a configuration file. `named` is its name in messages.
 *
 * @throws {UsageError} if the file is not a configuration.
 * @throws {ConfigFailure} if the KMS or the store fails while the file is loaded.
 */
export async function loadConfigFile(path: string, named: string): Promise<Settings> {
  checkFile(path, named);
  const { href } = pathToFileURL(resolve(path));
  const module = await loaded(path, href, () => import(href) as Promise<Readonly<Record<string, unknown>>>);
  const { default: exported, close } = module;
  const made = await loaded(path, href, async () => (typeof exported === 'function' ? exported() : exported));
  const config = checkConfig(path, made);
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
  if (!isFile(path, named)) throw new UsageError(`${named} does not exist`);
  // False if Node does not strip types; absent before Node 22.10.
  const { typescript } = process.features as { readonly typescript?: unknown };
  if (extension.endsWith('ts') && (typescript === undefined || typescript === false)) {
    throw new UsageError(
      `${named} is TypeScript, which requires Node 22.18, 23.6 or later; this is ${process.version}. Write it as .mjs`,
    );
  }
}

function isFile(path: string, named: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch (error) {
    throw new UsageError(`${named} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
}

async function loaded<T>(path: string, href: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (kmsFailuresOf(error).length > 0 || storeFailureOf(error) !== undefined) throw new ConfigFailure(path, error);
    throw new UsageError(`cannot load ${path}${placeOf(error, href)}: ${nameOf(error)}`);
  }
}

function checkConfig(path: string, exported: unknown): SealringConfig {
  if (typeof exported !== 'object' || exported === null || Array.isArray(exported)) {
    throw new UsageError(`${path} has no configuration: its default export must be an object with ring and keyWrapper`);
  }
  const unknown = Object.keys(exported).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw new UsageError(`${path}: ${unknownOption(unknown)}`);
  const { ring, keyWrapper, probe, singleUse } = exported as Partial<Record<keyof SealringConfig, unknown>>;
  checkPart(path, 'ring', ring, 'a ring store, such as s3Ring({ … })', 'read', 'write');
  const wrappers: readonly unknown[] = Array.isArray(keyWrapper) ? keyWrapper : [keyWrapper];
  const example = 'a key wrapper, such as awsKmsKeyWrapper({ … }), or a list of them';
  if (wrappers.length === 0) throw new UsageError(`${path}: keyWrapper must be ${example}, got an empty list`);
  for (const wrapper of wrappers) checkPart(path, 'keyWrapper', wrapper, example, 'wrap', 'unwrap');
  if (probe !== undefined && (!has(probe, 'remove') || !has(Reflect.get(Object(probe), 'ring'), 'read', 'write'))) {
    throw new UsageError(`${path}: probe must be { ring, remove }: a ring store and a function`);
  }
  if (singleUse !== undefined) {
    checkPart(path, 'singleUse', singleUse, 'a single-use store, such as redisSingleUse({ … })', 'claim');
  }
  return exported as SealringConfig;
}

function unknownOption(name: string): string {
  const policy: readonly string[] = Object.keys(resolvePolicy(undefined, { storeKind: 'file', createNow: false }));
  if (policy.includes(name)) return `"${name}" belongs in policy: { ${name} }`;
  const similar = KNOWN.find((known) => known.toLowerCase() === name.toLowerCase() || isOneEditAway(known, name));
  return similar === undefined
    ? `unknown option "${name}"; the options are ${KNOWN.join(', ')}`
    : `unknown option "${name}"; did you mean "${similar}"?`;
}

/** Whether one character was left out, added or changed. */
function isOneEditAway(known: string, name: string): boolean {
  const [longer, shorter] = known.length >= name.length ? [known, name] : [name, known];
  let at = 0;
  while (at < shorter.length && longer[at] === shorter[at]) at += 1;
  const rest = longer.slice(at + 1);
  return longer.length - shorter.length <= 1 && (rest === shorter.slice(at) || rest === shorter.slice(at + 1));
}

function checkPart(path: string, name: string, value: unknown, what: string, ...methods: readonly string[]): void {
  if (has(value, ...methods)) return;
  throw new UsageError(`${path}: ${name} must be ${what}, got ${described(value)}`);
}

/** The type of a value. The value itself can be a secret. */
function described(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (types.isPromise(value)) return 'a Promise: add await';
  return typeof value === 'object' || typeof value === 'function' ? `another ${typeof value}` : `a ${typeof value}`;
}

function has(value: unknown, ...methods: readonly string[]): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof Reflect.get(value, name) === 'function')
  );
}

/** Describes an error of a module: only by name, unless the loader or core threw it. A message can hold a secret. */
function nameOf(error: unknown): string {
  if (!types.isNativeError(error)) return 'it threw a value that is not an Error';
  const { code } = error as NodeJS.ErrnoException;
  const isOfLoader = error.name === 'SyntaxError' || code?.startsWith('ERR_MODULE') === true;
  return rejectedOptionIn(error) ?? (isOfLoader ? `${error.name}: ${error.message.split('\n')[0]}` : error.name);
}

/** Where in the file an error was thrown, as `, line N`; empty if it was thrown elsewhere. */
function placeOf(error: unknown, href: string): string {
  if (!types.isNativeError(error)) return '';
  const frame = error.stack?.split('\n').find((line) => line.includes(href));
  const line = frame?.match(/:(\d+)(?::\d+)?\)?$/)?.[1];
  return line === undefined ? '' : `, line ${line}`;
}
