/** Common code of key wrappers: checks and copies arguments, overwrites data keys, makes calls, and names failures. */

export {
  KEY_WRAPPER_ERROR_KINDS,
  KEY_WRAPPER_OPERATIONS,
  type KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  type KeyWrapperOperation,
  type WrappedKey,
} from '../contracts/key-wrapper.ts';
export { keyWrapperCalls as calls } from './calls.ts';
export { corrupt, keyWrapperError as errorOf } from './failures.ts';
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
