import { type Command, Option } from 'commander';
import { withProgress } from '../terminal/progress.ts';
import { tableOf } from '../terminal/table.ts';
import { UsageError } from '../usage-error.ts';
import { MAX_PYTHON_BYTES, type Measurement, measure } from './measure.ts';
import { numberIn } from './numbers.ts';
import { printJson } from './options.ts';

const EXAMPLE = `
seal and unseal are synchronous. The times show how long each call blocks the
event loop of a server on a machine like this one. Neither calls the KMS or the
store. docs/benchmarks.md compares them with other codecs.

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
    .summary('measure seal and unseal on this machine')
    .description('Measures how long seal and unseal take on this machine.')
    .option('--bytes <n>', 'bytes of state, 0 to 1 000 000', numberIn(0, 1_000_000, 'whole number'), 1_024)
    .addOption(new Option('--format <format>', 'token format').choices(['sealring', 'python']).default('sealring'))
    .option('--hedge', 'use the hedge option of createKmsCodec')
    .option('--rounds <n>', 'calls per operation, 100 to 1 000 000', numberIn(100, 1_000_000, 'whole number'), 2_000)
    .option('--json', 'print JSON, even on failure')
    .addHelpText('after', EXAMPLE)
    .action(async ({ json = false, hedge = false, ...options }: BenchCommandOptions) => {
      if (options.format === 'python' && options.bytes > MAX_PYTHON_BYTES) {
        throw new UsageError(`--bytes ${options.bytes} is too large for --format python: at most ${MAX_PYTHON_BYTES}`);
      }
      const measured = await withProgress('measuring', () => measure({ hedge, ...options }));
      if (json) printJson({ ...options, hedge, ...measured });
      else process.stdout.write(textOf(options, measured));
    });
}

function textOf({ bytes, format }: BenchCommandOptions, { tokenCharacters, seal, unseal }: Measurement): string {
  const rows = Object.entries({ seal, unseal }).map(([operation, { median, p99 }]) => [
    operation,
    median.toFixed(1),
    p99.toFixed(1),
  ]);
  return [
    `${bytes} bytes of state, tokens of ${tokenCharacters} characters (${format})`,
    '',
    ...tableOf([['µs', 'median', 'p99'], ...rows]),
    '',
  ].join('\n');
}
