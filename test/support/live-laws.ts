import type { KeyWrapper } from '@sealring/core';
import { expect, test } from 'vitest';
import { keyWrapperLaws } from './key-wrapper-laws.ts';

/**
 * The laws of a key wrapper on the real service, when two environment variables name its KMS keys. Once asked for
 * they run: whatever keeps them from the service makes them fail, and so does only one of the two names.
 */
export function liveLaws(
  variables: { readonly own: string; readonly other: string },
  wrapperOf: (keyId: string) => KeyWrapper,
): void {
  const { [variables.own]: own, [variables.other]: other } = process.env;
  test(`${variables.own} and ${variables.other} are both given, or neither`, () => {
    expect(own === undefined).toBe(other === undefined);
  });
  if (own === undefined || other === undefined) return;
  keyWrapperLaws(async () => ({ own: wrapperOf(own), other: wrapperOf(other) }));
}
