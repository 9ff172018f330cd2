import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import { root } from './prepare.mjs';
import { rankOf } from './tiers.mjs';

/**
 * The slowest files first, in the order of scripts/tiers.mjs: a slow file that starts last leaves the other workers
 * idle. By default, Vitest runs one project after the other.
 */
export class SlowestFirst extends BaseSequencer {
  async sort(files) {
    // oxlint-disable-next-line unicorn/no-array-sort -- not the method of an array
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}

const placeOf = ({ moduleId }) => rankOf(relative(root, moduleId).replaceAll('\\', '/'));
