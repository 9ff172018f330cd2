import { ageMs, type Deadline, hasPassed, later, type Moment, msUntil, schedule, uniform } from '../base/clock.ts';
import { CodecClosedError } from '../contracts/errors.ts';
import type { Condition } from './condition.ts';
import type { MemberParts } from './parts.ts';
import type { SyncOptions } from './sync.ts';
import type { Turns } from './turns.ts';

const MS = 1_000;

/** Options of one pass. */
export interface PassOptions extends SyncOptions {
  /** Whether to read the ring before that is due. */
  readonly reads: boolean;
}

/** The parts of the keeper that {@link CausedReads} uses, because the keeper has the timers. */
interface Passes {
  pass(options: PassOptions): Promise<void>;
  /** Calls `begin` and makes a pass when its turn comes. Does not wait for the pass. */
  background(options: Omit<PassOptions, 'foreground'>, begin: () => void): void;
  /** Called after a read that a token caused; `isUnfinished` means that another pass must follow. */
  found(isUnfinished: boolean): void;
}

/**
 * The reads of the ring that others cause, by a token with an unknown key or a notification from the store. An attacker
 * can send either, so these reads are at least missRefresh apart.
 */
export class CausedReads {
  readonly #o: MemberParts;
  readonly #turns: Turns;
  readonly #condition: Condition;
  readonly #passes: Passes;
  /** When others can next cause a read of the ring. */
  #nextAt: Deadline | undefined;
  #underWay: Promise<void> = Promise.resolve();
  /** Whether a read that a token caused waits for its turn: while the store hangs, no further ones may queue up. */
  #isReadPending = false;
  #isPushPending = false;

  constructor(parts: MemberParts, turns: Turns, condition: Condition, passes: Passes) {
    this.#o = parts;
    this.#turns = turns;
    this.#condition = condition;
    this.#passes = passes;
  }

  /** Reads the ring soon, at most once per missRefresh, if a token named a key that is not in the ring. */
  noteUnknownKey(id: string | undefined, now: Moment): void {
    if (id === undefined || !this.#o.view.snapshot.byId.has(id)) void this.forToken(now, {});
  }

  /**
   * Reads the ring because of a token, at most once per missRefresh: an attacker may choose the token. Resolves when
   * that read, or a pending one that another token caused, has ended, even if it failed.
   */
  forToken(now: Moment, options: { readonly foreground?: boolean }): Promise<void> {
    const isDue = this.#nextAt === undefined || hasPassed(this.#nextAt, now);
    if (isDue && !this.#isReadPending) {
      this.#isReadPending = true;
      const read = this.#turns.background(() => {
        this.#isReadPending = false;
        this.#nextAt = later(this.#o.view.now(), this.#o.policy.missRefreshSeconds * MS);
        return this.#read(options);
      });
      // The failure is in health() and in the event.
      this.#underWay = read.catch(() => undefined);
    }
    return this.#underWay;
  }

  /**
   * Reads the ring once and unwraps its new keys. Runs a complete pass if one is overdue, because timers do not run
   * while a process is frozen.
   */
  async #read(options: { readonly foreground?: boolean }): Promise<void> {
    const { sync, view, writer } = this.#o;
    if (view.isClosed) throw new CodecClosedError();
    if (this.#isOverdue(view.now())) return this.#passes.pass({ ...options, reads: true });
    const began = view.now();
    let failure: unknown;
    try {
      await sync.read({ forToken: true });
    } catch (error) {
      failure = error;
    }
    this.#condition.emitRefresh(failure, began);
    this.#passes.found(view.snapshot.carried.length > 0 || writer.isDead);
  }

  /** Schedules a pass after a notification from the store, unless such a pass is already pending. */
  notified(): void {
    const { clock, policy, random, view } = this.#o;
    if (view.isClosed || this.#isPushPending) return;
    const jitterMs = policy.missRefreshSeconds * MS * 0.2 * uniform(random);
    const next = this.#nextAt;
    const wait = next === undefined || hasPassed(next, view.now()) ? 0 : msUntil(next, view.now()) + jitterMs;
    this.#isPushPending = true;
    schedule(
      clock,
      () => {
        this.#passes.background({ reads: true, deferUnwraps: true }, () => {
          this.#isPushPending = false;
          this.#nextAt = later(view.now(), policy.missRefreshSeconds * MS);
        });
      },
      wait,
    );
  }

  /**
   * Whether a refresh could change the result for a token of the key `id`. While passes fail, the age of the view is
   * ignored: otherwise every token would wait for a KMS that hangs, although tokens of held keys can be unsealed
   * without it.
   */
  isWorthWaitingFor(id: string | undefined, now: Moment): boolean {
    if (id !== undefined && !this.#o.view.snapshot.byId.has(id)) return true;
    return this.#isOverdue(now);
  }

  /** Whether a read or a KMS check is overdue, and neither is known to fail. */
  #isOverdue(now: Moment): boolean {
    const { policy, view } = this.#o;
    const { refreshEverySeconds, kmsCheckEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = policy;
    // If the last failure is older, this machine was suspended, or the next pass is overdue.
    if (this.#condition.hasFailedWithin((backoffCapSeconds + 4 * kmsTimeoutSeconds) * MS, now)) return false;
    const { lastRead, lastKmsCheck } = view.limits;
    if (lastRead === undefined || ageMs(lastRead, now) > refreshEverySeconds * MS) return true;
    return lastKmsCheck === undefined || ageMs(lastKmsCheck, now) > kmsCheckEverySeconds * MS;
  }
}
