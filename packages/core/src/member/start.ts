import { type Patience, patienceWith } from '../adapter/lasting-failures.ts';
import {
  ageMs,
  type Deadline,
  earlier,
  hasPassed,
  later,
  type Moment,
  msUntil,
  pause,
  schedule,
  uniform,
} from '../base/clock.ts';
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
/** If the store did not answer *absent* for longer than this, the wait begins again. */
const LONGEST_SILENCE_MS = 60_000;
/** How long failures of name resolution and of credentials are retried, because the machine may still be starting. */
const STARTING_MACHINE_MS = 10_000;
/** A start that takes longer than this emits a warning that names what it waits for. */
const SILENT_MS = 2_000;
/** The message when a start finds no ring, in the warning and in the final error. */
const NO_RING = "no ring yet: run `sealring init`, or set create: 'now'";

/**
 * Makes a member ready: learns the ring in the store, or creates one if there is none. A store counts as empty only if it
 * has answered *absent*, or held no live key, for long enough; every other failure is retried or thrown, never taken for
 * an empty store. A start that takes longer than two seconds emits a process warning that names what it waits for.
 *
 * @throws {RingStoreError | KeyWrapperError} at once for a refusal, and for a failure that lasts until an operator acts;
 * after `startTimeoutSeconds` for a failure that may pass, with the last answer of each key wrapper that failed.
 */
export async function startRing(options: MemberParts): Promise<void> {
  const { clock, random, closing, view, ringClock } = options;
  const start: Start = {
    startedAt: view.now(),
    waitsFor: 'store',
    failedAt: undefined,
    absentSince: undefined,
    lastAbsent: undefined,
    lastFailure: undefined,
    retriesUntil: undefined,
  };
  const look = async (): Promise<void> => {
    do {
      // Decisions that were made before the time changed are discarded.
      if (ringClock.startAgain(view.now())) start.absentSince = undefined;
    } while (!(await attempt(options, start)));
  };
  let conflicts = 0;
  const cancelNotice = noticeAfterTwoSeconds(options, start);
  const looking = retry(look, {
    waitMs: (error, failures) => {
      if (error instanceof RingConflictError) return backoffMs(CONFLICTS, ++conflicts, uniform(random));
      const patience = patienceWithError(error);
      const deadline = deadlineOf(options, start);
      const until = patience === 'short' ? earlier(deadline, later(start.startedAt, STARTING_MACHINE_MS)) : deadline;
      const left = msUntil(until, view.now());
      if (left <= 0 || patience === 'none') return undefined;
      start.lastFailure = error;
      start.retriesUntil = until;
      start.failedAt = start.waitsFor;
      return Math.min(left, backoffMs(FAILURES, failures - conflicts, uniform(random)));
    },
    pause: (delayMs) => pause(clock, delayMs, closing),
  });
  try {
    await looking;
  } catch (error) {
    throw withAnswers(options, error);
  } finally {
    cancelNotice();
  }
}

/** The progress of a start. */
interface Start {
  readonly startedAt: Moment;
  waitsFor: 'store' | 'kms';
  /** When the store was first seen to hold no live key. */
  absentSince: Moment | undefined;
  lastFailure: unknown;
  /** When the operation that failed with `lastFailure` stops being retried. */
  retriesUntil: Deadline | undefined;
  /** What the start was waiting for when `lastFailure` occurred. */
  failedAt: Start['waitsFor'] | undefined;
  /** When the store was last seen to hold no live key. */
  lastAbsent: Moment | undefined;
}

/**
 * The error with the last answers of the services, because a call that was cut short when the start ended shows nothing
 * about them.
 */
function withAnswers({ wraps, store }: MemberParts, error: unknown): unknown {
  if (error instanceof KeyWrapperError) return patienceWithError(error) === 'none' ? error : wraps.lastFailure(error);
  if (!(error instanceof RingStoreError)) return error;
  const { kind, detail, revision, serviceCode } = error;
  return new RingStoreError(kind, detail, { revision, serviceCode, location: store.location });
}

/** Reads the store once. Returns false if the store must be read again. */
async function attempt(options: MemberParts, start: Start): Promise<boolean> {
  const { stored, sync, view, role, writer } = options;
  start.waitsFor = 'store';
  const there = await stored.read();
  start.waitsFor = 'kms';
  if (start.failedAt === 'store') start.lastFailure = undefined;
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
  // A store that was unreachable for a long time may have changed in the meantime.
  if (start.lastAbsent === undefined || ageMs(start.lastAbsent, now) > LONGEST_SILENCE_MS) start.absentSince = now;
  start.absentSince ??= now;
  start.lastAbsent = now;
  if (!mayCreate(options)) start.lastFailure = undefined;
  // The failure that prevented the creation says more than an error about an absent ring.
  if (hasPassed(deadlineOf(options, start), now)) throw start.lastFailure ?? new RingStoreError('absent', NO_RING);
  return createOrWait(options, start.absentSince, there, known);
}

/** The time limit of this start, longer for a member that must first see the ring absent for long enough. */
function deadlineOf(options: MemberParts, { startedAt, lastAbsent }: Start): Deadline {
  const { policy } = options;
  const waiting = lastAbsent !== undefined && mayCreate(options) ? policy.createAfterSeconds : 0;
  return later(startedAt, (policy.startTimeoutSeconds + waiting) * MS);
}

function mayCreate({ role, create }: MemberParts): boolean {
  return role === 'member' && create !== 'never';
}

/** Creates the ring once it has been absent for long enough. Returns false if the ring must be read again. */
async function createOrWait(
  options: MemberParts,
  absentSince: Moment,
  there: Stored | undefined,
  known: RingSnapshot,
): Promise<boolean> {
  const { policy, clock, random, closing, create, view, sync } = options;
  if (create === 'never' && there !== undefined) {
    throw new RingStoreError('corrupt', "the ring has no live key, and create is 'never'");
  }
  const now = view.now();
  const missing = mayCreate(options) ? policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;
  if (missing > 0) {
    await pause(clock, Math.min(ABSENT_POLL_MS * (1 + uniform(random)), missing), closing);
    return false;
  }
  sync.begin(known, undefined);
  if (there?.document !== undefined) await sync.rememberPast(there.document, {});
  return isCreated(options);
}

/**
 * Creates the first key. If another member is creating it, waits and returns false: the caller must then read the store
 * again.
 */
async function isCreated({ founding, clock, closing }: MemberParts): Promise<boolean> {
  const wait = await founding.attempt();
  if (wait > 0) await pause(clock, wait, closing);
  return wait === 0;
}

/** How long to wait for a failure to pass by itself. */
function patienceWithError(error: unknown): Patience {
  if (error instanceof LineageError) return 'long';
  if (error instanceof RingStoreError) return error.kind === 'unavailable' ? patienceWith(error.serviceCode) : 'none';
  if (!(error instanceof KeyWrapperError) || (error.kind !== 'unavailable' && error.kind !== 'throttled'))
    return 'none';
  const { causes, code } = error.summary;
  // A single key wrapper is enough for most calls, so a transient failure of any of them counts.
  return causes === undefined ? patienceWith(code) : mostOf(causes.map(patienceWithError));
}

function mostOf(all: readonly Patience[]): Patience {
  return (['long', 'short'] as const).find((patience) => all.includes(patience)) ?? 'none';
}

/**
 * Emits one process warning two seconds from now, unless cancelled. The warning names what the start waits for, and for
 * how long. `--disable-warning=SEALRING_WAITING` silences it.
 */
function noticeAfterTwoSeconds(options: MemberParts, start: Start): () => void {
  const emit = (): void => {
    const { lastFailure, retriesUntil } = start;
    const until = (lastFailure === undefined ? undefined : retriesUntil) ?? deadlineOf(options, start);
    const text = noticeOf(options, start, new Date(until.wallMs));
    process.emitWarning(text, { type: 'SealringWarning', code: 'SEALRING_WAITING' });
  };
  return schedule(options.clock, emit, SILENT_MS);
}

function noticeOf(options: MemberParts, { waitsFor, absentSince, lastFailure }: Start, until: Date): string {
  const { store, wrappers, wraps, policy, view, ring } = options;
  const where = `ring store ${store.location ?? store.kind}`;
  const providers = wrappers.map(({ provider }) => provider).join(', ');
  const retrying = `retrying until ${until.toISOString()}`;
  if (waitsFor === 'kms') {
    const failure = wraps.lastFailure(lastFailure);
    if (failure instanceof KeyWrapperError) return `waiting for the KMS: ${failure.message}, ${retrying}`;
    if (absentSince === undefined) return `waiting for the KMS (${providers}): no answer yet, ${retrying}`;
  }
  if (lastFailure instanceof RingStoreError) return `waiting for ${where}: ${lastFailure.detail}, ${retrying}`;
  if (absentSince === undefined) return `waiting for ${where}: no answer yet, ${retrying}`;
  if (!mayCreate(options)) return `waiting for ring ${ring} in ${where}: ${NO_RING}; ${retrying}`;
  const missingMs = policy.createAfterSeconds * MS - ageMs(absentSince, view.now());
  if (missingMs <= 0) {
    const who = `the KMS (${providers}) or another process that creates it`;
    return `waiting for the first key of ring ${ring}: ${who} has not answered yet, ${retrying}`;
  }
  return (
    `waiting for ring ${ring} in ${where}: ${NO_RING}; otherwise this process creates it in ` +
    `${Math.ceil(missingMs / MS)} s, if the ring is still absent`
  );
}
