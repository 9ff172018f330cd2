/* Checks every nth target of a list in a separate process, and sends the results to the parent process. */
import { HOUSES, type Row, tryAnimal } from './zoo.ts';

/** The result of the target with this number. */
export interface Visited extends Pick<Row, 'wrong'> {
  readonly index: number;
  readonly statuses: readonly (readonly [string, 'pass' | 'fail' | 'warn' | 'not-applicable'])[];
}

const [kind, visitor, visitors, seeds] = process.argv.slice(2);
const animals = HOUSES.find((house) => house.kind === kind)?.animals ?? [];
for (const [index, animal] of animals.entries()) {
  if (index % Number(visitors) !== Number(visitor)) continue;
  const times = animal.caughtBy === undefined ? Number(seeds) : 1;
  let row = await tryAnimal(animal, 0);
  for (let seed = 1; seed < times && row.wrong.length === 0; seed++) row = await tryAnimal(animal, seed);
  const visited: Visited = { index, statuses: [...row.statuses], wrong: row.wrong };
  process.send?.(visited);
}
process.disconnect();
