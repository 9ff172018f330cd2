import { type Command, Option } from 'commander';
import { tableOf } from '../terminal/table.ts';
import { type Measured, measure } from './measure.ts';
import { numberIn } from './numbers.ts';
import { printJson } from './options.ts';

const EXAMPLE = `
Sealing and opening are synchronous: this is how long each keeps the event loop of a server busy, on a machine and with
state like these. No KMS and no store is asked: neither ever is for a token. How that compares with other codecs is in
docs/benchmarks.md, as ratios: they travel from machine to machine, microseconds do not.

Example:
  $ npx sealring bench --bytes 2048
`;

interface BenchCommandOptions {
  readonly bytes: number;
  readonly format: 'sealring' | 'python';
  readonly hedge?: boolean;
  readonly rounds: number;
  readonly json?: boolean;
}

export function addBenchCommand(program: Command): void {
  program
    .command('bench')
    .summary('how long a token keeps this machine busy')
    .description('Measures seal and unseal on this machine.')
    .option('--bytes <n>', 'bytes of state, 0 to 1 000 000', numberIn(0, 1_000_000, 'whole number'), 1_024)
    .addOption(
      new Option('--format <format>', 'tokens of this format').choices(['sealring', 'python']).default('sealring'),
    )
    .option('--hedge', 'with the option hedge of createKmsCodec')
    .option('--rounds <n>', 'times of each, 100 to 1 000 000', numberIn(100, 1_000_000, 'whole number'), 2_000)
    .option('--json', 'print JSON to standard output')
    .addHelpText('after', EXAMPLE)
    .action(async ({ json = false, hedge = false, ...options }: BenchCommandOptions) => {
      const measured = await measure({ hedge, ...options });
      if (json) printJson({ ...options, hedge, ...measured });
      else process.stdout.write(textOf(options, measured));
    });
}

function textOf({ bytes, format }: BenchCommandOptions, { tokenCharacters, seal, unseal }: Measured): string {
  const rows = Object.entries({ seal, unseal }).map(([operation, { median, p99 }]) => [
    operation,
    median.toFixed(1),
    p99.toFixed(1),
  ]);
  return [
    `${bytes} bytes of state, tokens of ${tokenCharacters} characters (${format})`,
    '',
    ...tableOf([['µs', 'median', '99 of 100'], ...rows]),
    '',
  ].join('\n');
}
