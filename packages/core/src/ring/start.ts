import { ageMs, type Clock, type Moment, pause, type RandomSource, uniform } from '../clock.ts';
import { KeyWrapperError } from '../key-wrapper.ts';
import type { ResolvedPolicy } from './policy.ts';
import { lateDelayMs } from './schedule.ts';
import { RingConflictError, type RingStore, RingStoreError } from './store.ts';
import type { Stored, StoredRingDocument } from './stored-ring.ts';
import type { RingSync } from './sync.ts';
import type { RingView } from './view.ts';
import type { RingWriter } from './writer.ts';

const MS = 1_000;
const ABSENT_POLL_MS = 3_000;
const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 5_000;
/** Longest random wait before founding; where every member shares this process, their turns are enough. */
const FOUNDING_WAIT_MS: Readonly<Record<string, number>> = { memory: 0, file: 1_000 };
const LONGEST_FOUNDING_WAIT_MS = 30_000;

export interface RingStartOptions {
  readonly store: RingStore;
  readonly policy: ResolvedPolicy;
  readonly role: 'member' | 'reader';
  readonly create: 'if-absent' | 'now' | 'never';
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly closing: AbortController;
  readonly view: RingView;
  readonly stored: StoredRingDocument;
  readonly sync: RingSync;
  readonly writer: RingWriter;
}

/**
 * Brings a member to where it can work: adopts the ring that is there, or founds one where there is none. Only a store
 * that says *absent* for long enough is empty; whatever else goes wrong is tried again or thrown, never taken for that.
 *
 * @throws {RingStoreError | KeyWrapperError} a refusal at once, a failure that may pass after `startTimeoutSeconds`.
 */
export async function startRing(options: RingStartOptions): Promise<void> {
  const { policy, clock, random, closing, stored, sync, role, writer, view } = options;
  const startedAt = view.now();
  let absentSince: Moment | undefined;
  for (let failures = 0; ; ) {
    closing.signal.throwIfAborted();
    try {
      const there = await stored.read();
      if (there !== undefined && (role === 'reader' || !sync.isDead(there.document))) {
        absentSince = undefined;
        await sync.start(there, { foreground: true });
        if (role === 'member') await writer.reviveIfDead();
        return;
      }
      absentSince ??= view.now();
      if (await foundOrWait(options, startedAt, absentSince, there)) return;
    } catch (error) {
      closing.signal.throwIfAborted();
      if (error instanceof RingConflictError) continue;
      const expired = ageMs(startedAt, view.now()) >= policy.startTimeoutSeconds * MS;
      if (expired || !mayPass(error)) throw error;
      const wait = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** failures);
      failures += 1;
      await pause(clock, wait * uniform(random), closing.signal);
    }
  }
}

/** Founds the ring once absence was seen for long enough. False: look again. */
async function foundOrWait(
  options: RingStartOptions,
  startedAt: Moment,
  absentSince: Moment,
  dead: Stored | undefined,
): Promise<boolean> {
  const { policy, clock, random, closing, role, create, view } = options;
  if (create === 'never' && dead === undefined) {
    throw new RingStoreError('corrupt', "there is no ring, and create is 'never'");
  }
  const now = view.now();
  const missing = role === 'member' ? policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;
  if (missing <= 0) {
    await (dead === undefined ? found(options) : revive(options, dead));
    return true;
  }
  const patience = policy.startTimeoutSeconds + (role === 'member' ? policy.createAfterSeconds : 0);
  if (ageMs(startedAt, now) >= patience * MS) throw new RingStoreError('unavailable', 'there is no ring yet');
  await pause(clock, Math.min(ABSENT_POLL_MS * (1 + uniform(random)), missing), closing.signal);
  return false;
}

/** Goes on from a ring whose keys have all ended. */
async function revive({ sync, writer }: RingStartOptions, dead: Stored): Promise<void> {
  await sync.start(dead, { foreground: true });
  await writer.reviveIfDead();
}

/** Founds the ring unless somebody else does: members that start at once must not each make a data key. */
async function found(options: RingStartOptions): Promise<void> {
  const { store, create, clock, random, closing, stored, writer, policy } = options;
  if (create !== 'now') {
    const fallback = Math.min(LONGEST_FOUNDING_WAIT_MS, policy.refreshEverySeconds * MS);
    const longest = FOUNDING_WAIT_MS[store.kind] ?? fallback;
    if (longest > 0) await pause(clock, lateDelayMs(uniform(random), longest), closing.signal);
  }
  await inTurn(store, async () => {
    if ((await stored.read()) !== undefined) throw new RingConflictError();
    await writer.found();
  });
}

/** The turns of codecs in one process that share a store object. */
const turns = new WeakMap<RingStore, Promise<unknown>>();

async function inTurn(store: RingStore, run: () => Promise<void>): Promise<void> {
  const turn = (turns.get(store) ?? Promise.resolve()).then(run);
  turns.set(
    store,
    turn.catch(() => undefined),
  );
  await turn;
}

/** What may be gone by the next attempt. */
function mayPass(error: unknown): boolean {
  if (error instanceof RingStoreError) return error.kind === 'unavailable';
  return error instanceof KeyWrapperError && (error.kind === 'unavailable' || error.kind === 'throttled');
}
