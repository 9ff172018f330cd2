/** The page that lists the messages for wrong options, variables and configuration files. */
export const MISTAKES = 'https://github.com/sealring/sealring/blob/main/docs/mistakes.md';

/** The command line or the configuration is wrong. The message has one line. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code = 'usage';
  /** Address of the page that lists these messages. */
  readonly help: string = MISTAKES;
}
