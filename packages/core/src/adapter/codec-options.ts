import { refuseUnknownOptions } from '../base/options.ts';

/** What a factory that makes its own key wrapper sets itself. */
const SET_BY_FACTORY: readonly string[] = ['keyWrapper', 'closeKeyWrappers'];

/**
 * Checks what a factory of an adapter was given, beside what the key wrapper and `createKmsCodec` check.
 * @throws {TypeError} unless it is an object without the options that the factory sets itself.
 */
export function checkFactoryOptions(owner: string, options: unknown): void {
  const names = typeof options === 'object' && options !== null ? Object.keys(options) : [];
  refuseUnknownOptions(
    owner,
    options,
    names.filter((name) => !SET_BY_FACTORY.includes(name)),
  );
}
