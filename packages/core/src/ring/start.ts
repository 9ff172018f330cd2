import {
  ageMs,
  type Clock,
  type Deadline,
  hasPassed,
  later,
  type Moment,
  msUntil,
  pause,
  type RandomSource,
  uniform,
} from '../clock.ts';
import { KeyWrapperError } from '../key-wrapper.ts';
import { type Founding, isUnfounded } from './founding.ts';
import type { ResolvedPolicy } from './policy.ts';
import { RingConflictError, RingStoreError } from './store.ts';
import type { Stored, StoredRingDocument } from './stored-ring.ts';
import type { RingSync } from './sync.ts';
import type { RingView } from './view.ts';
import type { RingWriter } from './writer.ts';

const MS = 1_000;
const ABSENT_POLL_MS = 3_000;
const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 5_000;
const LONGEST_CONFLICT_WAIT_MS = 1_000;
/** An absence that nothing was heard of for longer begins anew. */
const LONGEST_SILENCE_MS = 60_000;

export interface RingStartOptions {
  readonly policy: ResolvedPolicy;
  readonly role: 'member' | 'reader';
  readonly create: 'if-absent' | 'now' | 'never';
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly closing: AbortController;
  readonly view: RingView;
  readonly stored: StoredRingDocument;
  readonly sync: RingSync;
  readonly founding: Founding;
  readonly writer: RingWriter;
}

/**
 * Brings a member to where it can work: adopts the ring that is there, or founds one where there is none. Only a store
 * that says *absent* for long enough is empty; whatever else goes wrong is tried again or thrown, never taken for that.
 *
 * @throws {RingStoreError | KeyWrapperError} a refusal at once, a failure that may pass after `startTimeoutSeconds`.
 */
export async function startRing(options: RingStartOptions): Promise<void> {
  const { clock, random, closing, stored, sync, role, writer, view } = options;
  const startedAt = view.now();
  let absentSince: Moment | undefined;
  let lastAbsent: Moment | undefined;
  let lastFailure: unknown;
  let conflicts = 0;
  for (let failures = 0; ; ) {
    closing.signal.throwIfAborted();
    try {
      const there = await stored.read();
      if (there !== undefined && !isUnfounded(there.document) && (role === 'reader' || !sync.isDead(there.document))) {
        absentSince = undefined;
        await sync.start(there, { foreground: true, until: deadlineOf(options, startedAt, lastAbsent) });
        if (role === 'member') await writer.reviveIfDead();
        return;
      }
      const now = view.now();
      // A store that was out of reach for long said nothing meanwhile.
      if (lastAbsent === undefined || ageMs(lastAbsent, now) > LONGEST_SILENCE_MS) absentSince = now;
      lastAbsent = now;
      // What kept this member from founding says more than that there is no ring.
      if (hasPassed(deadlineOf(options, startedAt, lastAbsent), now))
        throw lastFailure ?? new RingStoreError('unavailable', 'there is no ring yet');
      if (await foundOrWait(options, absentSince ?? now, there)) return;
    } catch (error) {
      closing.signal.throwIfAborted();
      if (error instanceof RingConflictError) {
        const wait = Math.min(LONGEST_CONFLICT_WAIT_MS, 2 ** conflicts) * uniform(random);
        conflicts += 1;
        await pause(clock, wait, closing.signal);
        continue;
      }
      const left = msUntil(deadlineOf(options, startedAt, lastAbsent), view.now());
      if (left <= 0 || !mayPass(error)) throw error;
      lastFailure = error;
      const wait = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** failures);
      failures += 1;
      await pause(clock, Math.min(left, wait * uniform(random)), closing.signal);
    }
  }
}

/** When this start has taken all the time it has; a member that saw no ring had to wait for absence first. */
function deadlineOf({ policy, role }: RingStartOptions, startedAt: Moment, absent: Moment | undefined): Deadline {
  const waiting = absent !== undefined && role === 'member' ? policy.createAfterSeconds : 0;
  return later(startedAt, (policy.startTimeoutSeconds + waiting) * MS);
}

/** Founds the ring, or goes on from a dead one, once that was seen for long enough. False: look again. */
async function foundOrWait(
  options: RingStartOptions,
  absentSince: Moment,
  there: Stored | undefined,
): Promise<boolean> {
  const { policy, clock, random, closing, role, create, view, founding } = options;
  const dead = there === undefined || isUnfounded(there.document) ? undefined : there;
  if (create === 'never' && dead === undefined) {
    throw new RingStoreError('corrupt', "there is no ring, and create is 'never'");
  }
  const now = view.now();
  const missing = role === 'member' ? policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;
  if (missing <= 0) return dead === undefined ? founding.attempt(there) : revive(options, dead);
  await pause(clock, Math.min(ABSENT_POLL_MS * (1 + uniform(random)), missing), closing.signal);
  return false;
}

/** Goes on from a ring whose keys have all ended. */
async function revive({ sync, writer }: RingStartOptions, dead: Stored): Promise<true> {
  await sync.start(dead, { foreground: true });
  await writer.reviveIfDead();
  return true;
}

/** What may be gone by the next attempt. */
function mayPass(error: unknown): boolean {
  if (error instanceof RingStoreError) return error.kind === 'unavailable';
  return error instanceof KeyWrapperError && (error.kind === 'unavailable' || error.kind === 'throttled');
}
