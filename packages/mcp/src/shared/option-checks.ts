import { refuseUnknownOptions, show } from '@sealring/core/adapter';

/** @throws {TypeError} unless `options` is an object whose every key is in `known`. */
export function knownOptions(owner: string, options: unknown, known: readonly string[]): Record<string, unknown> {
  refuseUnknownOptions(owner, options, known);
  return { ...Object(options) };
}

/** Whether `value` is an object on which every one of `methods` is a function. */
export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  // A server is made for each request: no closure.
  for (const method of methods) if (typeof Reflect.get(value, method) !== 'function') return false;
  return true;
}

/** Reads a function that may be left out. @throws {TypeError} for anything but a function or undefined. */
export function callback(owner: string, name: string, value: unknown): Callback | undefined {
  if (value === undefined || isFunction(value)) return value;
  throw new TypeError(`${owner}: ${name} must be a function, got ${show(value)}`);
}

type Callback = (argument: unknown) => unknown;

export function isFunction(value: unknown): value is Callback {
  return typeof value === 'function';
}
