import { type Clock, coarseMomentOf, type Deadline, hasPassed, type Moment, momentOf } from '../clock.ts';
import { CodecClosedError, SealUnavailableError, type SealUnavailableReason } from '../errors.ts';
import type { EnvelopeKeyCache, HeldKey } from '../key-cache.ts';
import type { RingDocument, RingEntry } from './document.ts';
import { Limits } from './limits.ts';
import type { ResolvedPolicy } from './policy.ts';
import { mayOpen } from './schedule.ts';
import type { ServiceClock } from './service-clock.ts';
import { createSnapshot, isUsable, type RingSnapshot, sealingKeyOf, statesOf, type UsableKey } from './snapshot.ts';
import type { KeyWraps } from './wraps.ts';

/** Keys that are remembered for what they signed: twice a full ring. */
const MAX_PAST_SIGNERS = 128;

export interface RingViewOptions {
  readonly role: 'member' | 'reader';
  readonly policy: ResolvedPolicy;
  readonly clock: Clock;
  readonly serviceClock: ServiceClock;
  readonly wraps: KeyWraps;
  readonly cache: EnvelopeKeyCache;
  /** Keys created before count as revoked, milliseconds since the epoch. */
  readonly acceptCreatedFromMs: number | undefined;
}

/**
 * What this member knows of the ring, and what it may do with it: everything that sealing and opening look at.
 * Synchronous, without I/O and timers; whoever reads the ring swaps its snapshot by one assignment.
 */
export class RingView {
  readonly limits: Limits;
  readonly #o: RingViewOptions;
  #snapshot: RingSnapshot | undefined;
  #closed = false;
  #sealedWith: string | undefined;
  #highestWallMs = 0;
  #overdueAt: Deadline | undefined;
  // Oldest first. A store that fails over to an older copy must be known for what it is when the keys of that copy have
  // ended meanwhile.
  readonly #signers = new Map<string, HeldKey>();
  #onOverdue: () => void = () => undefined;

  constructor(options: RingViewOptions) {
    this.#o = options;
    this.limits = new Limits(options.policy);
  }

  /** @throws {CodecClosedError} after close, and before the ring was first read. */
  get snapshot(): RingSnapshot {
    if (this.#closed || this.#snapshot === undefined) throw new CodecClosedError();
    return this.#snapshot;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether the ring was read: only then is there a {@link snapshot}. */
  get hasSnapshot(): boolean {
    return this.#snapshot !== undefined;
  }

  /** Id of the key that sealed last. */
  get sealedWith(): string | undefined {
    return this.#sealedWith;
  }

  now(): Moment {
    return momentOf(this.#o.clock);
  }

  /**
   * The moment of a token that is about to be opened, coarse. What its gap may cause is caused here: a token is decoded
   * in place, so nobody else may be called between its decoding and its opening.
   */
  nowToOpen(): Moment {
    const now = coarseMomentOf(this.#o.clock);
    this.#noticeGap(now);
    return now;
  }

  /** The time that keys are judged by: never further back than the highest seen minus the tolerated skew. */
  wallMs(now: Moment = this.now()): number {
    if (now.wallMs > this.#highestWallMs) this.#highestWallMs = now.wallMs;
    return Math.max(now.wallMs, this.#highestWallMs - this.#o.policy.clockSkewSeconds * 1_000);
  }

  /** Why this member's clock is too far from that of the KMS or the store to publish anything. */
  get clockTrouble(): string | undefined {
    return this.#o.serviceClock.trouble;
  }

  /** The key that seals now. @throws {SealUnavailableError} */
  sealingKey(now: Moment): UsableKey {
    const { snapshot } = this;
    this.#noticeGap(now);
    const block = this.sealBlock(now);
    if (block !== undefined) throw new SealUnavailableError(block);
    const key = sealingKeyOf(snapshot, this.wallMs(now), this.#sealedWith);
    if (key === undefined) throw new SealUnavailableError('no active key');
    this.#sealedWith = key.id;
    return key;
  }

  /** The key with this id, if it may open now. */
  openingKey(id: string, now: Moment): UsableKey | undefined {
    const key = this.snapshot.byId.get(id);
    this.#noticeGap(now);
    if (key === undefined || !isUsable(key) || !mayOpen(key, this.wallMs(now)) || !this.limits.mayOpen(now)) {
      return undefined;
    }
    return key;
  }

  /** All keys that may open now, newest first. */
  openingKeys(now: Moment): readonly UsableKey[] {
    const { snapshot } = this;
    this.#noticeGap(now);
    if (!this.limits.mayOpen(now)) return [];
    const wallMs = this.wallMs(now);
    return snapshot.keys.filter((key): key is UsableKey => isUsable(key) && mayOpen(key, wallMs)).toReversed();
  }

  /** Why this member may not seal; undefined when its limits allow it. */
  sealBlock(now: Moment): SealUnavailableReason | undefined {
    return this.#o.role === 'reader' ? 'reader' : this.limits.sealBlock(now);
  }

  canSeal(now: Moment): boolean {
    if (this.#closed || this.#snapshot === undefined || this.sealBlock(now) !== undefined) return false;
    return sealingKeyOf(this.#snapshot, this.wallMs(now), this.#sealedWith) !== undefined;
  }

  isReady(now: Moment): boolean {
    const sealing = this.#o.role === 'reader' || this.canSeal(now);
    return sealing && this.limits.mayOpen(now) && this.limits.isCurrent(now) && this.clockTrouble === undefined;
  }

  states(now: Moment): ReturnType<typeof statesOf> {
    return statesOf(this.snapshot, this.wallMs(now), this.#sealedWith);
  }

  /** Swaps the snapshot for one of `document`; drops and overwrites the keys it does not name. */
  install(document: RingDocument, revision: string | undefined): void {
    if (this.#closed) return;
    const snapshot = createSnapshot(
      document,
      revision,
      (entry) => this.#o.wraps.cached(entry),
      (entry) => this.isRevoked(entry),
    );
    this.#snapshot = snapshot;
    this.#rememberSigners(snapshot);
    const kept = new Set(snapshot.keys.map((key) => key.signer));
    this.#o.cache.prune((key) => kept.has(key));
  }

  /** What can check documents that were signed with keys this member held once, revoked and ended ones included. */
  pastSigners(): readonly HeldKey[] {
    return [...this.#signers.values()];
  }

  #rememberSigners(snapshot: RingSnapshot): void {
    for (const key of snapshot.keys) {
      if (key.held === undefined || this.#signers.has(key.id)) continue;
      this.#signers.set(key.id, key.held.asRingSigner());
      const [oldest] = this.#signers;
      if (this.#signers.size <= MAX_PAST_SIGNERS || oldest === undefined) continue;
      oldest[1].destroy();
      this.#signers.delete(oldest[0]);
    }
  }

  /** Revoked in the ring, or by this member's own pin. */
  isRevoked(entry: RingEntry): boolean {
    return entry.revoked !== undefined || this.isPinnedOut(entry);
  }

  isPinnedOut(entry: RingEntry): boolean {
    const { acceptCreatedFromMs } = this.#o;
    return acceptCreatedFromMs !== undefined && entry.created < acceptCreatedFromMs;
  }

  /** Timers do not run while a machine is suspended: the first call after `deadline` tells `onOverdue`. */
  expectRefreshBefore(deadline: Deadline, onOverdue: () => void): void {
    this.#overdueAt = deadline;
    this.#onOverdue = onOverdue;
  }

  /** Every later use throws. */
  close(): void {
    this.#closed = true;
    this.#snapshot = undefined;
    this.#o.cache.clear();
    for (const signer of this.#signers.values()) signer.destroy();
    this.#signers.clear();
  }

  #noticeGap(now: Moment): void {
    if (this.#overdueAt === undefined || !hasPassed(this.#overdueAt, now)) return;
    this.#overdueAt = undefined;
    this.#onOverdue();
  }
}
