import { type Command, Option } from 'commander';
import { type BenchReport, measure } from '../bench/measure.ts';
import { tableOf } from '../table.ts';
import { numberIn } from './numbers.ts';
import { printJson } from './options.ts';

const EXAMPLE = `
Seals and unseals on this machine, in turns with AES-256-GCM of node:crypto under one fixed key, random nonce and base64url
included. A ratio travels from machine to machine, microseconds do not. No KMS and no store is asked: neither ever is for a token.

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
    .summary('what a token costs beside the bare cipher, as ratios')
    .description('Measures seal and unseal beside the bare cipher on this machine.')
    .option('--bytes <n>', 'bytes of state, 0 to 1 000 000', numberIn(0, 1_000_000, 'whole number'), 1_024)
    .addOption(
      new Option('--format <format>', 'tokens of this format').choices(['sealring', 'python']).default('sealring'),
    )
    .option('--hedge', 'with the option hedge of createKmsCodec')
    .option('--rounds <n>', 'turns of each, 5 to 10 000', numberIn(5, 10_000, 'whole number'), 101)
    .option('--json', 'print JSON to standard output')
    .addHelpText('after', EXAMPLE)
    .action(async ({ json = false, hedge = false, ...options }: BenchCommandOptions) => {
      const report = await measure({ hedge, ...options });
      if (json) printJson({ ...options, hedge, ...report });
      else process.stdout.write(textOf(options, report));
    });
}

function textOf({ bytes, format }: BenchCommandOptions, { tokenCharacters, results }: BenchReport): string {
  const rows = results.map(({ operation, times, microseconds }) => [
    operation,
    `${times.median.toFixed(2)} (${times.low.toFixed(2)} to ${times.high.toFixed(2)})`,
    microseconds.sealring.toFixed(1),
    microseconds.bare.toFixed(1),
  ]);
  const head = ['', 'times the bare cipher', 'µs', 'µs bare'];
  return [
    `${bytes} bytes of state, tokens of ${tokenCharacters} characters (${format})`,
    '',
    ...tableOf([head, ...rows]),
    '',
  ].join('\n');
}
