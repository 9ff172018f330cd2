import { writeFileSync } from 'node:fs';
import { UsageError } from '../usage-error.ts';

/** Creates a file that only this user can read. @throws {UsageError} if it exists. */
export function writeNewFile(path: string, text: string): void {
  try {
    // Exclusive: does not follow a link that someone put there.
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new UsageError(`"${path}" already exists: nothing was written`);
    throw new UsageError(`cannot write "${path}" (${code})`);
  }
}
