import { option } from '@sealring/core/adapter';

/** @throws {TypeError} unless `options` is an object and each of its keys is in `known`. */
export function knownOptions(owner: string, options: unknown, known: readonly string[]): Record<string, unknown> {
  option.refuseUnknown(owner, options, known);
  return { ...Object(options) };
}

/** Whether `value` is an object with a function for each of `methods`. */
export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  // Called for each request, so it allocates no closure.
  for (const method of methods) if (typeof Reflect.get(value, method) !== 'function') return false;
  return true;
}

/** Reads an optional function. @throws {TypeError} for a value that is neither a function nor undefined. */
export function callback(owner: string, name: string, value: unknown): Callback | undefined {
  if (value === undefined || isFunction(value)) return value;
  throw option.wrongType(owner, name, 'a function', value);
}

type Callback = (argument: unknown) => unknown;

export function isFunction(value: unknown): value is Callback {
  return typeof value === 'function';
}
