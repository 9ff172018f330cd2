import type { Command } from 'commander';

/** What every command that works on a ring takes. None of them takes a secret. */
export interface CommonOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly color: boolean;
}

export function addCommonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration: .js, .mjs or .ts (default: sealring.config.*, else the environment)')
    .option('--json', 'print JSON to standard output')
    .option('--no-color', 'no colours; NO_COLOR=1 does the same');
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
