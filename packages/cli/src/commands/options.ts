import { type Command, Option } from 'commander';
import { jsonOf } from '../terminal/json.ts';
import { UsageError } from '../usage-error.ts';
import { numberIn } from './numbers.ts';

/** The options of every command that works on a ring. No option takes a secret. */
export interface CommonOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly color: boolean;
}

/** Adds the common options to a command. */
export function addCommonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file: .js, .mjs, .ts or .mts')
    .option('--json', 'print JSON, even on failure')
    .option('--no-color', 'print without colours, as with NO_COLOR=1');
}

/** The option `--port`, for a command that runs a server. */
export function portOption(): Option {
  return new Option('--port <number>', 'port').argParser(numberIn(0, 65_535, 'whole number')).default(0, 'a free port');
}

/** Parses `--host`. Node.js takes an empty address as every address of the machine. @throws {UsageError} */
export function hostAddress(text: string): string {
  if (text === '') throw new UsageError('--host "" is not an address: name one, such as 127.0.0.1 or 0.0.0.0');
  return text;
}

/** Prints a result to standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonOf(value, 2)}\n`);
}
