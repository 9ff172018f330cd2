import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import { execCodecTarget } from '../exec/target.ts';
import { DidNotStart } from '../requirement.ts';
import { exportedTarget } from '../target-module.ts';
import type { TargetSource, TrialOptions } from './messages.ts';
import { UsageError } from './usage-error.ts';

export interface LoadedTarget {
  readonly target: unknown;
  /** Where the target came from, for suites that try it in other processes too: a file URL. */
  readonly module?: string;
  /** Ends what was started for the target. */
  close(): Promise<void>;
}

/** A program that takes longer over one answer hangs, whatever a requirement may take: milliseconds. */
const LONGEST_ANSWER_MS = 10_000;

/** @throws {UsageError} when there is no target to be had. */
export async function loadTarget(source: TargetSource, { timeoutMs }: TrialOptions): Promise<LoadedTarget> {
  if ('module' in source) return loadModule(source.module);
  const { exec, claims } = source;
  const target = execCodecTarget(exec, { timeoutMs: Math.min(timeoutMs, LONGEST_ANSWER_MS), ...claims });
  const opened = { target, close: () => target.close() };
  try {
    await target.create();
  } catch (error) {
    // Whatever else goes wrong is for the requirements to find.
    if (!(error instanceof DidNotStart)) return opened;
    await target.close();
    throw new UsageError(error.message);
  }
  return opened;
}

async function loadModule(path: string): Promise<LoadedTarget> {
  const { href: module } = pathToFileURL(resolve(path));
  const exported = await importModule(path, module);
  const [named, { close }] = [exportedTarget(exported), exported];
  if (named === undefined) throw new UsageError(`${path} exports no target: export it as default or as target`);
  if (close !== undefined && typeof close !== 'function') throw new UsageError(`${path}: close must be a function`);
  const target = await makeTarget(path, module, named);
  if (typeof target !== 'object' || target === null) {
    throw new UsageError(
      `${path}: the target must be an object, a function that makes one, or a promise of one, got ${kindOf(target)}`,
    );
  }
  return { target, module, close: async () => void (await (close as (() => unknown) | undefined)?.()) };
}

async function importModule(path: string, module: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(module);
  } catch (error) {
    throw new UsageError(`cannot load ${path}: ${nameAndPlace(error, module)}`);
  }
}

/** What a module exports, or makes, or has promised. */
async function makeTarget(path: string, module: string, named: unknown): Promise<unknown> {
  try {
    return await (typeof named === 'function' ? named() : named);
  } catch (error) {
    throw new UsageError(`the target of ${path} could not be made: ${nameAndPlace(error, module)}`);
  }
}

/** What a module threw, and where. Its text may hold a secret, unless it is the loader's own. */
function nameAndPlace(error: unknown, module: string): string {
  if (!types.isNativeError(error)) return 'the module threw a value that is not an Error';
  const { code } = error as NodeJS.ErrnoException;
  const isLoaders = error.name === 'SyntaxError' || code?.startsWith('ERR_MODULE') === true;
  const text = isLoaders ? `${error.name}: ${error.message.split('\n')[0] ?? ''}` : error.name;
  const place = error.stack?.split('\n').find((line) => line.includes(module));
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1];
  return line === undefined ? text : `${text} in line ${line}`;
}

function kindOf(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}
