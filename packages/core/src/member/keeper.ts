import {
  ageMs,
  type Deadline,
  hasPassed,
  later,
  type Moment,
  msUntil,
  pause,
  schedule,
  secondsSince,
  uniform,
} from '../base/clock.ts';
import { type Backoff, backoffMs, retry } from '../base/retry.ts';
import { CodecClosedError } from '../contracts/errors.ts';
import { channels } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, type RingStore, RingStoreError } from '../contracts/ring-store.ts';
import type { CallOptions } from '../kms/kms-calls.ts';
import type { KeyWraps, WrappedVersion } from '../kms/wraps.ts';
import { revocable } from '../ring/facts.ts';
import { MAX_KEYS_TO_ROTATE, MAX_KEYS_TO_SCHEDULE } from '../ring/policy.ts';
import {
  type KeyTimes,
  newest,
  type RotationReason,
  rotateAt,
  rotationDelayMs,
  timesOfNewKey,
} from '../ring/schedule.ts';
import type { RingKey } from '../ring/snapshot.ts';
import { REFUSAL_PROBE_MS } from './kill-switch.ts';
import { problemsOf, type RingProblem } from './problems.ts';
import { type RingStartOptions, startRing } from './start.ts';
import type { SyncOptions } from './sync.ts';
import { Turns } from './turns.ts';
import type { RingView } from './view.ts';

const MS = 1_000;
const FIRST_BACKOFF_MS = 10_000;
const CONFLICT_WAIT_MS = 5_000;
const PUSH_WAIT_CAP_MS = 60_000;
const FIRST_ROTATION_BACKOFF_MS = 120_000;
/** Between lost races. */
const CONFLICTS: Backoff = { firstMs: 10, capMs: MS };
/** What is due so soon is done now. */
const EARLY_MS = 1;
/** Deadlines of a call for which a revocation goes on asking a store that does not answer. */
const CALLS_OF_A_REVOCATION = 4;
/** Rounds after which a writer that loses every race gives up. */
const MAX_CONFLICTS = 64;

export interface RingKeeperOptions extends RingStartOptions {
  readonly wraps: KeyWraps;
  readonly store: RingStore;
  /** 32 bytes of the kernel's random device; empty where there is none. */
  readonly readKernelEntropy: () => Promise<Uint8Array>;
}

/** How one pass is made. */
interface PassOptions extends SyncOptions {
  /** Whether the ring is read though that is not due yet. */
  readonly reads: boolean;
}

/** What last went wrong: whose answer, of which kind, when. */
export interface KeeperFailure {
  readonly kind: string;
  readonly at: Date;
}

/**
 * Keeps the ring: the only place with timers. Decides when to read, prove, rotate and try again, one thing at a time;
 * how each is done is the business of sync and writer.
 */
export class RingKeeper {
  readonly view: RingView;
  readonly #o: RingKeeperOptions;
  readonly #turns = new Turns();
  /** No loop is faster than this, whatever state it is in. */
  readonly #floorMs: number;
  #kernelEntropy: Uint8Array = new Uint8Array(0);
  #lastPassSteadyMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #lastFailure: KeeperFailure | undefined;
  #failedAt: Moment | undefined;
  #lastStatus = '';
  #pendingRefresh: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  #nextReadAt: Deadline | undefined;
  #proofWanted = false;
  /** When others, by a token or a notification, can next cause a read of the ring. */
  #nextCausedReadAt: Deadline | undefined;
  #missPass: Promise<void> = Promise.resolve();
  #isPushPending = false;
  #soonAt: Deadline | undefined;
  #cancelRotation: (() => void) | undefined;
  #versionDueAt: Deadline | undefined;
  /** A version of the KMS key that no key of the ring was wrapped by when it was noticed. */
  #newVersion: WrappedVersion | undefined;
  #rotationFailures = 0;
  #unwatch: () => void = () => undefined;

  constructor(options: RingKeeperOptions) {
    this.#o = options;
    this.view = options.view;
    const { refreshEverySeconds, proveEverySeconds } = options.policy;
    this.#floorMs = Math.min(MS, (Math.min(refreshEverySeconds, proveEverySeconds) * MS) / 2);
  }

  get kernelEntropy(): Uint8Array {
    return this.#kernelEntropy;
  }

  get lastFailure(): KeeperFailure | undefined {
    return this.#lastFailure;
  }

  /** `failing`: cannot do its work or must not be sent any. `degraded`: works, but something needs a look. */
  status(now: Moment): 'ok' | 'degraded' | 'failing' {
    if (!this.view.isReady(now)) return 'failing';
    const isTroubled = this.#failures > 0 || this.#rotationFailures > 0 || this.view.limits.isRefused(now);
    return isTroubled || this.#o.sync.isRepairing || this.problems(now).length > 0 ? 'degraded' : 'ok';
  }

  /** What an operator should know of, with what to do about it. */
  problems(now: Moment): readonly RingProblem[] {
    const { role, sync, writer, ringClock } = this.#o;
    return problemsOf({ role, view: this.view, sync, writer, clock: ringClock }, now);
  }

  /** Resolves when all live keys are held and, for a member, one of them may seal. */
  async start(): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    await startRing(this.#o);
    this.#completed();
    this.#considerRotation();
    this.#scheduleNext(this.#msUntilDue());
    this.#unwatch = this.#o.store.watch?.(() => this.#pushed()) ?? this.#unwatch;
  }

  /** Stops timers and calls; nothing can be sealed or opened from now on. */
  async close(): Promise<void> {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    this.#cancelRotation?.();
    this.#unwatch();
    this.view.close();
    this.#o.closing.abort(new CodecClosedError());
    await this.#turns.idle;
    // A call that was under way may have unwrapped a key after the first clearing.
    this.view.close();
  }

  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} what went wrong. */
  refresh(): Promise<void> {
    this.#assertOpen();
    this.#pendingRefresh ??= this.#turns.asked(() => {
      this.#pendingRefresh = undefined;
      return this.#pass({ foreground: true, reads: true });
    });
    return this.#pendingRefresh;
  }

  /** Publishes a successor. A lost race is tried again only if the winner's key does not fulfil the wish. */
  async rotate(reason: 'requested' | 'emergency'): Promise<void> {
    this.#assertMember('rotate');
    const { policy, writer } = this.#o;
    const wished = timesOfNewKey(reason, this.view.wallMs(), policy).activates + policy.clockSkewSeconds * MS;
    let known: ReadonlySet<string> | undefined;
    await this.#publishing(reason, () =>
      this.#retryConflicts(async () => {
        await this.#readToWrite({ foreground: true });
        const { keys } = this.view.snapshot;
        const before = known;
        const fulfilled = keys.some((key) => before?.has(key.id) === false && !key.revoked && key.activates <= wished);
        if (fulfilled) return;
        known = new Set(keys.map((key) => key.id));
        await writer.publish(reason);
      }),
    );
  }

  /**
   * Revokes the keys that `isMeant` picks as the ring is read now; keys that are active at once and come while others
   * write too are successors that the same wish brought, and stay. Neither the KMS nor the clock can refuse it.
   * @throws {RangeError} when `mustExist` names a key that the ring does not have.
   */
  async revoke(isMeant: (key: RingKey) => boolean, mustExist?: string): Promise<void> {
    this.#assertMember('revoke');
    let before: ReadonlySet<string> | undefined;
    const patience = later(this.view.now(), CALLS_OF_A_REVOCATION * this.#o.policy.kmsTimeoutSeconds * MS);
    await this.#publishing('revocation', () =>
      this.#retryConflicts(async () => {
        await this.#readToRevoke();
        const { byId, carried, unreadable } = this.view.snapshot;
        const isKnown = ({ id }: { readonly id: string }): boolean => id === mustExist;
        if (mustExist !== undefined && !byId.has(mustExist) && ![...carried, ...unreadable].some(isKnown)) {
          throw new RangeError(`revoke: the ring has no key ${JSON.stringify(mustExist.slice(0, 80))}`);
        }
        const keys = revocable(this.view.snapshot);
        const known = (before ??= new Set(keys.map(({ id }) => id)));
        const isSuccessor = (key: RingKey): boolean => !known.has(key.id) && key.activates <= key.created;
        const meant = keys.filter((key) => isMeant(key) && !isSuccessor(key));
        if (meant.length > 0) await this.#o.writer.revoke(meant);
      }, patience),
    );
    this.#scheduleNext(this.#msUntilDue());
  }

  /** A ring that is absent, or junk in its place, is written over at once; what the KMS does not unwrap is left. */
  async #readToRevoke(): Promise<void> {
    try {
      await this.#o.sync.read({ foreground: true });
    } catch (error) {
      const wasRead = this.#o.sync.wasAnswered;
      if (!wasRead || error instanceof RingConflictError) throw error;
    }
  }

  /** A token named a key that is not in the ring: reads the ring soon, at most once per missRefresh. */
  noteUnknownKey(id: string | undefined, now: Moment): void {
    if (id === undefined || !this.view.snapshot.byId.has(id)) void this.refreshForToken(now, { foreground: false });
  }

  /**
   * Reads the ring because of a token, at most once per missRefresh: tokens are attacker-chosen. Resolves, whatever
   * comes of it, when that read, or one that another token caused and that is still under way, has ended.
   */
  refreshForToken(now: Moment, options: { readonly foreground: boolean }): Promise<void> {
    if (this.#nextCausedReadAt === undefined || hasPassed(this.#nextCausedReadAt, now)) {
      this.#nextCausedReadAt = later(now, this.#o.policy.missRefreshSeconds * MS);
      // The failure is in health() and in the event.
      this.#missPass = this.#turns.background(() => this.#missed(options)).catch(() => undefined);
    }
    return this.#missPass;
  }

  /**
   * Because of a token: one read of the ring, and unwraps of what is new in it. Whatever is due by age is done too, as a
   * timer would have: they do not run while a process is frozen.
   */
  async #missed(options: { readonly foreground: boolean }): Promise<void> {
    this.#assertOpen();
    if (this.#isOverdue(this.view.now())) return this.#pass({ ...options, reads: true });
    const began = this.view.now();
    let failure: unknown;
    try {
      await this.#o.sync.read({ foreground: false, forToken: true });
    } catch (error) {
      failure = error;
    }
    this.#announce(failure, began);
    // What a token brought to light is done by a pass of its own, unless the next one waits for services that fail.
    const isUnfinished = this.view.snapshot.carried.length > 0 || this.#o.writer.isDead;
    if (isUnfinished) this.#soonAt ??= later(this.view.now(), FIRST_BACKOFF_MS * this.#uniform());
    if ((isUnfinished || this.#o.sync.isRepairing) && this.#failures === 0) this.#scheduleNext(this.#msUntilDue());
    if (failure !== undefined) throw failure;
  }

  /** Notifications may come from anybody who can send them: one pass is pending at most, missRefresh apart at least. */
  #pushed(): void {
    if (this.view.isClosed || this.#isPushPending) return;
    const jitterMs = this.#o.policy.missRefreshSeconds * MS * 0.2 * this.#uniform();
    const next = this.#nextCausedReadAt;
    const wait = next === undefined || hasPassed(next, this.view.now()) ? 0 : msUntil(next, this.view.now()) + jitterMs;
    this.#isPushPending = true;
    schedule(
      this.#o.clock,
      () => {
        this.#background({ reads: true, deferUnwraps: true }, () => {
          this.#isPushPending = false;
          this.#nextCausedReadAt = later(this.view.now(), this.#o.policy.missRefreshSeconds * MS);
        });
      },
      wait,
    );
  }

  /**
   * Whether a refresh could change what becomes of a token of the key `id`. Of age alone not while passes are known to
   * fail: every token would wait for a KMS that hangs, and what may be opened without it is opened all the same.
   */
  needsRefreshFor(id: string | undefined, now: Moment): boolean {
    if (id !== undefined && !this.view.snapshot.byId.has(id)) return true;
    return this.#isOverdue(now);
  }

  /** Whether ring or KMS should have been asked by now, and are not known to fail. */
  #isOverdue(now: Moment): boolean {
    const { refreshEverySeconds, proveEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = this.#o.policy;
    // Older than that, this machine was suspended, or the next pass is overdue.
    const recentMs = (backoffCapSeconds + 4 * kmsTimeoutSeconds) * MS;
    if (this.#failedAt !== undefined && ageMs(this.#failedAt, now) <= recentMs) return false;
    const { lastRead, lastProof } = this.view.limits;
    if (lastRead === undefined || ageMs(lastRead, now) > refreshEverySeconds * MS) return true;
    return lastProof === undefined || ageMs(lastProof, now) > proveEverySeconds * MS;
  }

  /**
   * One pass: what is due of reading the ring and of proving the key. A store that fails must not keep the KMS from
   * proving, nor the other way round; and while one of them fails, the other is not asked more often than otherwise.
   */
  async #pass(options: PassOptions): Promise<void> {
    this.#assertOpen();
    const began = this.view.now();
    this.#lastPassSteadyMs = began.steadyMs;
    this.#o.ringClock.tick(began);
    this.view.retire(began);
    let failure: unknown;
    try {
      if (options.reads || this.#msUntilRead() <= EARLY_MS) await this.#read(options);
    } catch (error) {
      failure = error;
      this.#nextReadAt = undefined;
    }
    if (options.deferUnwraps === true && this.#failures > 0) {
      // A notification is no reason to ask earlier for what failed lately: that has its time, and the timer is set.
      this.#announce(failure, began);
      return;
    }
    try {
      await this.#prove(options);
    } catch (error) {
      failure = error;
    }
    this.#assertOpen();
    if (failure === undefined) {
      this.#failures = 0;
      this.#failedAt = undefined;
      if (this.view.clockTrouble() !== undefined) this.#lastFailure = this.#failureNow('clock');
      // A rotation that is overdue and keeps failing stays to be seen.
      else if (this.#rotationFailures === 0) this.#lastFailure = undefined;
    } else if (!(failure instanceof RingConflictError)) {
      // A lost race is no failure: the next read learns what the winner wrote.
      this.#recordFailure(failure);
    }
    this.#scheduleNext(this.#nextDelayMs(failure));
    this.#announce(failure, began);
    if (failure !== undefined) throw failure;
  }

  async #repair(): Promise<void> {
    try {
      await this.#o.writer.restore();
    } catch (error) {
      if (error instanceof RingStoreError && error.kind === 'unavailable') this.#o.sync.repairWasLost();
      throw error;
    }
  }

  /** Reads and learns; without `deferUnwraps` also what follows from having the whole ring. */
  async #read(options: PassOptions): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    let failure: unknown;
    try {
      await this.#o.sync.read(options);
    } catch (error) {
      failure = error;
    }
    if (this.#o.role === 'member' && this.#o.sync.takeRepair()) {
      await this.#repair();
      failure = failure instanceof KeyWrapperError ? failure : undefined;
    }
    // One key that cannot be unwrapped yet, which may be anybody's, does not keep this member from its other duties.
    if (failure !== undefined && !(failure instanceof KeyWrapperError)) throw failure;
    if (options.deferUnwraps === true && this.view.snapshot.carried.length > 0) {
      this.#soonAt ??= later(this.view.now(), this.#pushDelayMs());
      return;
    }
    if (failure === undefined) this.#completed();
    if (this.#o.role === 'member') {
      await this.#makeNeededKey();
      if (failure === undefined) await this.#o.writer.addMissingWraps(options);
      this.#considerRotation();
    }
    if (failure !== undefined) throw failure;
  }

  /** Before something is written: what cannot be unwrapped yet does not hinder that. */
  async #readToWrite(options: CallOptions): Promise<void> {
    try {
      await this.#o.sync.read(options);
    } catch (error) {
      if (!(error instanceof KeyWrapperError)) throw error;
    }
  }

  /** Makes the key of a ring that has none to seal with, or soon will not; looks again where another is at it. */
  async #makeNeededKey(): Promise<void> {
    const { neededKey } = this.#o.writer;
    if (neededKey === undefined) return;
    const wait = await this.#o.founding.attempt(neededKey);
    if (wait > 0) this.#soonAt = later(this.view.now(), wait);
  }

  async #prove(options: PassOptions): Promise<void> {
    // A timer may fire a moment early: a proof that is all but due is made now, not in a pass of its own.
    if (!this.#proofWanted && this.#o.sync.msUntilProof() > EARLY_MS) return;
    await this.#o.sync.prove(options);
    this.#proofWanted = false;
    await this.#lookForNewVersion();
  }

  /** After a proof, when that is due: a KMS that fails is asked for nothing more. */
  async #lookForNewVersion(): Promise<void> {
    const { role, policy, wraps } = this.#o;
    if (role === 'reader' || policy.keyVersionEverySeconds === 0) return;
    const now = this.view.now();
    const everyMs = policy.keyVersionEverySeconds * MS;
    // Members that start at once do not look at once.
    this.#versionDueAt ??= later(now, everyMs * this.#uniform());
    if (!hasPassed(this.#versionDueAt, now)) return;
    this.#versionDueAt = later(now, everyMs * (1 - 0.2 * this.#uniform()));
    let found: WrappedVersion | undefined;
    try {
      found = await wraps.newVersion(this.view.knownWraps);
    } catch (error) {
      // Told as a call that failed. Nothing hangs on it but a rotation that would fail too.
      if (error instanceof KeyWrapperError) return;
      throw error;
    }
    if (found === undefined) return;
    this.#newVersion = found;
    channels['key-version'].publish(() => ({ provider: found.provider, version: found.keyId }));
    this.#considerRotation();
  }

  /** Whether a version was noticed, and nobody has rotated since. */
  get #isVersionNew(): boolean {
    const found = this.#newVersion;
    if (found === undefined) return false;
    const isWrapped = this.view.knownWraps.some(
      ({ provider, keyId }) => provider === found.provider && keyId === found.keyId,
    );
    if (isWrapped) this.#newVersion = undefined;
    return !isWrapped;
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
    const { repairAt } = this.#o.sync;
    const dues = [this.#nextReadAt, this.#soonAt, this.#o.role === 'member' ? repairAt : undefined];
    return Math.min(...dues.map((due) => (due === undefined ? Number.POSITIVE_INFINITY : msUntil(due, now))));
  }

  #msUntilDue(): number {
    return Math.min(this.#msUntilRead(), this.#o.sync.msUntilProof(), this.view.msUntilEnd(this.view.now()));
  }

  #considerRotation(): void {
    if (this.#o.role === 'reader') return;
    if (!this.#isRotationDue()) {
      // Somebody else rotated, or this member may not: nothing is overdue here.
      this.#rotationFailures = 0;
      return;
    }
    if (this.#cancelRotation !== undefined) return;
    if (this.#rotationFailures === 0) {
      this.#waitTurn({ isLast: false });
      return;
    }
    const capMs = this.#o.policy.proveEverySeconds * MS;
    const backoff: Backoff = { firstMs: FIRST_ROTATION_BACKOFF_MS, capMs, leastShare: 0.5 };
    this.#rotateAfter(backoffMs(backoff, this.#rotationFailures, this.#uniform()), { isLast: false });
  }

  /** Two turns take as long as the one wait of {@link rotationDelayMs}. */
  #waitTurn(options: { readonly isLast: boolean }): void {
    this.#rotateAfter(rotationDelayMs(this.#uniform(), this.#o.policy) / 2, options);
  }

  #rotateAfter(waitMs: number, options: { readonly isLast: boolean }): void {
    this.#cancelRotation = schedule(
      this.#o.clock,
      () => {
        this.#cancelRotation = undefined;
        if (!this.view.isClosed) void this.#turns.background(() => this.#rotateIfDue(options));
      },
      waitMs,
    );
  }

  /**
   * Only who finds, at the end of a first turn, that the KMS answers (a proof tells) waits a second turn, and makes a key
   * after it. When an outage ends, members of a large fleet come to the end of a turn every moment: with one turn each of
   * them made a key until the first one was stored.
   */
  async #rotateIfDue({ isLast }: { readonly isLast: boolean }): Promise<void> {
    const began = this.view.now();
    const reason = this.#isAgeDue() ? 'scheduled' : 'key-version';
    try {
      await this.#readToWrite({ foreground: false });
      if (!isLast && this.#isRotationDue()) {
        await this.#o.sync.prove({ foreground: false });
        this.#waitTurn({ isLast: true });
        return;
      }
      if (this.#isRotationDue()) await this.#o.writer.publish(reason);
      this.#rotationFailures = 0;
    } catch (error) {
      if (this.view.isClosed || error instanceof RingConflictError) return;
      this.#rotationFailures += 1;
      this.#lastFailure = this.#failureNow(kindOf(error));
      this.#announceFailedRotation(reason, error, began);
      this.#considerRotation();
    }
    this.#announceStatus();
  }

  #isRotationDue(): boolean {
    if (this.view.isClosed) return false;
    const now = this.view.now();
    if (this.view.sealBlock(now) !== undefined || this.view.clockTrouble(now) !== undefined) return false;
    if (this.#o.writer.keyCount >= MAX_KEYS_TO_SCHEDULE) return false;
    return this.#isAgeDue() || this.#isVersionDue();
  }

  /** One for all members, and one in a while: a service may go on wrapping by an old version when it has named a new one. */
  #isVersionDue(): boolean {
    if (!this.#isVersionNew || this.#o.writer.keyCount >= MAX_KEYS_TO_ROTATE) return false;
    const { keys, carried } = this.view.snapshot;
    const youngestMs = Math.max(...[...keys.filter(({ isLeft }) => !isLeft), ...carried].map(({ created }) => created));
    return this.view.wallMs() >= youngestMs + this.#o.policy.keyVersionEverySeconds * MS;
  }

  #isAgeDue(): boolean {
    const { keys, carried } = this.view.snapshot;
    const last = newest<KeyTimes & { readonly id: string }>([
      ...keys.filter((key) => !key.revoked && !key.isLeft),
      ...carried,
    ]);
    return last !== undefined && this.view.wallMs() >= rotateAt(last, this.#o.policy);
  }

  /** Runs what publishes a key because somebody asked for it, and tells of its failure. */
  async #publishing(reason: RotationReason, run: () => Promise<void>): Promise<void> {
    const began = this.view.now();
    try {
      await this.#turns.asked(run);
    } catch (error) {
      if (!this.view.isClosed) this.#announceFailedRotation(reason, error, began);
      throw error;
    }
  }

  /** Tries again after a lost race and, until `patience` has passed, when the store did not answer. */
  #retryConflicts(attempt: () => Promise<void>, patience?: Deadline): Promise<void> {
    return retry(attempt, {
      waitMs: (error, failures) => {
        const isSilent = error instanceof RingStoreError && error.kind === 'unavailable';
        const isPatient = isSilent && patience !== undefined && !hasPassed(patience, this.view.now());
        const isFinal = !(error instanceof RingConflictError || isPatient) || failures > MAX_CONFLICTS;
        return isFinal ? undefined : backoffMs(CONFLICTS, failures, this.#uniform());
      },
      pause: (delayMs) => pause(this.#o.clock, delayMs, this.#o.closing),
    });
  }

  #scheduleNext(delayMs: number): void {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    const sinceLast = this.view.now().steadyMs - this.#lastPassSteadyMs;
    const wait = Math.min(Math.max(delayMs, this.#floorMs - sinceLast), this.#o.policy.refreshEverySeconds * MS);
    this.#cancelTimer = schedule(this.#o.clock, () => this.#background({ reads: false }), wait);
    const overdue = later(this.view.now(), wait + this.#o.policy.backoffCapSeconds * MS);
    this.view.expectRefreshBefore(overdue, () => {
      this.#proofWanted = true;
      this.#nextReadAt = undefined;
      this.#scheduleNext(0);
    });
  }

  #background(options: Omit<PassOptions, 'foreground'>, begin: () => void = () => undefined): void {
    if (this.view.isClosed) return;
    const pass = this.#turns.background(() => {
      begin();
      return this.#pass({ foreground: false, ...options });
    });
    // The failure is in health() and in the event; nobody awaits a background pass.
    pass.catch(() => undefined);
  }

  #nextDelayMs(failure: unknown): number {
    if (failure instanceof RingConflictError) return CONFLICT_WAIT_MS * this.#uniform();
    if (failure !== undefined) {
      const untilRepair = this.#msUntilRepair();
      // Asked again soon while refusals are being counted; once they count, a fleet must not hammer a disabled key.
      if (this.view.limits.isRefused(this.view.now()) && !this.view.limits.isStopped) {
        return Math.min(REFUSAL_PROBE_MS, untilRepair);
      }
      const capMs = this.#o.policy.backoffCapSeconds * MS;
      const backoff: Backoff = { firstMs: FIRST_BACKOFF_MS, capMs, leastMs: this.#floorMs };
      return Math.min(backoffMs(backoff, this.#failures, this.#uniform()), untilRepair);
    }
    return this.#msUntilDue();
  }

  #msUntilRepair(): number {
    const { repairAt } = this.#o.sync;
    if (repairAt === undefined || this.#o.role === 'reader') return Number.POSITIVE_INFINITY;
    return msUntil(repairAt, this.view.now());
  }

  #refreshDelayMs(): number {
    return this.#o.policy.refreshEverySeconds * MS * (1 - 0.2 * this.#uniform());
  }

  /** After a push the whole fleet has read at once: it must not ask the KMS at once. */
  #pushDelayMs(): number {
    const wallMs = this.view.wallMs();
    const soonest = Math.min(...this.view.snapshot.carried.map((key) => Math.max(key.activates - wallMs, 0) / 4));
    return Math.min(PUSH_WAIT_CAP_MS, soonest, this.#o.policy.refreshEverySeconds * MS) * this.#uniform();
  }

  #recordFailure(error: unknown): void {
    this.#failures += 1;
    this.#failedAt = this.view.now();
    this.#lastFailure = this.#failureNow(kindOf(error));
  }

  #failureNow(kind: string): KeeperFailure {
    return { kind, at: new Date(this.view.now().wallMs) };
  }

  #announce(failure: unknown, began: Moment): void {
    channels.refresh.publish(() => ({
      seconds: secondsSince(began, this.view.now()),
      ok: failure === undefined,
      ...(failure === undefined ? {} : { kind: kindOf(failure) }),
    }));
    this.#announceStatus();
  }

  #announceFailedRotation(reason: RotationReason, error: unknown, began: Moment): void {
    channels['rotation-failed'].publish(() => ({
      reason,
      kind: kindOf(error),
      seconds: secondsSince(began, this.view.now()),
    }));
  }

  #announceStatus(): void {
    if (this.view.isClosed) return;
    const status = this.status(this.view.now());
    if (status === this.#lastStatus) return;
    this.#lastStatus = status;
    channels.state.publish(() => ({ status }));
  }

  #uniform(): number {
    return uniform(this.#o.random);
  }

  #assertOpen(): void {
    if (this.view.isClosed) throw new CodecClosedError();
  }

  #assertMember(operation: string): void {
    this.#assertOpen();
    if (this.#o.role === 'reader') throw new RingStoreError('read-only', `a reader does not ${operation}`);
  }
}

function kindOf(error: unknown): string {
  if (error instanceof RingStoreError) return `store ${error.kind}`;
  if (error instanceof KeyWrapperError) return `kms ${error.kind}`;
  return error instanceof RingConflictError ? 'conflict' : 'internal';
}
