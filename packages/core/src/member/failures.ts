import { type Moment, secondsSince } from '../base/clock.ts';
import { channels } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import type { RotationReason } from '../ring/schedule.ts';
import type { MemberParts } from './parts.ts';

/** Which service failed and how, as in events and `health()`: `kms denied`, `store unavailable`, … */
export function kindOf(error: unknown): string {
  if (error instanceof RingStoreError) return `store ${error.kind}`;
  if (error instanceof KeyWrapperError) return `kms ${error.kind}`;
  return error instanceof RingConflictError ? 'conflict' : 'internal';
}

/** Emits `sealring:rotation-failed`. */
export function emitFailedRotation(
  { ring, view }: Pick<MemberParts, 'ring' | 'view'>,
  reason: RotationReason,
  error: unknown,
  began: Moment,
): void {
  const now = view.now();
  channels['rotation-failed'].publish(() => ({
    ringName: ring,
    reason,
    kind: kindOf(error),
    seconds: secondsSince(began, now),
  }));
}
