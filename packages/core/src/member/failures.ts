import { type Moment, secondsSince } from '../base/clock.ts';
import { channels } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import type { RotationReason } from '../ring/schedule.ts';

/** Which service failed and how, as in events and `health()`: `kms denied`, `store unavailable`, … */
export function kindOf(error: unknown): string {
  if (error instanceof RingStoreError) return `store ${error.kind}`;
  if (error instanceof KeyWrapperError) return `kms ${error.kind}`;
  return error instanceof RingConflictError ? 'conflict' : 'internal';
}

/** Emits `sealring:rotation-failed`. */
export function emitFailedRotation(reason: RotationReason, error: unknown, began: Moment, now: Moment): void {
  channels['rotation-failed'].publish(() => ({ reason, kind: kindOf(error), seconds: secondsSince(began, now) }));
}
