import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { numberFrom } from '../support/number-option.ts';
import { judgeBoundary, measureBoundary } from './boundary.ts';
import { coldStartTable } from './cold-start.ts';
import { CONTENDERS } from './contenders/index.ts';
import { judgeDigest, measureDigest } from './digest.ts';
import { judgeFleetCosts, measureFleetCosts } from './fleet-costs.ts';
import { judgeGrowth, measureGrowth } from './growth.ts';
import { importTable, measureImports } from './imports.ts';
import { judgeInstructions, measureInstructions } from './instructions.ts';
import { machine } from './report/machine.ts';
import { PART_NAMES, type PartName, type Progress } from './report/parts.ts';
import { measuredShown } from './report/words.ts';
import { measureAll, writeReport } from './report/write.ts';
import { judgeSteadiness, measureSteadiness } from './steadiness.ts';
import { judgeTokenPath, reportTokenPath, SIZES, shownTokenPath, type TokenPathChoice } from './token-path-report.ts';
import type { Verdict } from './verdict.ts';

interface Options extends TokenPathChoice {
  readonly json: boolean;
}

const wholeNumber = (min: number, max: number) => numberFrom(min, max, 'whole number');
const listOf =
  <T>(read: (text: string) => T) =>
  (text: string): readonly T[] =>
    text.split(',').map(read);
const contender = (name: string): string => {
  if (Object.hasOwn(CONTENDERS, name)) return name;
  throw new InvalidArgumentError(`Known are ${Object.keys(CONTENDERS).join(', ')}.`);
};

const partName = (name: string): PartName => {
  const known = PART_NAMES.find((one) => one === name);
  if (known !== undefined) return known;
  throw new InvalidArgumentError(`Known are ${PART_NAMES.join(', ')}.`);
};

const wrong = ({ exitCode }: { readonly exitCode: number }): never => process.exit(exitCode === 0 ? 0 : 2);
const program = new Command()
  .name('npm run bench --')
  .description('Ratios within one run, and what they must be. Exit code 1: a limit is not met.')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run bench -- --only jose --sizes 358 --rounds 60\n  npm run bench -- growth\n  npm run bench -- all',
  )
  .exitOverride(wrong);

program
  .command('token-path', { isDefault: true })
  .description('seal and unseal compared with alternatives, and with the bare cipher')
  .option('--sizes <bytes>', 'payloads, with commas between them', listOf(wholeNumber(64, 1_048_576)), SIZES)
  .option('--rounds <n>', 'turns of each contender at each operation, 6 to 1 000', wholeNumber(6, 1_000), 30)
  .option('--turn <ms>', 'length of a turn, 1 to 1 000', wholeNumber(1, 1_000), 20)
  .option('--only <names>', 'these contenders beside Sealring and the floors', listOf(contender))
  .option('--no-python', 'without the codec of the MCP Python SDK')
  .option('--json', 'the numbers as JSON', false)
  .exitOverride(wrong)
  .action(async (options: Options) => {
    process.exitCode = await run(options);
  });

const tokens = wholeNumber(1_000, 1_000_000_000);
part(
  'boundary',
  'a flow over a socket with the boundary, and calls without a state, compared with the same without it',
  measureBoundary,
  judgeBoundary,
).option('--turns <n>', 'turns of five flows for each side, 6 to 10 000', wholeNumber(6, 10_000), 1_000);
part('digest', 'the digest of 4 MiB of arguments, compared with JSON.parse', measureDigest, judgeDigest).option(
  '--turns <n>',
  'turns of each shape, 6 to 1 000',
  wholeNumber(6, 1_000),
  25,
);
part(
  'fleet-costs',
  'calls to the KMS and the store, a cold start, many starts at once',
  measureFleetCosts,
  judgeFleetCosts,
).option('--tokens <n>', 'tokens that must not cause a call', tokens, 1e6);
part('growth', 'keys, tokens of other processes, the heap', measureGrowth, judgeGrowth).option(
  '--tokens <n>',
  'tokens over which the heap must not grow',
  tokens,
  1e6,
);
part(
  'steadiness',
  'a server under load while keys, KMS and store fail; about a minute and a half per round',
  measureSteadiness,
  judgeSteadiness,
)
  .option('--rounds <n>', 'rounds of each disturbance, 6 to 20', wholeNumber(6, 20), 6)
  .option('--phase-seconds <n>', 'length of a disturbance, 4 to 60', wholeNumber(4, 60), 10)
  .option('--warm-up-seconds <n>', 'load before the timing, 1 to 60', wholeNumber(1, 60), 10);
part('instructions', 'instructions of a seal and an unseal, without noise', measureInstructions, judgeInstructions);

const PACKAGING = fileURLToPath(new URL('../../docs/guides/packaging.md', import.meta.url));
const TABLE = /(<!-- imports: npm run bench -- imports --write -->\n)[^]*?(<!-- \/imports -->)/;
program
  .command('imports')
  .description('costs of an installation, an import and a cold start, compared with vendor SDKs')
  .option('--rounds <n>', 'imports and cold starts of each, 6 to 1 000', wholeNumber(6, 1_000), 25)
  .option('--write', 'write the tables into docs/guides/packaging.md', false)
  .exitOverride(wrong)
  .action(async ({ rounds, write }: { readonly rounds: number; readonly write: boolean }) => {
    const { imports, coldStart } = await measureImports({ rounds }, progressOnErr());
    const table = `${importTable(imports)}\n\n${coldStartTable(coldStart)}`;
    process.stdout.write(`${machine()}, Node ${process.version}, ${rounds} rounds\n${table}\n`);
    if (!write) return;
    const text = readFileSync(PACKAGING, 'utf8');
    writeFileSync(
      PACKAGING,
      text.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${table}\n\n${end}`),
    );
  });

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
program
  .command('all')
  .description('every part, one after another, and the page and pictures of all results so far')
  .option('--only <parts>', 'these parts; the others stay as they are', listOf(partName), PART_NAMES)
  .option('--docs <folder>', 'where benchmarks.md, benchmarks/ and images/ are written', DOCS)
  .exitOverride(wrong)
  .action(async ({ only, docs }: Place & { readonly only: readonly PartName[] }) => {
    const failed = await measureAll(only, docs, progressOnErr);
    const met = await tell(docs, only);
    process.exitCode = met && failed.length === 0 ? 0 : 1;
  });
program
  .command('report')
  .description('the page and pictures, from the existing results')
  .option('--docs <folder>', 'where they are, and where benchmarks/ is', DOCS)
  .exitOverride(wrong)
  .action(async ({ docs }: Place) => {
    process.exitCode = (await tell(docs, PART_NAMES)) ? 0 : 1;
  });

await program.parseAsync();

/** A command that measures, and prints the verdicts or everything. It takes the options of the measurement. */
function part<Report extends object>(
  name: string,
  description: string,
  measure: (options: never, progress: Progress) => Promise<Report>,
  verdictsOn: (report: Report) => readonly Verdict[],
): Command {
  return program
    .command(name)
    .description(description)
    .option('--json', 'the numbers as JSON', false)
    .exitOverride(wrong)
    .action(async ({ json, ...options }: { readonly json: boolean }) => {
      const report = await measure(options as never, progressOnErr());
      const verdicts = verdictsOn(report);
      if (json) process.stdout.write(`${JSON.stringify({ ...report, verdicts }, undefined, 2)}\n`);
      else for (const verdict of verdicts) process.stdout.write(`${lineOf(verdict)}\n`);
      process.exitCode = verdicts.every(({ met }) => met) ? 0 : 1;
    });
}

function lineOf(verdict: Verdict): string {
  return `${verdict.met ? '✓' : '✗'} ${verdict.law}: ${measuredShown(verdict)} (limit ${verdict.limit})`;
}

function progressOnErr(): Progress {
  let shown = '';
  return (done) => {
    const percent = `${Math.floor(done * 20) * 5} %`;
    if (percent !== shown) process.stderr.write(`measuring: ${percent}\n`);
    shown = percent;
  };
}

async function run({ json, ...choice }: Options): Promise<number> {
  const report = await reportTokenPath(choice, progressOnErr());
  const verdicts = judgeTokenPath(report);
  const [where, node] = [machine(), process.version];
  const shown = json
    ? `${JSON.stringify({ machine: where, node, ...report, verdicts }, undefined, 2)}\n`
    : `\n${where}, Node ${node}, ${choice.rounds} rounds\n${shownTokenPath(report)}${verdicts.map(lineOf).join('\n')}\n`;
  process.stdout.write(shown);
  return verdicts.every(({ met }) => met) ? 0 : 1;
}

interface Place {
  readonly docs: string;
}

/** Writes the page, and prints the limits that are not met in the requested parts. */
async function tell(docs: string, parts: readonly PartName[]): Promise<boolean> {
  const notMet = await writeReport(docs, parts);
  process.stdout.write(`${join(docs, 'benchmarks.md')}\n${notMet.map((line) => `✗ ${line}\n`).join('')}`);
  return notMet.length === 0;
}
