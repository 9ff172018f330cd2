import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import { root } from './prepare.mjs';
import { rankOf } from './tiers.mjs';

/**
 * The slowest files first, in the order of scripts/tiers.mjs: a slow file that starts last leaves the other workers
 * idle. By default, Vitest runs one project after another.
 */
export class SlowestFirst extends BaseSequencer {
  async sort(files) {
    // oxlint-disable-next-line unicorn/no-array-sort -- not the method of an array
    const sorted = await super.sort(files);
    return sorted.toSorted(byRank);
  }

  /** Deals the files out in that order, so that each machine gets as many slow ones. By default, a hash decides. */
  async shard(files) {
    const { index, count } = this.ctx.config.shard;
    const dealt = files.toSorted((a, b) => byRank(a, b) || (pathOf(a) < pathOf(b) ? -1 : 1));
    return dealt.filter((_, place) => place % count === index - 1);
  }
}

const byRank = (a, b) => rankOf(pathOf(a)) - rankOf(pathOf(b));
const pathOf = ({ moduleId }) => relative(root, moduleId).replaceAll('\\', '/');
