import { ageMs, type Clock, coarseMomentOf, type Deadline, hasPassed, type Moment, momentOf } from '../base/clock.ts';
import { NewestIds } from '../base/newest-ids.ts';
import { CodecClosedError, SealUnavailableError, type SealUnavailableReason } from '../contracts/errors.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import { newestFirst, type Signer, type Signers } from '../ring/certificates.ts';
import type { RingWrap } from '../ring/document.ts';
import { type Judgement, signersOf } from '../ring/facts.ts';
import { MAX_RING_KEYS, type ResolvedPolicy } from '../ring/policy.ts';
import { isPlanned, type KeyTimes, lateWaitMs, mayUnseal, removableFrom } from '../ring/schedule.ts';
import {
  createSnapshot,
  holdsNewest,
  isUsable,
  liveKeys,
  type RingKey,
  type RingSnapshot,
  sealingKeyOf,
  statesOf,
  type UsableKey,
} from '../ring/snapshot.ts';
import { Limits } from './limits.ts';
import type { RingClock } from './ring-clock.ts';

/** Number of expired keys that are remembered because they can certify: as many as in a full ring. */
const MAX_PAST: number = MAX_RING_KEYS;

export interface RingViewOptions {
  readonly role: 'member' | 'reader';
  readonly policy: ResolvedPolicy;
  readonly ring: string;
  readonly clock: Clock;
  readonly ringClock: RingClock;
  readonly cache: EnvelopeKeyCache;
  /** Keys that were created before this time count as revoked; milliseconds since the epoch. */
  readonly acceptCreatedFromMs: number | undefined;
}

/**
 * This member's view of the ring: the facts that it knows, and whether it may seal and unseal. Sealing and unsealing
 * use nothing else. Synchronous, without I/O or timers; a read of the ring swaps the snapshot in a single assignment.
 */
export class RingView {
  readonly limits: Limits;
  readonly #o: RingViewOptions;
  #snapshot: RingSnapshot | undefined;
  #closed = false;
  #sealedWith: string | undefined;
  #overdueAt: Deadline | undefined;
  // The next key may be vouched for by any key that this member ever knew.
  readonly #past = new Map<string, Signer>();
  // Ids of revoked keys whose lifetime has ended, newest last. A clock that steps must not bring such a key back.
  readonly #over = new NewestIds(MAX_PAST);
  // Keys that this member tried to publish, newest last. If one of them appears after all, it was written late.
  readonly #attempted = new NewestIds(MAX_PAST);
  #onOverdue: () => void = () => undefined;

  constructor(options: RingViewOptions) {
    this.#o = options;
    this.limits = new Limits(options.policy);
  }

  /** @throws {CodecClosedError} after close, and before the ring was first read. */
  get snapshot(): RingSnapshot {
    if (this.#snapshot === undefined) throw new CodecClosedError();
    return this.#snapshot;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether the ring has been read, so that there is a {@link snapshot}. */
  get hasSnapshot(): boolean {
    return this.#snapshot !== undefined;
  }

  /** The wraps of all entries of the current ring, unwrapped or not. */
  get knownWraps(): readonly RingWrap[] {
    const { keys, carried, unreadable } = this.snapshot;
    return [...keys.filter(({ isLeft }) => !isLeft), ...carried, ...unreadable].flatMap(({ wraps }) => wraps);
  }

  /** Id of the key that sealed last. */
  get sealedWith(): string | undefined {
    return this.#sealedWith;
  }

  now(): Moment {
    return momentOf(this.#o.clock);
  }

  /**
   * The coarse time at which a token is unsealed. Starts an overdue pass before the token is decoded.
   */
  nowToUnseal(): Moment {
    const now = coarseMomentOf(this.#o.clock);
    this.#noticeGap(now);
    return now;
  }

  /** The time that decides the state of keys and is written into the ring: see {@link RingClock}. */
  wallMs(now: Moment = this.now()): number {
    return this.#o.ringClock.timeMs(now);
  }

  /** Why nothing may be published, removed or treated as expired now; undefined if the time is confirmed. */
  clockTrouble(now: Moment = this.now()): string | undefined {
    return this.#o.ringClock.trouble(now);
  }

  /** The key that seals now. @throws {SealUnavailableError} */
  sealingKey(now: Moment): UsableKey {
    const { snapshot } = this;
    this.#noticeGap(now);
    const block = this.sealBlock(now);
    if (block !== undefined) throw new SealUnavailableError(block);
    const key = sealingKeyOf(snapshot, this.wallMs(now), now.steadyMs, this.#sealedWith);
    if (key === undefined) throw new SealUnavailableError('no active key');
    this.#sealedWith = key.id;
    return key;
  }

  /** The key with this id, if it may unseal now. */
  unsealingKey(id: string, now: Moment): UsableKey | undefined {
    const key = this.snapshot.byId.get(id);
    this.#noticeGap(now);
    if (key === undefined || !isUsable(key) || !mayUnseal(key, this.wallMs(now)) || !this.limits.mayUnseal(now)) {
      return undefined;
    }
    return key;
  }

  /** All keys that may unseal now, newest first. */
  unsealingKeys(now: Moment): readonly UsableKey[] {
    const { snapshot } = this;
    this.#noticeGap(now);
    if (!this.limits.mayUnseal(now)) return [];
    const wallMs = this.wallMs(now);
    return snapshot.keys.filter((key): key is UsableKey => isUsable(key) && mayUnseal(key, wallMs)).toReversed();
  }

  canUnseal(now: Moment): boolean {
    if (this.#snapshot === undefined || !this.limits.mayUnseal(now)) return false;
    return liveKeys(this.#snapshot, this.wallMs(now)).some(isUsable);
  }

  /** Why this member may not seal; undefined when its limits allow it. */
  sealBlock(now: Moment): SealUnavailableReason | undefined {
    return this.#o.role === 'reader' ? 'reader' : this.limits.sealBlock(now);
  }

  canSeal(now: Moment): boolean {
    if (this.#snapshot === undefined || this.sealBlock(now) !== undefined) return false;
    return sealingKeyOf(this.#snapshot, this.wallMs(now), now.steadyMs, this.#sealedWith) !== undefined;
  }

  isReady(now: Moment): boolean {
    const sealing = this.#o.role === 'reader' || this.canSeal(now);
    const isCurrent = this.canUnseal(now) && this.limits.isCurrent(now);
    return (
      sealing &&
      isCurrent &&
      this.clockTrouble(now) === undefined &&
      holdsNewest(this.snapshot, this.wallMs(now), this.#o.policy)
    );
  }

  states(now: Moment): ReturnType<typeof statesOf> {
    return statesOf(this.snapshot, this.wallMs(now), now.steadyMs, this.#sealedWith);
  }

  /** Swaps the snapshot, and overwrites every key that is no longer used. */
  install(snapshot: RingSnapshot): void {
    if (this.#closed) return;
    this.#snapshot = snapshot;
    this.#overwriteTheRest();
  }

  /** Overwrites all keys except the snapshot's data keys and the authenticators of its keys and of expired keys. */
  #overwriteTheRest(): void {
    const held = this.snapshot.keys.filter(isUsable).map(({ id }) => id);
    this.#o.cache.retain(new Set(held), new Set(this.signers.keys()));
  }

  /** Notes that this member is about to publish a key. */
  noteAttempt(id: string): void {
    this.#attempted.add(id);
  }

  /**
   * The time, by the monotonic clock, from which this member seals with a newly read key. If this member has read the
   * ring without a gap, or has tried to publish the key itself, a planned key that becomes active soon must have been
   * written late. This member then waits until the other members have had time to read the key. It does not wait for
   * emergency keys, whose times show that they are not planned.
   */
  sealsFrom(key: KeyTimes & { readonly id: string }, now: Moment): number {
    const { lastRead } = this.limits;
    const { policy } = this.#o;
    const hadGap = lastRead === undefined || ageMs(lastRead, now) > 2 * policy.refreshEverySeconds * 1_000;
    const counts = isPlanned(key, policy) && (!hadGap || this.#attempted.has(key.id));
    return counts ? now.steadyMs + lateWaitMs(policy) : 0;
  }

  /**
   * Like {@link install}, but for another ring: the key that sealed last sets no limit, and expired keys no longer
   * vouch.
   */
  begin(snapshot: RingSnapshot): void {
    this.#sealedWith = undefined;
    this.#past.clear();
    this.install(snapshot);
  }

  /**
   * Overwrites the data keys that have expired, and drops the keys whose lifetime has ended by every clock of
   * the fleet; their authenticators can still certify. While the time is unconfirmed, no key has expired.
   */
  dropExpired(now: Moment): void {
    if (this.clockTrouble(now) !== undefined) return;
    const { keys, carried, unreadable } = this.snapshot;
    const wallMs = this.wallMs(now);
    const hasEnded = (key: RingKey): boolean => isUsable(key) && wallMs >= key.opensUntil;
    const over = keys.filter((key) => wallMs >= removableFrom(key, this.#o.policy));
    if (over.length === 0 && !keys.some(hasEnded)) return;
    for (const { id, revoked } of over) if (revoked) this.#over.add(id);
    for (const [id, signer] of signersOf(over, new Map())) if (signer.isLeft !== true) this.#past.set(id, signer);
    for (const { id } of [...this.#past.values()].toSorted(newestFirst).slice(MAX_PAST)) this.#past.delete(id);
    const kept = keys.filter((key) => !over.includes(key));
    const shown = kept.map((key) => (hasEnded(key) ? { ...key, held: undefined } : key));
    this.install(createSnapshot(shown, carried, unreadable));
  }

  /** Milliseconds until the next call of {@link dropExpired} is due, for a data key that expires. */
  msUntilEnd(now: Moment): number {
    if (this.clockTrouble(now) !== undefined) return Number.POSITIVE_INFINITY;
    const ends = this.snapshot.keys.filter(isUsable).map(({ opensUntil }) => opensUntil);
    return Math.max(0, Math.min(...ends) - this.wallMs(now));
  }

  /** Remembers the authenticators of expired keys; their data keys are overwritten. */
  rememberPast(signers: Iterable<Signer>): void {
    for (const signer of signers) this.#past.set(signer.id, signer);
    this.#overwriteTheRest();
  }

  /** Whether a key may leave the document, because its life has ended by every clock of the fleet. */
  isRemovable(key: KeyTimes, now: Moment): boolean {
    return this.wallMs(now) >= removableFrom(key, this.#o.policy) && this.clockTrouble(now) === undefined;
  }

  get past(): Signers {
    return this.#past;
  }

  /** All keys that can certify something to this member. */
  get signers(): Signers {
    return signersOf(this.#snapshot?.keys ?? [], this.#past);
  }

  /** The state that documents are checked against now. */
  judgement(now: Moment): Judgement {
    return {
      ring: this.#o.ring,
      nowMs: this.wallMs(now),
      isUnconfirmed: this.clockTrouble(now) !== undefined,
      clockSkewMs: this.#o.policy.clockSkewSeconds * 1_000,
      past: this.#past,
      over: this.#over,
      isPinnedOut: (times) => this.isPinnedOut(times),
    };
  }

  /** Whether this member's own pin refuses a key. */
  isPinnedOut({ created }: KeyTimes): boolean {
    const { acceptCreatedFromMs } = this.#o;
    return created < (acceptCreatedFromMs ?? Number.NEGATIVE_INFINITY);
  }

  /** The first call after `deadline` calls `onOverdue`, because timers do not run while a machine is suspended. */
  expectRefreshBefore(deadline: Deadline, onOverdue: () => void): void {
    this.#overdueAt = deadline;
    this.#onOverdue = onOverdue;
  }

  /** Overwrites all keys; every later use of the snapshot throws. */
  close(): void {
    this.#closed = true;
    this.#snapshot = undefined;
    this.#o.cache.clear();
    this.#past.clear();
  }

  #noticeGap(now: Moment): void {
    if (this.#overdueAt === undefined || !hasPassed(this.#overdueAt, now)) return;
    this.#overdueAt = undefined;
    this.#onOverdue();
  }
}
