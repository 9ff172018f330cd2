import type { KeyWrapperErrorKind, RingStoreErrorKind } from '@sealring/core';

/** The section of this package's README that says what to do for each code. */
const FAILURES = 'https://github.com/sealring/sealring/blob/main/packages/cli/README.md#failures';

/** Why a command failed: `error.code` of the JSON that it prints with `--json`. A stable, closed set. */
export type FailureCode =
  | `kms-${KeyWrapperErrorKind}`
  | `store-${Exclude<RingStoreErrorKind, 'absent'>}`
  | 'cannot-listen'
  | 'cannot-write'
  | 'conflict'
  | 'interrupted'
  | 'keys-changed'
  | 'no-sealing-key'
  | 'not-a-token'
  | 'not-confirmed'
  | 'not-probed'
  | 'not-revoked'
  | 'not-unwrapped'
  | 'revocation-lost'
  | 'ring-absent'
  | 'ring-exists'
  | 'unexpected';

/** The KMS or the store rejected the operation, or the ring is not in the required state. Exit code 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: FailureCode;
  /** URL of the documentation for this failure. */
  readonly help: string;

  constructor(code: FailureCode, message: string, help: string = FAILURES) {
    super(message);
    this.code = code;
    this.help = help;
  }
}
