import { writeFileSync } from 'node:fs';
import { UsageError } from '../usage-error.ts';

/** Writes a file that only this user can read, over nothing. @throws {UsageError} where something is there. */
export function writeNewFile(path: string, text: string): void {
  try {
    // Exclusive: a link that somebody put there is not written through.
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new UsageError(`"${path}" is there already: nothing was written`);
    throw new UsageError(`"${path}" could not be written (${code})`);
  }
}
