import type { DataKey } from '../../src/keys/data-key.ts';

/** Whether the data key of a held key is gone. */
export function isOverwritten(held: DataKey): boolean {
  try {
    held.copyBytes().fill(0);
    return false;
  } catch {
    return true;
  }
}
