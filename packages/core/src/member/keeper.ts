import { type Deadline, later, msUntil, schedule, uniform } from '../base/clock.ts';
import { type Backoff, backoffMs } from '../base/retry.ts';
import { CodecClosedError } from '../contracts/errors.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import type { RingKey } from '../ring/snapshot.ts';
import { CausedReads, type PassOptions } from './caused-reads.ts';
import { Condition } from './condition.ts';
import { failureOf } from './failures.ts';
import { REFUSAL_PROBE_MS } from './kill-switch.ts';
import { Operations } from './operations.ts';
import { type MemberParts } from './parts.ts';
import { Rotation } from './rotation.ts';
import { startRing } from './start.ts';
import { Turns } from './turns.ts';
import type { RingView } from './view.ts';

const MS = 1_000;
const FIRST_BACKOFF_MS = 10_000;
const CONFLICT_WAIT_MS = 5_000;
const PUSH_WAIT_CAP_MS = 60_000;
/** Work that is due within this time is done now. */
const EARLY_MS = 1;

/**
 * Keeps the ring: decides when to read it, when to make a KMS check and when to try again, one operation at a time. The
 * other parts of the member perform the operations.
 */
export class RingKeeper {
  readonly view: RingView;
  readonly condition: Condition;
  readonly causedReads: CausedReads;
  readonly #o: MemberParts;
  readonly #turns = new Turns();
  readonly #rotation: Rotation;
  readonly #operations: Operations;
  /** The shortest interval between scheduled passes, in any state. */
  readonly #floorMs: number;
  #kernelEntropy: Uint8Array = new Uint8Array(0);
  #lastPassSteadyMs = Number.NEGATIVE_INFINITY;
  #pendingRefresh: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  #nextReadAt: Deadline | undefined;
  #isCheckWanted = false;
  #soonAt: Deadline | undefined;
  #unwatch: () => void = () => undefined;

  constructor(parts: MemberParts) {
    this.#o = parts;
    this.view = parts.view;
    this.#operations = new Operations(parts, this.#turns);
    this.#rotation = new Rotation(parts, this.#turns, (error) => {
      if (error !== undefined) this.condition.noteFailure(failureOf(error));
      this.condition.emitStatus();
    });
    this.condition = new Condition(parts, this.#rotation);
    this.causedReads = new CausedReads(parts, this.#turns, this.condition, {
      pass: (options) => this.#pass(options),
      background: (options, begin) => this.#background(options, begin),
      found: (isUnfinished) => this.#found(isUnfinished),
    });
    const { refreshEverySeconds, kmsCheckEverySeconds } = parts.policy;
    this.#floorMs = Math.min(MS, (Math.min(refreshEverySeconds, kmsCheckEverySeconds) * MS) / 2);
  }

  get kernelEntropy(): Uint8Array {
    return this.#kernelEntropy;
  }

  /** Resolves when all live keys are held and, for a member, one of them may seal. */
  async start(): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    await startRing(this.#o);
    this.#completed();
    this.#rotation.consider();
    this.#scheduleNext(this.#msUntilDue());
    this.#unwatch = this.#o.store.watch?.(() => this.causedReads.notified()) ?? this.#unwatch;
  }

  /** Stops timers and calls; nothing can be sealed or unsealed afterwards. */
  async close(): Promise<void> {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    this.#rotation.cancel();
    this.view.close();
    this.#o.closing.abort(new CodecClosedError());
    await this.#turns.idle;
    // A call that was still in progress may have unwrapped a key after the keys were first cleared.
    this.view.close();
    // This comes last, because it runs code of the store, which may throw.
    this.#unwatch();
  }

  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} when the store or the KMS fails. */
  refresh(): Promise<void> {
    this.#pendingRefresh ??= this.#turns.asked(() => {
      this.#pendingRefresh = undefined;
      return this.#pass({ foreground: true, reads: true });
    });
    return this.#pendingRefresh;
  }

  /** Publishes a successor: see {@link Operations.rotate}. */
  async rotate(reason: 'requested' | 'emergency'): Promise<void> {
    this.#assertMember();
    await this.#operations.rotate(reason);
  }

  /** Revokes keys: see {@link Operations.revoke}. */
  async revoke(isMeant: (key: RingKey) => boolean, mustExist?: string): Promise<void> {
    this.#assertMember();
    await this.#operations.revoke(isMeant, mustExist);
    this.#scheduleNext(this.#msUntilDue());
  }

  /** Schedules a pass that completes what a token led to, unless failing services delay the next pass. */
  #found(isUnfinished: boolean): void {
    if (isUnfinished) this.#soonAt ??= later(this.view.now(), FIRST_BACKOFF_MS * this.#uniform());
    if (this.condition.failures === 0) this.#scheduleNext(this.#msUntilDue());
  }

  /**
   * Runs one pass: reads the ring and makes the KMS check, each only if it is due. A failing store must not prevent the
   * KMS check, and a failing KMS must not prevent the read; while one of them fails, the other is not called more often
   * than usual.
   */
  async #pass(options: PassOptions): Promise<void> {
    this.#assertOpen();
    const began = this.view.now();
    this.#lastPassSteadyMs = began.steadyMs;
    this.#o.ringClock.tick(began);
    this.view.dropExpired(began);
    let failure: unknown;
    try {
      if (options.reads || this.#msUntilRead() <= EARLY_MS) await this.#read(options);
    } catch (error) {
      failure = error;
      this.#nextReadAt = undefined;
    }
    if (options.deferUnwraps === true && this.condition.failures > 0) {
      // A notification does not bring forward a call that failed recently: the timer for its retry is already set.
      this.condition.emitRefresh(failure, began);
      return;
    }
    try {
      await this.#check(options);
    } catch (error) {
      failure = error;
    }
    this.#assertOpen();
    if (failure === undefined) this.condition.passed();
    // A lost race is not a failure: the next read picks up the winner's document.
    else if (!(failure instanceof RingConflictError)) this.condition.failed(failure);
    this.#scheduleNext(this.#nextDelayMs(failure));
    this.condition.emitRefresh(failure, began);
    if (failure !== undefined) throw failure;
  }

  async #repair(): Promise<void> {
    try {
      await this.#o.writer.restore();
    } catch (error) {
      if (error instanceof RingStoreError && error.kind === 'unavailable') this.#o.sync.repairs.wasLost();
      throw error;
    }
  }

  /** Reads the ring and learns its facts; without `deferUnwraps`, also does the work that needs the whole ring. */
  async #read(options: PassOptions): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    let failure: unknown;
    try {
      await this.#o.sync.read(options);
    } catch (error) {
      failure = error;
    }
    if (this.#o.role === 'member' && this.#o.sync.wasAnswered && this.#o.sync.repairs.take()) {
      await this.#repair();
      failure = failure instanceof KeyWrapperError ? failure : undefined;
    }
    // One key that cannot be unwrapped yet, which an attacker may have written, does not stop the rest of the pass.
    if (failure !== undefined && !(failure instanceof KeyWrapperError)) throw failure;
    if (options.deferUnwraps === true && this.view.snapshot.carried.length > 0) {
      this.#soonAt ??= later(this.view.now(), this.#pushDelayMs());
      return;
    }
    if (failure === undefined) this.#completed();
    if (this.#o.role === 'member') {
      await this.#makeNeededKey();
      if (failure === undefined) await this.#o.writer.addMissingWraps(options);
      this.#rotation.consider();
    }
    if (failure !== undefined) throw failure;
  }

  /**
   * Creates a key for a ring that has no key to seal with, or that will soon have none. Reads the ring again if another
   * member is creating the key.
   */
  async #makeNeededKey(): Promise<void> {
    const { neededKey } = this.#o.writer;
    if (neededKey === undefined) return;
    const wait = await this.#o.founding.attempt(neededKey);
    if (wait > 0) this.#soonAt = later(this.view.now(), wait);
  }

  async #check(options: PassOptions): Promise<void> {
    // A timer may fire a moment early: a check that is almost due is made now, not in a separate pass.
    if (!this.#isCheckWanted && this.#o.sync.check.msUntilDue() > EARLY_MS) return;
    await this.#o.sync.check.run(options);
    this.#isCheckWanted = false;
    await this.#rotation.lookForNewVersion();
  }

  #completed(): void {
    const now = this.view.now();
    this.view.limits.completed(now);
    this.#soonAt = undefined;
    this.#nextReadAt = later(now, this.#refreshDelayMs());
  }

  #msUntilRead(): number {
    if (this.#nextReadAt === undefined) return 0;
    const now = this.view.now();
    const dues = [this.#nextReadAt, this.#soonAt, this.#repairAt];
    return Math.min(...dues.map((due) => (due === undefined ? Number.POSITIVE_INFINITY : msUntil(due, now))));
  }

  /** When this member repairs the store; a reader leaves that to others. */
  get #repairAt(): Deadline | undefined {
    return this.#o.role === 'member' ? this.#o.sync.repairs.dueAt : undefined;
  }

  #msUntilDue(): number {
    return Math.min(this.#msUntilRead(), this.#o.sync.check.msUntilDue(), this.view.msUntilEnd(this.view.now()));
  }

  #scheduleNext(delayMs: number): void {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    const sinceLast = this.view.now().steadyMs - this.#lastPassSteadyMs;
    const wait = Math.min(Math.max(delayMs, this.#floorMs - sinceLast), this.#o.policy.refreshEverySeconds * MS);
    this.#cancelTimer = schedule(this.#o.clock, () => this.#background({ reads: false }), wait);
    const overdue = later(this.view.now(), wait + this.#o.policy.backoffCapSeconds * MS);
    this.view.expectRefreshBefore(overdue, () => {
      this.#isCheckWanted = true;
      this.#nextReadAt = undefined;
      this.#scheduleNext(0);
    });
  }

  #background(options: Omit<PassOptions, 'foreground'>, begin: () => void = () => undefined): void {
    if (this.view.isClosed) return;
    const pass = this.#turns.background(() => {
      begin();
      return this.#pass(options);
    });
    // health() and the event report the failure; nothing awaits a background pass.
    pass.catch(() => undefined);
  }

  #nextDelayMs(failure: unknown): number {
    if (failure === undefined) return this.#msUntilDue();
    if (failure instanceof RingConflictError) return CONFLICT_WAIT_MS * this.#uniform();
    // A store that does not answer cannot be repaired, so only the backoff for failures applies.
    const repairAt = this.#o.sync.wasAnswered ? this.#repairAt : undefined;
    const untilRepair = repairAt === undefined ? Number.POSITIVE_INFINITY : msUntil(repairAt, this.view.now());
    // Calls are frequent while refusals are counted. Once sealing has stopped, a fleet must not hammer a disabled key.
    if (this.view.limits.isRefused(this.view.now()) && !this.view.limits.isStopped) {
      return Math.min(REFUSAL_PROBE_MS, untilRepair);
    }
    const capMs = this.#o.policy.backoffCapSeconds * MS;
    const backoff: Backoff = { firstMs: FIRST_BACKOFF_MS, capMs, leastMs: this.#floorMs };
    return Math.min(backoffMs(backoff, this.condition.failures, this.#uniform()), untilRepair);
  }

  #refreshDelayMs(): number {
    return this.#o.policy.refreshEverySeconds * MS * (1 - 0.2 * this.#uniform());
  }

  /** A random wait before unwraps: after a notification, the whole fleet must not call the KMS at the same time. */
  #pushDelayMs(): number {
    const wallMs = this.view.wallMs();
    const soonest = Math.min(...this.view.snapshot.carried.map((key) => Math.max(key.activates - wallMs, 0) / 4));
    return Math.min(PUSH_WAIT_CAP_MS, soonest, this.#o.policy.refreshEverySeconds * MS) * this.#uniform();
  }

  #uniform(): number {
    return uniform(this.#o.random);
  }

  #assertOpen(): void {
    if (this.view.isClosed) throw new CodecClosedError();
  }

  #assertMember(): void {
    this.#assertOpen();
    if (this.#o.role === 'reader') throw new RingStoreError('read-only', 'a reader does not write');
  }
}
