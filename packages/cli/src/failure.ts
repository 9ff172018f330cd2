/** The KMS or the store would not have it: one line that says what, and exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}
