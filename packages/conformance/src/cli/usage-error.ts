/** The command line, or the target it names, is wrong: one line that says what, and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
