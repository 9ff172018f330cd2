import { Failure } from '../failure.ts';
import { isServer } from './until-stopped.ts';

const closed = new AbortController();
let failedWith: string | undefined;

/** Aborted once standard output can no longer be written to, for example because its reader has ended. */
export const outputClosed: AbortSignal = closed.signal;

/**
 * Handles failed writes to standard output and standard error. The reader of a pipe may stop early, as in
 * `sealring status | head`. A server must also outlive a log that cannot be written, for example because the disk is
 * full. A command continues its work, and then fails.
 */
export function handleFailedWrites(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    closed.abort();
    if (error.code !== 'EPIPE' && !isServer()) failedWith ??= messageOf(error);
  });
  process.stderr.on('error', () => undefined);
}

/** Why the output of this command could not be written; undefined if it could, or its reader stopped early. */
export function failureOfOutput(): string | undefined {
  return failedWith;
}

/** Writes all of the text to standard output. @throws {Failure} `cannot-write`, also if the reader stopped early. */
export function writeOut(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (error) reject(new Failure('cannot-write', messageOf(error)));
      else resolve();
    });
  });
}

function messageOf({ code = 'unknown' }: NodeJS.ErrnoException): string {
  return `cannot write to standard output (${code})`;
}
