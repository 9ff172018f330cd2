import { parseArgs } from 'node:util';
import { type Search, STANDING_SEARCHES } from './searches.ts';

/*
 * Runs the fixed searches on a core with one guard removed, until one of them fails, which it reports in one line of
 * JSON. The search that caught it last time comes first. On an unchanged core, `--every` lists the searches that fail
 * all the same, which must be left out.
 */
const { values } = parseArgs({
  options: {
    first: { type: 'string', default: '' },
    without: { type: 'string', multiple: true, default: [] },
    every: { type: 'boolean', default: false },
  },
});
const nameOf = ({ name, seed }: Search): string => `${name} ${seed}`;
const wanted = STANDING_SEARCHES.filter((search) => !values.without.includes(nameOf(search)));
const isFirst = (search: Search): boolean => nameOf(search) === values.first;

for (const search of [...wanted.filter(isFirst), ...wanted.filter((each) => !isFirst(each))]) {
  const [violation] = await search.run();
  if (violation === undefined) continue;
  process.stdout.write(`${JSON.stringify({ search: search.name, seed: search.seed, law: violation.law })}\n`);
  if (!values.every) break;
}
