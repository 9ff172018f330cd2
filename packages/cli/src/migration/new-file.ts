import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { Failure } from '../failure.ts';
import { UsageError } from '../usage-error.ts';

/** Checks, before any call to the KMS or the store, that the file does not exist. @throws {UsageError} if it does. */
export function checkNewFile(path: string): void {
  if (path === '') throw new UsageError('"" is not the name of a file: nothing was written');
  if (existsSync(path)) throw new UsageError(alreadyExists(path));
}

/**
 * Creates a file, by default one that only this user can read. If it cannot be written completely, it is removed again.
 *
 * @throws {UsageError} if it exists or cannot be created. @throws {Failure} `cannot-write` if it cannot be written.
 */
export function writeNewFile(path: string, text: string, mode = 0o600): void {
  const file = created(path, mode);
  try {
    // Some file systems report a full disk only when the data is flushed.
    writeFileSync(file, text, { flush: true });
  } catch (error) {
    rmSync(path, { force: true });
    throw new Failure('cannot-write', `cannot write "${path}" (${codeOf(error)}): the file was removed again`);
  } finally {
    closeSync(file);
  }
}

/** @returns the descriptor of the file. */
function created(path: string, mode: number): number {
  try {
    // The flag wx does not follow a link that someone has put there.
    return openSync(path, 'wx', mode);
  } catch (error) {
    const code = codeOf(error);
    throw new UsageError(code === 'EEXIST' ? alreadyExists(path) : `cannot write "${path}" (${code})`);
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown';
}

function alreadyExists(path: string): string {
  return `"${path}" already exists: nothing was written`;
}
