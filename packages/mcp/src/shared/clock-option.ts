import type { Clock } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/** Returns a function for Unix seconds by the given clock, or the system clock. @throws {TypeError} for a value that is not a clock. */
export function readClock(owner: string, value: unknown): () => number {
  if (value === undefined) return () => Date.now() / 1000;
  if (!isClock(value))
    throw option.typeError(`${owner}: clock must have wallMs and monotonicNs, got ${option.show(value)}`);
  return () => value.wallMs() / 1000;
}

function isClock(value: unknown): value is Clock {
  return hasMethods(value, ['wallMs', 'monotonicNs']);
}
