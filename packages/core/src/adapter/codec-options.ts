import { refuseUnknownOptions } from '../base/options.ts';
import { resolvePolicy } from '../ring/policy.ts';

/** The options that a factory with its own key wrapper sets itself. */
const SET_BY_FACTORY: readonly string[] = ['keyWrapper', 'closeKeyWrappers'];

/**
 * Checks the options of an adapter's factory, in addition to what the key wrapper and `createKmsCodec` check.
 * @throws {TypeError} unless `options` is an object without the options that the factory sets itself.
 */
export function checkFactoryOptions(owner: string, options: unknown): void {
  const names = Object.keys(Object(options)).filter((name) => !SET_BY_FACTORY.includes(name));
  refuseUnknownOptions(owner, options, names);
}

/**
 * The `startTimeoutSeconds` of a policy in milliseconds, for a factory that makes calls before it calls `createKmsCodec`.
 * @throws {TypeError | RangeError} for a policy that `createKmsCodec` would refuse.
 */
export function startTimeoutMsOf(policy: unknown): number {
  return resolvePolicy(policy, { storeKind: '', createNow: false }).startTimeoutSeconds * 1_000;
}
