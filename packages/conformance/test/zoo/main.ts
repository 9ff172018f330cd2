import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError, Option } from 'commander';
import { matrixPicture, matrixText } from './matrix.ts';
import type { Visited } from './visitor.ts';
import { HOUSES, type House, type Row } from './zoo.ts';

const { suite, seeds, pictures } = new Command()
  .name('npm run zoo --')
  .description('Runs the conformance kit on broken targets, which it must catch, and on sound ones, which must pass.')
  .addOption(new Option('--suite <name>', 'run only this suite').choices(HOUSES.map(({ kind }) => kind)))
  .option('--seeds <n>', 'number of runs of the sound targets, each with another seed', wholeNumber, 1)
  .option('--pictures <folder>', 'folder for the pictures of the matrices, such as docs/images')
  .addHelpText('after', '\nExample:\n  npm run zoo -- --suite codec --pictures docs/images')
  .parse()
  .opts<{ suite?: string; seeds: number; pictures?: string }>();

/** Number of processes. Codecs need a processor and are timed; the others mostly wait. */
const VISITORS: Readonly<Record<House['kind'], number>> = {
  codec: 2,
  'key-wrapper': 4,
  'ring-store': 12,
  'single-use': 4,
};
const VISITOR = fileURLToPath(new URL('visitor.ts', import.meta.url));

let isWrong = false;
for (const house of HOUSES.filter(({ kind }) => suite === undefined || kind === suite)) {
  const rows = await visit(house);
  process.stdout.write(`${matrixText(house, rows)}\n\n`);
  const broken = rows.filter(({ animal }) => animal.caughtBy !== undefined);
  const sound = rows.filter(({ animal }) => animal.caughtBy === undefined);
  const right = (some: readonly Row[]): string =>
    `${some.filter(({ wrong }) => wrong.length === 0).length} of ${some.length}`;
  process.stdout.write(
    `${right(broken)} broken ones are caught by the named requirement, ` +
      `${right(sound)} sound ones pass with ${seeds} ${seeds === 1 ? 'seed' : 'seeds'}\n\n`,
  );
  for (const { animal, wrong } of rows) {
    for (const what of wrong) process.stdout.write(`WRONG ${animal.name}: ${what}\n`);
    isWrong ||= wrong.length > 0;
  }
  if (pictures !== undefined) {
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, `zoo-${house.kind}.svg`), matrixPicture(house, rows));
  }
}
process.exitCode = isWrong ? 1 : 0;

/** Checks all targets of one kind in several processes, so that they do not affect each other. */
async function visit({ kind, animals }: House): Promise<readonly Row[]> {
  const rows: (Row | undefined)[] = animals.map(() => undefined);
  let done = 0;
  const walks = Array.from({ length: VISITORS[kind] }, async (_, visitor) => {
    const child = fork(VISITOR, [kind, String(visitor), String(VISITORS[kind]), String(seeds)]);
    child.on('message', (message) => {
      const { index, statuses, wrong } = message as Visited;
      const animal = animals[index];
      if (animal === undefined) throw new Error(`there is no animal ${index}`);
      rows[index] = { animal, statuses: new Map(statuses), wrong };
      process.stderr.write(`${kind} ${++done} of ${animals.length}: ${animal.name}\n`);
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`a process that checked the ${kind}s ended with ${String(code)}`);
  });
  await Promise.all(walks);
  return rows.map((row, index) => row ?? missing(animals[index]?.name));
}

function missing(name: string | undefined): never {
  throw new Error(`no result for ${name}`);
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > 100_000) {
    throw new InvalidArgumentError('It must be a whole number from 1 to 100000.');
  }
  return number;
}
