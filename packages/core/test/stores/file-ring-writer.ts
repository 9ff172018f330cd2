/**
 * Counts up in a file ring, in its own process: `node file-ring-writer.ts <path> <times>`. Prints each value when its
 * write was acknowledged. Also imported by the test, for the documents.
 */
import { writeSync } from 'node:fs';
import { RingConflictError, type RingStore } from '../../src/contracts/ring-store.ts';
import { fileRing } from '../../src/stores/file-ring.ts';

const REPEATS = 8_000;

/** A document of 80 kB in which a torn write shows. */
export function documentOf(count: number): string {
  return `${String(count).padStart(9, '0')}\n`.repeat(REPEATS);
}

/** The count in a document; NaN for a torn one. */
export function countOf(document: string): number {
  const count = Number(document.slice(0, 9));
  return document === documentOf(count) ? count : Number.NaN;
}

/** Adds one, however many others do the same; returns the new count. */
export async function increment(ring: RingStore): Promise<number> {
  for (;;) {
    const stored = await ring.read();
    const count = stored === undefined ? 0 : countOf(stored.document);
    try {
      await ring.write(documentOf(count + 1), { expected: stored?.revision });
      return count + 1;
    } catch (error) {
      if (!(error instanceof RingConflictError)) throw error;
    }
  }
}

const [, script, path, times] = process.argv;
if (script === import.meta.filename && path !== undefined) {
  const ring = fileRing(path);
  for (let round = 0; round < Number(times); round++) {
    const count = await increment(ring);
    // Synchronous, so that an acknowledged value is printed before this process can be killed.
    writeSync(1, `${count}\n`);
  }
}
