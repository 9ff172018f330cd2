import { type Command, InvalidArgumentError } from 'commander';

/** What commands that run a suite are given. */
export interface CheckOptions {
  readonly exec?: string;
  readonly report?: string;
  readonly json?: string | true;
  readonly only?: readonly string[];
  readonly seed?: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly rounds?: number;
  readonly writers?: number;
  /** Of a program: false where it claims none. */
  readonly confidentiality?: boolean;
  readonly crossInstance?: boolean;
  readonly rotation?: boolean;
  readonly maxPayloadBytes?: number;
  readonly color: boolean;
  readonly quiet?: boolean;
}

const LARGEST_SEED = 2 ** 31 - 1;

/** The options that every suite takes. */
export function addCheckOptions(command: Command): Command {
  return command
    .option('--report <file.html>', 'write a report for people: one page that needs nothing else')
    .option(
      '--json [file.json]',
      'write the report as JSON; without a file to standard output, all else to standard error',
    )
    .option('--only <id>', 'try these requirements only; repeat it, or put commas between', ids)
    .option('--seed <n>', 'repeat a run: the seed is in every report and finding', wholeNumber(0, LARGEST_SEED))
    .option('--timeout <seconds>', 'longest time for one requirement', seconds)
    .option('--no-color', 'no colours; NO_COLOR=1 does the same')
    .option('--quiet', 'no progress and no table: findings and verdict only');
}

/** A whole number within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && value >= 0.1 && value <= 3_600) return value;
  throw new InvalidArgumentError('It must be a number of seconds from 0.1 to 3600.');
}

function ids(text: string, before: readonly string[] = []): readonly string[] {
  const given = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (given.length === 0) throw new InvalidArgumentError('It names no requirement.');
  return [...before, ...given];
}
