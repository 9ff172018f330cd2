import {
  CodecClosedError,
  InvalidRequestState,
  KeyWrapperError,
  RingConflictError,
  RingStoreError,
  SealUnavailableError,
} from '@sealring/core';

const CLOSED_SET = [
  CodecClosedError,
  InvalidRequestState,
  KeyWrapperError,
  RingConflictError,
  RingStoreError,
  SealUnavailableError,
] as const;

/** Whether an error is one that a caller may meet; any other is a fault of the program. */
export function isExpected(error: unknown): boolean {
  if (CLOSED_SET.some((expected) => error instanceof expected)) return true;
  // The caller's own mistake: a key that this ring does not have.
  return error instanceof RangeError && error.message.startsWith('revoke: the ring has no key');
}
