#!/usr/bin/env node
import { CommanderError } from 'commander';
import { EXIT_CODE } from './exit-code.ts';
import { Failure } from './failure.ts';
import { lineOf } from './foreign-error.ts';
import { createProgram } from './program.ts';
import { visibleLine } from './terminal/visible.ts';
import { UsageError } from './usage-error.ts';

/** A client of somebody's configuration may keep the process alive; what was said is long written by then. */
const LONGEST_END_MS = 2_000;

// A reader that has seen enough, as in `status | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof UsageError || error instanceof Failure) {
    process.stderr.write(`error: ${visibleLine(error.message)}\n`);
    process.exitCode = error instanceof UsageError ? EXIT_CODE.usage : EXIT_CODE.failed;
  } else if (error instanceof CommanderError) {
    // It has printed what is wrong, or the help that was asked for.
    process.exitCode = error.exitCode === 0 ? EXIT_CODE.done : EXIT_CODE.usage;
  } else {
    // Not its text, which may hold a secret of somebody's SDK: what it is, and where.
    const frames = error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^ +at /.test(line)) : [];
    process.stderr.write(`${[`error: unexpected: ${visibleLine(lineOf(error))}`, ...frames].join('\n')}\n`);
    process.exitCode = EXIT_CODE.failed;
  }
}
setTimeout(() => process.exit(), LONGEST_END_MS).unref();
