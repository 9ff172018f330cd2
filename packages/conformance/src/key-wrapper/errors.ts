import { types } from 'node:util';
import { expectThat, Finding } from '../requirement.ts';
import { describeThrown, kindOf, nameOf } from '../thrown.ts';

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
  expectThat(isKind, `${what}: expected kind "${wanted.join('" or "')}", got ${describeError(error)}`);
}

/** @throws {Finding} unless it is a `TypeError` or a `RangeError`. */
export function expectArgumentError(error: unknown, what: string): void {
  expectThat(isArgumentError(error), `${what}: expected a TypeError or RangeError, got ${describeError(error)}`);
}

/** @throws {Finding} unless it is a wrong argument's error, or a `KeyWrapperError` of kind `corrupt`. */
export function expectArgumentErrorOrCorrupt(error: unknown, what: string): void {
  if (!isArgumentError(error)) expectKind(error, 'corrupt', what);
}

/** An error by its class, its kind and the line of the author's file; its text may hold a secret. */
export function describeError(error: unknown): string {
  if (error instanceof Finding) return error.message;
  if (!types.isNativeError(error)) return `${kindOf(error)} that is no Error`;
  if (nameOf(error) !== 'KeyWrapperError') return describeThrown(error);
  return `${describeThrown(error)}, ${kindText(Reflect.get(error, 'kind'))}`;
}

function kindText(kind: unknown): string {
  if (KINDS.includes(kind)) return `kind "${String(kind)}"`;
  const isName = typeof kind === 'string' && /^[A-Za-z][A-Za-z-]{0,30}$/.test(kind);
  return `unexpected kind ${isName ? `"${kind}"` : `(${kindOf(kind)})`}`;
}
