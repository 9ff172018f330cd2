import { types } from 'node:util';
import { expectThat } from '../requirement.ts';
import { describeThrown } from '../thrown.ts';

const KINDS: readonly unknown[] = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'];

/** Whether an error is a `KeyWrapperError`. Compares the name, since an adapter may have its own copy of the class. */
export function isKeyWrapperError(
  error: unknown,
): error is Error & { readonly kind: unknown; readonly summary: unknown } {
  return types.isNativeError(error) && error.name === 'KeyWrapperError' && KINDS.includes(Reflect.get(error, 'kind'));
}

export function isArgumentError(error: unknown): boolean {
  return types.isNativeError(error) && (error.name === 'TypeError' || error.name === 'RangeError');
}

export function expectKind(error: unknown, kind: string, what: string): void {
  const isKind = isKeyWrapperError(error) && error.kind === kind;
  expectThat(isKind, `${what}: expected kind "${kind}", got ${describeThrown(error)}`);
}

export function expectArgumentError(error: unknown, what: string): void {
  expectThat(isArgumentError(error), `${what}: expected a TypeError or RangeError, got ${describeThrown(error)}`);
}

export function expectArgumentErrorOrCorrupt(error: unknown, what: string): void {
  if (!isArgumentError(error)) expectKind(error, 'corrupt', what);
}

/** Expects an error of one of the classes in the contract. */
export function expectFailure(error: unknown, what: string): void {
  const isKnown = isKeyWrapperError(error) || isArgumentError(error);
  expectThat(isKnown, `${what}: expected a KeyWrapperError, a TypeError or a RangeError, got ${describeThrown(error)}`);
}
