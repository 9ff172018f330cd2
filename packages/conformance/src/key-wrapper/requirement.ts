import type { CheckedRequirement } from '../requirement.ts';
import type { KeyWrapperTrial } from './trial.ts';

/** A requirement of key wrappers and its check. docs/key-wrapper-requirements.md says what each is tried with. */
export type KeyWrapperRequirement = CheckedRequirement<KeyWrapperTrial>;

/** Where requirements come from. */
export const CONTRACT = 'KeyWrapper of @sealring/core';
export const RING = 'Sealring ring document: what it stores of a wrapped key';
export const KIT = 'Sealring conformance kit';

export function clause(...numbers: readonly number[]): string {
  return numbers.map((number) => `${CONTRACT}, clause ${number}`).join('; ');
}
