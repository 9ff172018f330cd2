import type { Clock } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/**
 * Returns a function that reads Unix seconds from the given clock, or from the system clock if none is given.
 * @throws {TypeError} for a value that is not a clock.
 */
export function readClock(owner: string, value: unknown): () => number {
  if (value === undefined) return () => Date.now() / 1000;
  if (!isClock(value))
    throw option.typeError(`${owner}: clock must have wallMs and monotonicNs, got ${option.show(value)}`);
  return () => value.wallMs() / 1000;
}

function isClock(value: unknown): value is Clock {
  return hasMethods(value, ['wallMs', 'monotonicNs']);
}
