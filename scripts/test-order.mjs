import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import { root } from './prepare.mjs';
import { rankOf } from './tiers.mjs';

/**
 * The slowest files first, in the order of scripts/tiers.mjs: a file of minutes that starts last leaves the other workers
 * idle. Vitest alone runs one project after the other.
 */
export class SlowestFirst extends BaseSequencer {
  async sort(files) {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }) => rankOf(relative(root, moduleId).replaceAll('\\', '/'));
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
