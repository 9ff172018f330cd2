import { existsSync, writeFileSync } from 'node:fs';
import { UsageError } from '../usage-error.ts';

/** Checks, before any call to the KMS or the store, that the file does not exist. @throws {UsageError} if it does. */
export function checkNewFile(path: string): void {
  if (existsSync(path)) throw new UsageError(alreadyExists(path));
}

/** Creates a file that only this user can read. @throws {UsageError} if it exists. */
export function writeNewFile(path: string, text: string): void {
  try {
    // The flag wx does not follow a link that someone has put there.
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new UsageError(alreadyExists(path));
    throw new UsageError(`cannot write "${path}" (${code})`);
  }
}

function alreadyExists(path: string): string {
  return `"${path}" already exists: nothing was written`;
}
