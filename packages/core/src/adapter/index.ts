/**
 * For authors of key wrappers and ring stores: the code that each of them would otherwise write again, with the types
 * of the contract that it uses. The whole contract is in `@sealring/core`.
 *
 * @packageDocumentation
 */

export {
  finiteNumber as numberWithin,
  label,
  oneOf,
  optionRangeError,
  optionTypeError,
  quote,
  refuseUnknownOptions,
  show,
} from '../base/options.ts';
export {
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  type KeyWrapperOperation,
  type WrappedKey,
} from '../contracts/key-wrapper.ts';
export {
  MAX_DOCUMENT_BYTES,
  type RingStoreCallOptions,
  RingStoreError,
  type RingStoreErrorKind,
} from '../contracts/ring-store.ts';
export { type AwsErrorRows, awsErrorRows } from './aws-errors.ts';
export {
  type CallOutcome,
  Calls,
  type CallsOptions,
  keyWrapperCalls,
  type Outcome,
  type RetryOptions,
  storeCalls,
} from './calls.ts';
export { checkFactoryOptions, startTimeoutMsOf } from './codec-options.ts';
export { type ConnectionFailure, connectionFailure, unreachable } from './connection-failures.ts';
export { decodeDocument, readBody } from './document-body.ts';
export { endpointUrl } from './endpoint.ts';
export { errorTable, storeFailure } from './error-table.ts';
export {
  corrupt,
  keyWrapperError,
  type ServiceFailure,
  type StoreFailure,
  TOO_LARGE,
  tooLarge,
} from './failures.ts';
export {
  findRow,
  kindOfStatus,
  property,
  requestIdOf,
  sameRow,
  statusOf,
  unexplained,
} from './foreign-errors.ts';
export {
  type CheckedWrapOptions,
  type ContextSupport,
  copyDataKey,
  copyWrapped,
  overwrite,
  readWrapOptions,
  readWrappedKey,
  takeDataKey,
  type WrappedKeyRules,
} from './key-wrapper-arguments.ts';
export {
  checkCallback,
  flag,
  integerWithin,
  listOf,
  objectWith,
  outOfRange,
  signalOf,
  text,
  textMatching,
  textWithin,
  timeoutMsOf,
  urlWith,
  wrongType,
} from './options.ts';
export { Push, type PushListener, type PushOptions } from './push.ts';
export {
  checkClaim,
  checkRead,
  checkWatcher,
  checkWrite,
  claimLifeMs,
  clockSkewMsOf,
} from './ring-store-arguments.ts';
export { noteDateHeader, noteDateOf, noteServiceTime, type OnServiceDate } from './service-date.ts';
