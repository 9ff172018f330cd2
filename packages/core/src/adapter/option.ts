/** Readers of options: one wording for wrong ones, with the option and the value in it, and never a secret. */

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
