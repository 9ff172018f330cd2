import { CommanderError } from 'commander';
import { EXIT_CODE } from './exit-code.ts';
import { Failure } from './failure.ts';
import { failureCodeOf, lineOf, sectionOn } from './foreign-error.ts';
import { createProgram } from './program.ts';
import { jsonOf } from './terminal/json.ts';
import { failureOfOutput, handleFailedWrites } from './terminal/output.ts';
import { quietStartNotices } from './terminal/progress.ts';
import { visibleLine } from './terminal/visible.ts';
import { MISTAKES, UsageError } from './usage-error.ts';

/** How long a client that the configuration created may keep the process alive after the command has ended. */
const MAX_EXIT_DELAY_MS = 2_000;

/** Runs the command of this process, reports its failure, and sets the exit code. */
export async function runCommandLine(): Promise<void> {
  let isReported = false;
  handleFailedWrites();
  // The command has ended by then, so it does not set another exit code, and every write has ended.
  process.once('exit', () => {
    const failure = failureOfOutput();
    if (failure === undefined) return;
    process.exitCode = EXIT_CODE.failed;
    if (!isReported) process.stderr.write(`error: ${failure}\n`);
  });
  quietStartNotices();
  try {
    await createProgram().parseAsync();
  } catch (error) {
    isReported = true;
    report(error);
  }
  setTimeout(() => process.exit(), MAX_EXIT_DELAY_MS).unref();
}

function report(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT_CODE.done : EXIT_CODE.usage;
    // Commander has already printed the message, or the help that was requested.
    if (error.exitCode !== 0) printFailure('usage', error.message.replace(/^error: /, ''), MISTAKES);
  } else if (error instanceof UsageError || error instanceof Failure) {
    process.exitCode = error instanceof UsageError ? EXIT_CODE.usage : EXIT_CODE.failed;
    process.stderr.write(`error: ${visibleLine(error.message)}\n`);
    printFailure(error.code, error.message, error.help);
  } else {
    process.exitCode = EXIT_CODE.failed;
    // The message can contain a secret from a vendor's SDK: print the class and the stack frames only.
    const frames = error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^ +at /.test(line)) : [];
    process.stderr.write(`${[`error: unexpected: ${visibleLine(lineOf(error))}`, ...frames].join('\n')}\n`);
    printFailure(failureCodeOf(error), lineOf(error), sectionOn(error));
  }
}

/** With `--json`, prints the failure to standard output, where a script also reads results. */
function printFailure(code: string, message: string, help: string | undefined): void {
  const end = process.argv.indexOf('--');
  if (!process.argv.slice(0, end < 0 ? undefined : end).includes('--json')) return;
  const error = { code, message: visibleLine(message), help, exitCode: process.exitCode };
  process.stdout.write(`${jsonOf({ error })}\n`);
}
