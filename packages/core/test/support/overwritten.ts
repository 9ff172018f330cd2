import type { HeldKey } from '../../src/keys/envelope-key-cache.ts';

/** Whether the data key of a held key is gone. */
export function isOverwritten(held: HeldKey): boolean {
  try {
    held.copyDataKey().fill(0);
    return false;
  } catch {
    return true;
  }
}
