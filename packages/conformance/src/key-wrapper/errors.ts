import { types } from 'node:util';
import { expectThat } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';

const KINDS: readonly unknown[] = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'];

/** Whether it is a `KeyWrapperError`, by name: an adapter may carry its own copy of the class. */
export function isKeyWrapperError(
  error: unknown,
): error is Error & { readonly kind: unknown; readonly summary: unknown } {
  return types.isNativeError(error) && error.name === 'KeyWrapperError' && KINDS.includes(Reflect.get(error, 'kind'));
}

export function isArgumentError(error: unknown): boolean {
  return types.isNativeError(error) && (error.name === 'TypeError' || error.name === 'RangeError');
}

/** @throws {Finding} unless it is a `KeyWrapperError` of one of these kinds. */
export function expectKind(error: unknown, kinds: string | readonly string[], what: string): void {
  const wanted = [kinds].flat();
  const isKind = isKeyWrapperError(error) && wanted.includes(String(error.kind));
  expectThat(isKind, `${what}: expected kind "${wanted.join('" or "')}", got ${describeThrown(error)}`);
}

/** @throws {Finding} unless it is a `TypeError` or a `RangeError`. */
export function expectArgumentError(error: unknown, what: string): void {
  expectThat(isArgumentError(error), `${what}: expected a TypeError or RangeError, got ${describeThrown(error)}`);
}

/** @throws {Finding} unless it is a wrong argument's error, or a `KeyWrapperError` of kind `corrupt`. */
export function expectArgumentErrorOrCorrupt(error: unknown, what: string): void {
  if (!isArgumentError(error)) expectKind(error, 'corrupt', what);
}
