import { randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * Makes sure that a report can be written to a path later on: its folder is made, and takes a file.
 *
 * @throws {Error} of the file system, with a code; without one where something else than a file is there.
 */
export function prepareFile(path: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true });
  checkPlace(path);
  const probe = temporaryOf(path);
  writeFileSync(probe, '', { flag: 'wx' });
  rmSync(probe);
}

/** Writes a file whole or not at all: readers see the old one or the new one. */
export function writeWhole(path: string, content: string): void {
  checkPlace(path);
  const temporary = temporaryOf(path);
  try {
    writeFileSync(temporary, content, { flag: 'wx', flush: true });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** What is there may be a folder, or a device such as /dev/null, that a rename would put a file in the place of. */
function checkPlace(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== false) return;
  throw new Error('the path is not a regular file');
}

/** Beside the file, since a rename is atomic within one file system only. */
function temporaryOf(path: string): string {
  return join(dirname(resolve(path)), `.sealring-${randomUUID()}.tmp`);
}
