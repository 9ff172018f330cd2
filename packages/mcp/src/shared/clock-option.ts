import type { Clock } from '@sealring/core';
import { show } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/** Unix seconds by the clock given, or by the system's. @throws {TypeError} for what is no clock. */
export function readClock(owner: string, value: unknown): () => number {
  if (value === undefined) return () => Date.now() / 1000;
  if (!isClock(value)) throw new TypeError(`${owner}: clock must have wallMs and monotonicNs, got ${show(value)}`);
  return () => value.wallMs() / 1000;
}

function isClock(value: unknown): value is Clock {
  return hasMethods(value, ['wallMs', 'monotonicNs']);
}
