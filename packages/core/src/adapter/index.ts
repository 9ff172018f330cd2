/**
 * For authors of key wrappers and ring stores: code that they would otherwise have to write themselves. The contracts
 * are in `@sealring/core`.
 *
 * @packageDocumentation
 */

export { type CallOutcome, Calls, type CallsOptions, type Outcome, type RetryOptions } from './calls.ts';
export type { ServiceFailure, StoreFailure } from './failures.ts';
export * as keyWrapping from './key-wrapping.ts';
export * as option from './option.ts';
export { Push, type PushListener, type PushOptions } from './push.ts';
export * as ringStorage from './ring-storage.ts';
export * as serviceDate from './service-date.ts';
export * as singleUseStorage from './single-use-storage.ts';
export * as vendorError from './vendor-error.ts';
