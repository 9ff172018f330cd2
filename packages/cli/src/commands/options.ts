import type { Command } from 'commander';

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
    .option('--json', 'print JSON, also for a failure')
    .option('--no-color', 'print no colours, like NO_COLOR=1');
}

/** Prints a result to standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
