/**
 * Reads options. The messages for wrong options have the same wording everywhere: they name the option and the value,
 * and never show a secret.
 */

export {
  finiteNumber as numberWithin,
  label,
  oneOf,
  optionRangeError as rangeError,
  optionTypeError as typeError,
  quote,
  refuseUnknownOptions as refuseUnknown,
  show,
} from '../base/options.ts';
export { checkFactoryOptions, startTimeoutMsOf } from './codec-options.ts';
export {
  checkCallback,
  endpointUrl,
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
