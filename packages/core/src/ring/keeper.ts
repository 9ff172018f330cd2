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
} from '../clock.ts';
import { CodecClosedError } from '../errors.ts';
import { channels } from '../events.ts';
import { KeyWrapperError } from '../key-wrapper.ts';
import { REFUSAL_PROBE_MS } from './kill-switch.ts';
import { newest, type RotationReason, rotateAt, rotationDelayMs, timesOfNewKey } from './schedule.ts';
import type { RingKey } from './snapshot.ts';
import { type RingStartOptions, startRing } from './start.ts';
import { RingConflictError, type RingStore, RingStoreError } from './store.ts';
import type { SyncOptions } from './sync.ts';
import type { RingView } from './view.ts';

const MS = 1_000;
const BACKOFF_BASE_MS = 10_000;
const CONFLICT_WAIT_MS = 5_000;
const PUSH_WAIT_CAP_MS = 60_000;
const ROTATION_BACKOFF_MS = 60_000;
/** What is due so soon is done now. */
const EARLY_MS = 1;
/** Rounds after which a writer that loses every race gives up. */
const MAX_CONFLICTS = 64;

export interface RingKeeperOptions extends RingStartOptions {
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
  #kernelEntropy: Uint8Array = new Uint8Array(0);
  #failures = 0;
  #lastFailure: KeeperFailure | undefined;
  #failedAt: Moment | undefined;
  #lastStatus = '';
  #queue: Promise<unknown> = Promise.resolve();
  #pendingRefresh: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  #nextReadAt: Deadline | undefined;
  #proofWanted = false;
  #missRefreshAt: Deadline | undefined;
  #missPass: Promise<void> = Promise.resolve();
  #cancelRotation: (() => void) | undefined;
  #rotationFailures = 0;
  #unwatch: () => void = () => undefined;

  constructor(options: RingKeeperOptions) {
    this.#o = options;
    this.view = options.view;
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
    const isTroubled = this.#failures > 0 || this.#rotationFailures > 0;
    return isTroubled || this.view.limits.isRefused || this.#o.sync.isHealing ? 'degraded' : 'ok';
  }

  /** Resolves when all live keys are held and, for a member, one of them may seal. */
  async start(): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    await startRing(this.#o);
    this.#completed();
    this.#considerRotation();
    this.#scheduleNext(this.#msUntilDue());
    this.#unwatch = this.#o.store.watch?.(() => this.#background({ reads: true, deferUnwraps: true })) ?? this.#unwatch;
  }

  /** Stops timers and calls; nothing can be sealed or opened from now on. */
  async close(): Promise<void> {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    this.#cancelRotation?.();
    this.#unwatch();
    this.view.close();
    this.#o.closing.abort(new CodecClosedError());
    await this.#queue;
    // A call that was under way may have unwrapped a key after the first clearing.
    this.view.close();
  }

  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} what went wrong. */
  refresh(): Promise<void> {
    this.#assertOpen();
    this.#pendingRefresh ??= this.#exclusive(() => {
      this.#pendingRefresh = undefined;
      return this.#pass({ foreground: true, reads: true });
    });
    return this.#pendingRefresh;
  }

  /** Publishes a successor. A lost race is tried again only if the winner's key does not fulfil the wish. */
  async rotate(reason: 'requested' | 'emergency'): Promise<void> {
    this.#assertMember('rotate');
    const { policy, sync, writer } = this.#o;
    const wished = timesOfNewKey(reason, this.view.wallMs(), policy).activates + policy.clockSkewSeconds * MS;
    let known: ReadonlySet<string> | undefined;
    await this.#publishing(reason, () =>
      this.#retryConflicts(async () => {
        await sync.read({ foreground: true });
        const { keys } = this.view.snapshot;
        const before = known;
        const fulfilled = keys.some((key) => before?.has(key.id) === false && !key.revoked && key.activates <= wished);
        if (fulfilled) return;
        known = new Set(keys.map((key) => key.id));
        await writer.publish(reason);
      }),
    );
  }

  /** Revokes the keys that `isMeant` picks; a successor becomes active in the same write. */
  async revoke(isMeant: (key: RingKey) => boolean): Promise<void> {
    this.#assertMember('revoke');
    await this.#publishing('revocation', () =>
      this.#retryConflicts(async () => {
        await this.#o.sync.read({ foreground: true });
        const meant = this.view.snapshot.keys.filter((key) => !key.revoked && isMeant(key));
        if (meant.length === 0) return;
        const ids = new Set(meant.map((key) => key.id));
        const revoked = Math.floor(this.view.wallMs() / MS) * MS;
        await this.#o.writer.publish('revocation', (entries) =>
          entries.map((entry) => (ids.has(entry.id) ? { ...entry, revoked } : entry)),
        );
      }),
    );
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
    if (this.#missRefreshAt === undefined || hasPassed(this.#missRefreshAt, now)) {
      this.#missRefreshAt = later(now, this.#o.policy.missRefreshSeconds * MS);
      const pass = this.#exclusive(() => this.#pass({ ...options, reads: true }));
      // The failure is in health() and in the event.
      this.#missPass = pass.catch(() => undefined);
    }
    return this.#missPass;
  }

  /**
   * Whether a refresh could change what becomes of a token of the key `id`. Of age alone not while passes are known to
   * fail: every token would wait for a KMS that hangs, and what may be opened without it is opened all the same.
   */
  needsRefreshFor(id: string | undefined, now: Moment): boolean {
    if (id !== undefined && !this.view.snapshot.byId.has(id)) return true;
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
    let failure: unknown;
    try {
      if (options.reads || this.#msUntilRead() <= EARLY_MS) await this.#read(options);
    } catch (error) {
      failure = error;
      this.#nextReadAt = undefined;
    }
    try {
      if (options.deferUnwraps !== true) await this.#prove(options);
    } catch (error) {
      failure = error;
    }
    this.#assertOpen();
    if (failure === undefined) {
      this.#failures = 0;
      this.#failedAt = undefined;
      if (this.view.clockTrouble !== undefined) this.#lastFailure = this.#failureNow('clock');
      // A rotation that is overdue and keeps failing stays to be seen.
      else if (this.#rotationFailures === 0) this.#lastFailure = undefined;
    } else if (!(failure instanceof RingConflictError)) {
      // A lost race is no failure: the next read adopts what the winner wrote.
      this.#recordFailure(failure);
    }
    this.#scheduleNext(this.#nextDelayMs(failure, options.deferUnwraps === true));
    this.#announce(failure, began);
    if (failure !== undefined) throw failure;
  }

  /** Reads and adopts; without `deferUnwraps` also what follows from having the whole ring. */
  async #read(options: PassOptions): Promise<void> {
    this.#kernelEntropy = await this.#o.readKernelEntropy();
    await this.#o.sync.read(options);
    if (options.deferUnwraps === true) {
      this.#nextReadAt = undefined;
      return;
    }
    this.#completed();
    if (this.#o.role === 'reader') return;
    if (this.#o.writer.isNeeded) await this.#o.writer.maintain(options);
    this.#considerRotation();
  }

  async #prove(options: PassOptions): Promise<void> {
    // A timer may fire a moment early: a proof that is all but due is made now, not in a pass of its own.
    if (!this.#proofWanted && this.#o.sync.msUntilProof() > EARLY_MS) return;
    await this.#o.sync.prove(options);
    this.#proofWanted = false;
  }

  #completed(): void {
    const now = this.view.now();
    this.view.limits.completed(now);
    this.#nextReadAt = later(now, this.#refreshDelayMs());
  }

  #msUntilRead(): number {
    return this.#nextReadAt === undefined ? 0 : msUntil(this.#nextReadAt, this.view.now());
  }

  #msUntilDue(): number {
    return Math.min(this.#msUntilRead(), this.#o.sync.msUntilProof());
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
    const cap = this.#o.policy.proveEverySeconds * MS;
    const backoff = Math.min(cap, ROTATION_BACKOFF_MS * 2 ** this.#rotationFailures);
    this.#rotateAfter(backoff * (0.5 + this.#uniform() / 2), { isLast: false });
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
        if (!this.view.isClosed) void this.#exclusive(() => this.#rotateIfDue(options));
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
    try {
      await this.#o.sync.read({ foreground: false });
      if (!isLast && this.#isRotationDue()) {
        await this.#o.sync.prove({ foreground: false });
        this.#waitTurn({ isLast: true });
        return;
      }
      if (this.#isRotationDue()) await this.#o.writer.publish('scheduled');
      this.#rotationFailures = 0;
    } catch (error) {
      if (this.view.isClosed || error instanceof RingConflictError) return;
      this.#rotationFailures += 1;
      this.#lastFailure = this.#failureNow(kindOf(error));
      this.#announceFailedRotation('scheduled', error, began);
      this.#considerRotation();
    }
    this.#announceStatus();
  }

  #isRotationDue(): boolean {
    if (this.view.isClosed) return false;
    const now = this.view.now();
    if (this.view.sealBlock(now) !== undefined || this.view.clockTrouble !== undefined) return false;
    const last = newest(this.view.snapshot.keys.filter((key) => !key.revoked));
    return last !== undefined && this.view.wallMs(now) >= rotateAt(last, this.#o.policy);
  }

  /** Runs what publishes a key because somebody asked for it, and tells of its failure. */
  async #publishing(reason: RotationReason, run: () => Promise<void>): Promise<void> {
    const began = this.view.now();
    try {
      await this.#exclusive(run);
    } catch (error) {
      if (!this.view.isClosed) this.#announceFailedRotation(reason, error, began);
      throw error;
    }
  }

  /** Runs one thing at a time, in order. */
  #exclusive<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(run);
    this.#queue = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async #retryConflicts(attempt: () => Promise<void>): Promise<void> {
    for (let round = 0; ; round++) {
      try {
        await attempt();
        return;
      } catch (error) {
        if (!(error instanceof RingConflictError) || round >= MAX_CONFLICTS) throw error;
        await pause(this.#o.clock, Math.min(MS, 10 * 2 ** round) * this.#uniform(), this.#o.closing.signal);
      }
    }
  }

  #scheduleNext(delayMs: number): void {
    if (this.view.isClosed) return;
    this.#cancelTimer();
    this.#cancelTimer = schedule(this.#o.clock, () => this.#background({ reads: false }), delayMs);
    const overdue = later(this.view.now(), delayMs + this.#o.policy.backoffCapSeconds * MS);
    this.view.expectRefreshBefore(overdue, () => {
      this.#proofWanted = true;
      this.#nextReadAt = undefined;
      this.#scheduleNext(0);
    });
  }

  #background(options: Omit<PassOptions, 'foreground'>): void {
    if (this.view.isClosed) return;
    // The failure is in health() and in the event; nobody awaits a background pass.
    this.#exclusive(() => this.#pass({ foreground: false, ...options })).catch(() => undefined);
  }

  #nextDelayMs(failure: unknown, unwrapsWereDeferred: boolean): number {
    if (failure instanceof RingConflictError) return CONFLICT_WAIT_MS * this.#uniform();
    if (failure !== undefined) {
      // Asked again soon while refusals are being counted; once they count, a fleet must not hammer a disabled key.
      if (this.view.limits.isRefused && !this.view.limits.isStopped) return REFUSAL_PROBE_MS;
      const cap = this.#o.policy.backoffCapSeconds * MS;
      return Math.min(cap, BACKOFF_BASE_MS * 2 ** Math.max(0, this.#failures - 1)) * this.#uniform();
    }
    if (unwrapsWereDeferred) return this.#pushDelayMs();
    return this.#msUntilDue();
  }

  #refreshDelayMs(): number {
    return this.#o.policy.refreshEverySeconds * MS * (1 - 0.2 * this.#uniform());
  }

  /** After a push the whole fleet has read at once: it must not ask the KMS at once. */
  #pushDelayMs(): number {
    const wallMs = this.view.wallMs();
    const waiting = this.view.snapshot.keys.filter((key) => !key.revoked && key.held === undefined);
    const soonest = Math.min(...waiting.map((key) => Math.max(key.activates - wallMs, 0) / 4));
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
      ...(this.view.hasSnapshot ? { epoch: this.view.snapshot.document.epoch } : {}),
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
