/** The command line, or the settings it names, are wrong: one line that says what, and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
