import { type Moment, secondsSince } from '../base/clock.ts';
import { type CodecFailure, channels, type RotationReason } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import type { MemberParts } from './parts.ts';

/** The service that failed and the kind of failure, as reported in events and by `health()`. */
export function failureOf(error: unknown): CodecFailure {
  if (error instanceof RingStoreError) return { source: 'store', kind: error.kind };
  if (error instanceof KeyWrapperError) return { source: 'kms', kind: error.kind };
  if (error instanceof RingConflictError) return { source: 'store', kind: 'conflict' };
  return { source: 'internal', kind: 'error' };
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
    ...failureOf(error),
    seconds: secondsSince(began, now),
  }));
}
