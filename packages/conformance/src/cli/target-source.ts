import { statSync } from 'node:fs';
import { extname } from 'node:path';
import type { ProgramClaims, TargetSource } from './messages.ts';
import { UsageError } from './usage-error.ts';

const PLAIN = ['.js', '.mjs'];
const TYPED = ['.ts', '.mts'];

/** @throws {UsageError} unless exactly one target is named, and it can be loaded by this Node. */
export function readSource(module: string | undefined, exec: string | undefined, claims: ProgramClaims): TargetSource {
  if (module !== undefined && exec !== undefined) {
    throw new UsageError(`both a target module "${module}" and --exec "${exec}" are given: one of them`);
  }
  if (exec !== undefined) {
    if (exec.trim() === '') throw new UsageError('--exec "" names no command');
    return { exec, claims };
  }
  if (module === undefined) throw new UsageError('a target module is missing');
  if (Object.keys(claims).length > 0) {
    throw new UsageError('what a codec claims is said in its module, and on the command line with --exec only');
  }
  checkModule(module);
  return { module };
}

function checkModule(module: string): void {
  const extension = extname(module);
  if (![...PLAIN, ...TYPED].includes(extension)) {
    throw new UsageError(`the target module "${module}" must end in one of ${[...PLAIN, ...TYPED].join(', ')}`);
  }
  if (statSync(module, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new UsageError(`the target module "${module}" is not there`);
  }
  // False where types are not stripped; unknown to Node before 22.10.
  const { typescript } = process.features as { readonly typescript?: unknown };
  if (TYPED.includes(extension) && (typescript === undefined || typescript === false)) {
    throw new UsageError(
      `the target module "${module}" is TypeScript: that takes Node 22.18 or 23.6 or later, this is ${process.version}`,
    );
  }
}
