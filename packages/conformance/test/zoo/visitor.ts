/* Tries every nth of a house, in a process of its own: what it sees goes to the process that asked. */
import { HOUSES, type Row, tryAnimal } from './zoo.ts';

/** What became of the animal with this number. */
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
