import { ageMs, type Deadline, hasPassed, later, type Moment, msUntil, pause, uniform } from '../base/clock.ts';
import { type Backoff, backoffMs, retry } from '../base/retry.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import { createSnapshot, type RingSnapshot } from '../ring/snapshot.ts';
import type { Stored } from '../stores/stored-ring.ts';
import { isDead, LineageError } from './learn-anew.ts';
import type { MemberParts } from './parts.ts';

const MS = 1_000;
const ABSENT_POLL_MS = 3_000;
const FAILURES: Backoff = { firstMs: 200, capMs: 5_000 };
const CONFLICTS: Backoff = { firstMs: 1, capMs: 1_000 };
/** If absence was not seen for longer than this, the wait for it begins again. */
const LONGEST_SILENCE_MS = 60_000;

/**
 * Starts a member: learns the ring in the store, or creates one where there is none. Only a store that says *absent*,
 * or holds no live key, for long enough counts as empty; every other failure is tried again or thrown, never taken for
 * absence.
 *
 * @throws {RingStoreError | KeyWrapperError} a refusal at once, a failure that may pass after `startTimeoutSeconds`.
 */
export async function startRing(options: MemberParts): Promise<void> {
  const { clock, random, closing, view, ringClock } = options;
  const start: Start = { startedAt: view.now(), absentSince: undefined, lastAbsent: undefined, lastFailure: undefined };
  const look = async (): Promise<void> => {
    do {
      closing.throwIfAborted();
      // Nothing that was decided by another time counts.
      if (ringClock.startAgain(view.now())) start.absentSince = undefined;
    } while (!(await attempt(options, start)));
  };
  let conflicts = 0;
  await retry(look, {
    waitMs: (error, failures) => {
      closing.throwIfAborted();
      if (error instanceof RingConflictError) return backoffMs(CONFLICTS, ++conflicts, uniform(random));
      const left = msUntil(deadlineOf(options, start), view.now());
      if (left <= 0 || !mayPass(error)) return undefined;
      start.lastFailure = error;
      return Math.min(left, backoffMs(FAILURES, failures - conflicts, uniform(random)));
    },
    pause: (delayMs) => pause(clock, delayMs, closing),
  });
}

/** The progress of a start. */
interface Start {
  readonly startedAt: Moment;
  /** Since when the store was seen to hold no live key, and when it last was. */
  absentSince: Moment | undefined;
  lastAbsent: Moment | undefined;
  lastFailure: unknown;
}

/** Reads the store once. False: read again. */
async function attempt(options: MemberParts, start: Start): Promise<boolean> {
  const { stored, sync, view, role, writer } = options;
  const there = await stored.read();
  const document = there?.document;
  if (there !== undefined && document === undefined) throw there.error;
  const until = deadlineOf(options, start);
  let known = createSnapshot([]);
  if (document !== undefined) {
    known = await sync.anew(document, { foreground: true, until });
    if (!isDead(known, view.wallMs())) {
      sync.begin(known, document);
      if (role === 'reader') return true;
      // Keys unwrapped so far are not requested again while another member creates the key.
      while (writer.isDead && !(await isCreated(options))) await sync.read({ foreground: true });
      return true;
    }
    if (role === 'reader' && document.entries.length > 0) {
      throw new RingStoreError('corrupt', 'the ring holds no live key that may be used');
    }
  }
  const now = view.now();
  // A store that was out of reach for long did not report absence meanwhile.
  if (start.lastAbsent === undefined || ageMs(start.lastAbsent, now) > LONGEST_SILENCE_MS) start.absentSince = now;
  start.absentSince ??= now;
  start.lastAbsent = now;
  // The error that prevented the creation says more than the absence of a ring.
  if (hasPassed(deadlineOf(options, start), now))
    throw start.lastFailure ?? new RingStoreError('unavailable', 'there is no ring yet');
  return createOrWait(options, start.absentSince, there, known);
}

/** When this start gives up; a member that saw no ring had to wait for absence first. */
function deadlineOf({ policy, role }: MemberParts, { startedAt, lastAbsent }: Start): Deadline {
  const waiting = lastAbsent !== undefined && role === 'member' ? policy.createAfterSeconds : 0;
  return later(startedAt, (policy.startTimeoutSeconds + waiting) * MS);
}

/** Creates the ring once it was absent for long enough. False: read again. */
async function createOrWait(
  options: MemberParts,
  absentSince: Moment,
  there: Stored | undefined,
  known: RingSnapshot,
): Promise<boolean> {
  const { policy, clock, random, closing, role, create, view, sync } = options;
  if (create === 'never') {
    throw new RingStoreError(
      'corrupt',
      there === undefined
        ? "there is no ring, and create is 'never'"
        : "the ring has no live key, and create is 'never'",
    );
  }
  const now = view.now();
  const missing = role === 'member' ? policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;
  if (missing > 0) {
    await pause(clock, Math.min(ABSENT_POLL_MS * (1 + uniform(random)), missing), closing);
    return false;
  }
  sync.begin(known, undefined);
  if (there?.document !== undefined) await sync.rememberPast(there.document, { foreground: false });
  return isCreated(options);
}

/** False, after a wait, where another member is creating it: read again. */
async function isCreated({ founding, clock, closing }: MemberParts): Promise<boolean> {
  const wait = await founding.attempt();
  if (wait > 0) await pause(clock, wait, closing);
  return wait === 0;
}

/** Failures that may have passed by the next attempt. */
function mayPass(error: unknown): boolean {
  if (error instanceof RingStoreError) return error.kind === 'unavailable' || error instanceof LineageError;
  return error instanceof KeyWrapperError && (error.kind === 'unavailable' || error.kind === 'throttled');
}
