#!/usr/bin/env node
import { CommanderError } from 'commander';
import { visibleLine } from '../reports/record.ts';
import { EXIT_CODE, UsageError } from './messages.ts';
import { createProgram } from './program.ts';

// The reader closed the pipe, as in `list | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`error: ${visibleLine(error.message)}\n`);
    process.exitCode = EXIT_CODE.usage;
  } else if (error instanceof CommanderError) {
    // Commander has printed the error or the help.
    process.exitCode = error.exitCode === 0 ? EXIT_CODE.passed : EXIT_CODE.usage;
  } else {
    throw error;
  }
}
