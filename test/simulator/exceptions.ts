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

/** Whether a caller may get this error; any other is a defect of the program. */
export function isExpected(error: unknown): boolean {
  if (CLOSED_SET.some((expected) => error instanceof expected)) return true;
  // A mistake of the caller: a key that this ring does not have.
  return error instanceof RangeError && error.message.startsWith('revoke: the ring has no key');
}
