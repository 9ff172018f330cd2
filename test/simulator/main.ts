import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { numberFrom } from '../support/number-option.ts';
import { PLAYS } from './adversary/plays.ts';
import { ADVERSARIES } from './adversary/powers.ts';
import { searchWithAdversaries } from './adversary-command.ts';
import { FAULT_CLASSES } from './faults.ts';
import { searchMutants } from './mutant-search.ts';
import { MUTANTS } from './mutants.ts';
import { picture } from './picture.ts';
import { type RunReport, simulate } from './simulate.ts';
import { HOUR, type WorldOptions } from './world.ts';

const LARGE_FLEET = 200;
/** Powers of a random attacker, and plays in fixed steps. */
const HOSTILE: readonly string[] = [...Object.keys(ADVERSARIES), ...Object.keys(PLAYS)];

const values = read();
process.exitCode = await chosen();

/** The options of the command line. Ends the process with 2 if they are wrong, with 0 after `--help`. */
function read(): Values {
  const namesOf =
    (what: string, known: readonly string[]) =>
    (text: string): readonly string[] => {
      const names = text === 'all' ? known : text.split(',');
      for (const name of names) {
        if (!known.includes(name)) throw new InvalidArgumentError(`There is no ${what} ${JSON.stringify(name)}.`);
      }
      return names;
    };
  const classes = namesOf('class', Object.keys(FAULT_CLASSES));
  const seedsOf = (text: string): readonly [number, number] => {
    const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) ?? [];
    if (from === undefined || Number(from) > Number(to)) throw new InvalidArgumentError('It must be two numbers, A-B.');
    return [Number(from), Number(to)];
  };
  const command = new Command()
    .name('npm run simulate --')
    .description('Runs the real keeper, schedule and codec of a whole fleet on a virtual clock.')
    .option('--members <n>', 'processes in the fleet, 1 to 100 000', numberFrom(1, 100_000, 'whole number'), 20)
    .option('--days <n>', 'days of virtual time, 1 to 366', numberFrom(1, 366), 7)
    .option('--seed <n>', 'everything random follows from it', numberFrom(0, 2 ** 31, 'whole number'), 1)
    .option('--faults <classes>', 'classes of faults with commas between them, or "all"', classes, ['quiet'])
    .option('--loss <share>', 'share of lost calls, 0 to 0.5', numberFrom(0, 0.5), 0.02)
    .option(
      '--skew <seconds>',
      "largest difference between two clocks, 0 to 3 600; also the ring's clockSkew",
      numberFrom(0, 3_600),
      600,
    )
    .option(
      '--quantum <ms>',
      `events let loose together; 20 up to ${LARGE_FLEET} members, else 100`,
      numberFrom(1, 10_000),
    )
    .option('--out <folder>', 'where report.json and report.svg go', '.cache/simulation')
    .option('--trace', 'tell everything that happens', false)
    .option(
      '--adversary <names>',
      'episodes with attackers instead of days, or "all"; fleets of 5 up to --members',
      namesOf('adversary', HOSTILE),
    )
    .option('--seeds <A-B>', 'seeds of the episodes', seedsOf, [1, 10])
    .option(
      '--mutants [names]',
      'take away guards of core, one at a time, and record which search notices; all, or some',
      namesOf(
        'mutant',
        MUTANTS.map(({ name }) => name),
      ),
    )
    .addHelpText(
      'after',
      `\nClasses of faults: ${Object.keys(FAULT_CLASSES).join(', ')}\nAdversaries: ${HOSTILE.join(', ')}\n\nExample:\n  npm run simulate -- --faults store-flush,crash --seed 7`,
    )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  return command.parse().opts<Values>();
}

interface Values {
  readonly members: number;
  readonly days: number;
  readonly seed: number;
  readonly faults: readonly string[];
  readonly loss: number;
  readonly skew: number;
  readonly quantum?: number;
  readonly out: string;
  readonly trace: boolean;
  readonly adversary?: readonly string[];
  readonly seeds: readonly [number, number];
  readonly mutants?: readonly string[] | true;
}

async function chosen(): Promise<number> {
  const { adversary, mutants, seeds, members, trace } = values;
  if (mutants !== undefined) {
    const names = mutants === true ? [] : mutants;
    return (await searchMutants(names, (line) => process.stdout.write(`${line}\n`))) ? 0 : 1;
  }
  if (adversary === undefined) return run();
  return (await searchWithAdversaries({ adversaries: adversary, seeds, mostMembers: members, trace })) ? 0 : 1;
}

async function run(): Promise<number> {
  const { members, days, seed, loss, skew, faults, quantum = members <= LARGE_FLEET ? 20 : 100 } = values;
  const options: WorldOptions = { members, days, seed, loss, clockSkewSeconds: skew, quantumMs: quantum };
  const started = Date.now();
  let told = started;
  let isWanted = true;
  // The results so far are not lost.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isWanted = false;
      process.stderr.write('  ending after this hour; once more to end at once\n');
    });
  }
  const report = await simulate(options, faults, {
    onHour: ({ hour, failed }) => {
      if (Date.now() - told >= 2_000) {
        told = Date.now();
        process.stderr.write(`  ${hour} of ${options.days * 24} hours, ${failed} failed\n`);
      }
      return isWanted;
    },
    ...(values.trace && { trace: (atMs: number, line: string) => process.stdout.write(`${hours(atMs)}  ${line}\n`) }),
  });
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, 'report.json'), `${JSON.stringify(report, undefined, 2)}\n`);
  writeFileSync(join(values.out, 'report.svg'), picture(report));
  process.stdout.write(summary(report, values.out));
  return report.violationCount === 0 ? 0 : 1;
}

function summary(report: RunReport, out: string): string {
  const { options, tokens, calls, ring, propagationSeconds, violations } = report;
  const slowest = Math.max(0, ...propagationSeconds);
  const repeat =
    `npm run simulate -- --members ${options.members} --days ${options.days} --seed ${options.seed} ` +
    `--loss ${options.loss} --skew ${options.clockSkewSeconds} --quantum ${options.quantumMs} --faults ${options.faults.join(',')}`;
  return [
    `${options.members} members, ${Number((report.hours.length / 24).toFixed(2))} days, seed ${options.seed}; faults: ${options.faults.join(', ')}`,
    `tokens      ${tokens.sealed} sealed, ${tokens.opened} unsealed, ${tokens.failed} failed`,
    `excused     ${tokens.excusedSeals} seals, ${tokens.excusedOpens} unseals, ${tokens.excusedAtOnce} unseals with a key that was just made active at once`,
    `KMS         ${calls.kms} calls, ${calls.kmsPerMemberDay.toFixed(1)} per member per day${formula(calls.expected?.kms)}; ${calls.generated} data keys made`,
    `store       ${calls.store} calls, ${calls.storePerMemberDay.toFixed(1)} per member per day${formula(calls.expected?.store)}`,
    `ring        ${ring.writes} writes, ${ring.published} keys published, ${ring.keys} left, never more than ${ring.mostKeys}`,
    `propagation ${propagationSeconds.length} keys, the slowest ${slowest} s to the last member`,
    `written     ${join(out, 'report.json')}, ${join(out, 'report.svg')}`,
    ...violations.map(({ atMs, law, detail }) => `FAILED      ${hours(atMs)}  ${law}: ${detail}`),
    ...(violations.length === 0 ? [] : [`repeat with ${repeat} --trace`]),
    '',
  ].join('\n');
}

function formula(expected: number | undefined): string {
  return expected === undefined ? '' : ` (by the formula ${expected.toFixed(1)})`;
}

function hours(ms: number): string {
  return `${(ms / HOUR).toFixed(3)} h`;
}
