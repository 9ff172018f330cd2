import type { Moment } from '../base/clock.ts';
import { KeyWrapperError, type KeyWrapperErrorKind } from '../contracts/key-wrapper.ts';
import type { ResolvedPolicy } from '../ring/policy.ts';

/*
 * A refusal by the KMS means that this fleet may no longer use the key. While a change of permissions propagates,
 * answers alternate for seconds, so one stray refusal must not stop a fleet: three refusals in a row (two if the key
 * itself is disabled), each at least 8 s after the one before and all within a window, stop sealing. The window is 60 s,
 * or as long as three slow refusals take: between two of them are a wait of 10 s and a pass of up to three calls.
 */
export const LEAST_SPACING_MS: number = 8_000;
const LEAST_WINDOW_MS = 60_000;
const CALLS_OF_A_PASS = 3;
const REFUSALS_TO_STOP = 3;
const DISABLED_TO_STOP = 2;

/** Counts refusals by the KMS. Immutable: a further refusal creates a new object. */
export interface KillSwitch {
  /** The refusals that count, oldest first. `at` is in milliseconds of the monotonic clock. */
  readonly refusals: readonly { readonly at: number; readonly disabled: boolean }[];
  /** When sealing stopped. */
  readonly trippedAt: Moment | undefined;
}

export const ARMED: KillSwitch = Object.freeze({ refusals: Object.freeze([]), trippedAt: undefined });

/** Whether an error of this kind is a refusal: an answer about the permission to use the key, not about availability. */
export function isRefusal(kind: KeyWrapperErrorKind): boolean {
  return kind === 'denied' || kind === 'not-found' || kind === 'disabled';
}

/** Whether an error is a refusal by the KMS. */
export function isRefused(error: unknown): boolean {
  return error instanceof KeyWrapperError && isRefusal(error.kind);
}

/** The time within which refusals count together, in milliseconds. */
export function refusalWindowMs({ kmsTimeoutSeconds }: Pick<ResolvedPolicy, 'kmsTimeoutSeconds'>): number {
  const betweenMs = REFUSAL_PROBE_MS + CALLS_OF_A_PASS * kmsTimeoutSeconds * 1_000;
  return Math.max(LEAST_WINDOW_MS, (REFUSALS_TO_STOP - 1) * betweenMs);
}

/** The kill switch after one more refusal. Refusals are spaced by the monotonic clock, which never steps back. */
export function afterRefusal(
  current: KillSwitch,
  kind: KeyWrapperErrorKind,
  now: Moment,
  windowMs: number,
): KillSwitch {
  if (current.trippedAt !== undefined) return current;
  const nowMs = now.steadyMs;
  const recent = current.refusals.filter((refusal) => nowMs - refusal.at <= windowMs);
  const last = recent.at(-1);
  if (last !== undefined && nowMs - last.at < LEAST_SPACING_MS) return { ...current, refusals: recent };
  const refusals = [...recent, { at: nowMs, disabled: kind === 'disabled' }];
  const disabled = refusals.filter((refusal) => refusal.disabled).length;
  const tripped = refusals.length >= REFUSALS_TO_STOP || disabled >= DISABLED_TO_STOP;
  return { refusals, trippedAt: tripped ? now : undefined };
}

/** Whether a refusal counts at `nowMs`. A refusal that is not followed by another within the window was a stray one. */
export function hasRecentRefusal({ refusals }: KillSwitch, nowMs: number, windowMs: number): boolean {
  return refusals.some((refusal) => nowMs - refusal.at <= windowMs);
}

/** How long to wait before the next call while refusals are being counted. */
export const REFUSAL_PROBE_MS: number = 10_000;
