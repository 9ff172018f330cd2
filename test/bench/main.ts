import { cpus } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { numberFrom } from '../support/number-option.ts';
import { pythonVenv } from '../support/python-venv.ts';
import { judgeBoundary, measureBoundary } from './boundary.ts';
import { CONTENDERS } from './contenders/index.ts';
import { judgeFleetCosts, measureFleetCosts } from './fleet-costs.ts';
import { judgeGrowth, measureGrowth } from './growth.ts';
import { judgeInstructions, measureInstructions } from './instructions.ts';
import { judgeSteadiness, measureSteadiness } from './steadiness.ts';
import { type Cost, FLOORS, measureTokenPath, OURS } from './token-path.ts';
import type { Verdict } from './verdict.ts';

/** Bytes of a typical claims envelope with a small state. */
const HEADLINE_BYTES = 358;
const SIZES = [64, HEADLINE_BYTES, 4_096, 49_152];
const PYTHON = ['mcp==2.3.0'];

/** How many times a floor ours may cost. */
const LIMITS: Readonly<Record<string, Readonly<Record<Cost['operation'], number>>>> = {
  'bare cipher': { seal: 1.25, unseal: 1.15 },
  'plain codec': { seal: 0.75, unseal: 1.1 },
};
/** How many times ours a peer costs at least. */
const LEADS: Readonly<Record<string, number>> = {
  'TypeScript SDK': 10,
  jose: 15,
  '@hapi/iron': 15,
  'iron-webcrypto': 15,
  'AWS Encryption SDK': 30,
};

interface Options {
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly turn: number;
  readonly only?: readonly string[];
  readonly python: boolean;
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

const wrong = ({ exitCode }: { readonly exitCode: number }): never => process.exit(exitCode === 0 ? 0 : 2);
const program = new Command()
  .name('npm run bench --')
  .description('Ratios within one run, and what they must be. Exit code 1: a limit is not met.')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run bench -- --only jose --sizes 358 --rounds 60\n  npm run bench -- growth',
  )
  .exitOverride(wrong);

program
  .command('token-path', { isDefault: true })
  .description('seal and unseal beside what a user would pick instead, and beside what the cipher itself costs')
  .option('--sizes <bytes>', 'payloads, with commas between them', listOf(wholeNumber(64, 1_048_576)), SIZES)
  .option('--rounds <n>', 'turns that everybody gets at everything, 6 to 1 000', wholeNumber(6, 1_000), 30)
  .option('--turn <ms>', 'how long a turn goes on, 1 to 1 000', wholeNumber(1, 1_000), 20)
  .option('--only <names>', 'these contenders beside ours and the floors', listOf(contender))
  .option('--no-python', 'without the codec of the MCP Python SDK')
  .option('--json', 'the numbers as JSON', false)
  .exitOverride(wrong)
  .action(async (options: Options) => {
    process.exitCode = await run(options);
  });

const tokens = wholeNumber(1_000, 1_000_000_000);
part(
  'boundary',
  'a flow over a socket with the boundary, beside the same flow without it',
  measureBoundary,
  judgeBoundary,
).option('--turns <n>', 'turns of 25 flows that either gets, 6 to 10 000', wholeNumber(6, 10_000), 200);
part('fleet-costs', 'calls of the KMS and the store, a cold start, a herd', measureFleetCosts, judgeFleetCosts).option(
  '--tokens <n>',
  'tokens that must not cost a call',
  tokens,
  1e6,
);
part('growth', 'keys, tokens of other processes, the heap', measureGrowth, judgeGrowth).option(
  '--tokens <n>',
  'tokens over which the heap must not grow',
  tokens,
  1e6,
);
part(
  'steadiness',
  'a server under load while keys, KMS and store are in trouble; about a minute and a half a round',
  measureSteadiness,
  judgeSteadiness,
)
  .option('--rounds <n>', 'times that each trouble comes, 6 to 20', wholeNumber(6, 20), 6)
  .option('--phase-seconds <n>', 'how long it goes on, 4 to 60', wholeNumber(4, 60), 10)
  .option('--warm-up-seconds <n>', 'load before anything is timed, 1 to 60', wholeNumber(1, 60), 10);
part(
  'instructions',
  'instructions of a seal and an unseal, which noise cannot reach',
  measureInstructions,
  judgeInstructions,
);

await program.parseAsync();

/** A command that measures, and prints the verdicts, or all of it. Its options are those of the measurement. */
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

function lineOf({ law, limit, measured, met }: Verdict): string {
  return `${met ? '✓' : '✗'} ${law}: ${Number(measured.toFixed(3))} (at most ${limit})`;
}

type Progress = (done: number) => void;

function progressOnErr(): Progress {
  let shown = '';
  return (done) => {
    const percent = `${Math.floor(done * 20) * 5} %`;
    if (percent !== shown) process.stderr.write(`measuring: ${percent}\n`);
    shown = percent;
  };
}

async function run({ sizes, rounds, turn, only, python, json }: Options): Promise<number> {
  const wanted = only === undefined ? undefined : new Set([OURS, ...FLOORS, ...only]);
  const contenders = Object.keys(CONTENDERS).filter((name) => wanted?.has(name) ?? true);
  const headlineBytes = sizes.includes(HEADLINE_BYTES) ? HEADLINE_BYTES : (sizes[0] ?? HEADLINE_BYTES);
  const costs = await measureTokenPath({
    contenders,
    python: python ? `${await pythonVenv('python-sdk', PYTHON)}/python` : undefined,
    sizes,
    rounds,
    turnMilliseconds: turn,
    headlineBytes,
    progress: progressOnErr(),
  });
  const verdicts = judge(costs.filter(({ bytes }) => bytes === headlineBytes));
  const machine = `${cpus()[0]?.model ?? 'unknown processor'} × ${cpus().length}, ${process.platform} ${process.arch}`;
  const report = { machine, node: process.version, rounds, turnMilliseconds: turn, headlineBytes, costs, verdicts };
  process.stdout.write(json ? `${JSON.stringify(report, undefined, 2)}\n` : shownAs(report));
  return verdicts.every(({ met }) => met) ? 0 : 1;
}

interface Finding {
  readonly law: string;
  readonly found: string;
  readonly met: boolean;
}

function judge(costs: readonly Cost[]): readonly Finding[] {
  return costs.flatMap((cost): Finding[] => {
    const { contender: name, operation, timesOurs, timesOursAtP50, p999 } = cost;
    const limit = LIMITS[name]?.[operation];
    if (limit !== undefined) {
      // The number as it is printed decides.
      const times = (1 / timesOurs.median).toFixed(2);
      return [{ law: `${operation} at most ${limit} × the ${name}`, found: `${times} ×`, met: Number(times) <= limit }];
    }
    const lead = LEADS[name];
    if (lead === undefined) return [];
    const times = timesOursAtP50.median.toFixed(1);
    const ours = costs.find((other) => other.contender === OURS && other.operation === operation)?.p999;
    return [
      {
        law: `${operation} at least ${lead} × ahead of ${name} at p50`,
        found: `${times} ×`,
        met: Number(times) >= lead,
      },
      // Where too few were timed, the slowest of a hundred stands in, and is the smaller number.
      {
        law: `${operation} ahead of ${name} at p99.9`,
        found: `${ours?.toFixed(1)} µs against ${(p999 ?? cost.p99).toFixed(1)} µs`,
        met: ours !== undefined && ours < (p999 ?? cost.p99),
      },
    ];
  });
}

function shownAs(report: {
  readonly machine: string;
  readonly node: string;
  readonly rounds: number;
  readonly costs: readonly Cost[];
  readonly verdicts: readonly Finding[];
}): string {
  const lines = ['', `${report.machine}, Node ${report.node}, ${report.rounds} rounds`];
  for (const bytes of new Set(report.costs.map((cost) => cost.bytes))) {
    for (const operation of ['seal', 'unseal'] as const) {
      lines.push(
        '',
        `${operation}, ${bytes} bytes${' '.repeat(9)}× ours (95 %)           p50      p99    p99.9  GC      token  memory`,
      );
      for (const cost of report.costs.filter((one) => one.bytes === bytes && one.operation === operation)) {
        lines.push(row(cost));
      }
    }
  }
  lines.push(
    '',
    ...report.verdicts.map(({ law, found, met }) => `${met ? 'met    ' : 'NOT MET'} ${law}: ${found}`),
    '',
  );
  return lines.join('\n');
}

function row({ contender: name, timesOurs, p50, p99, p999, collecting, tokenLength, memory }: Cost): string {
  const times = `${timesOurs.median.toFixed(2)} (${timesOurs.low.toFixed(2)}–${timesOurs.high.toFixed(2)})`;
  const micros = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(1)).padStart(9);
  const bytes = memory === undefined ? '' : `${Math.round(memory.heap)} + ${Math.round(memory.external)} B`;
  return `${name.padEnd(24)} ${times.padEnd(20)}${micros(p50)}${micros(p99)}${micros(p999)} ${collecting.toFixed(2).padStart(6)} ${String(tokenLength).padStart(6)}  ${bytes}`;
}
