import { ageMs, hasPassed, later, type Moment, secondsSince } from '../base/clock.ts';
import { channels, type RotationReason } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import type { CallOptions } from '../kms/kms-calls.ts';
import { lacksWraps } from '../kms/several-wrappers.ts';
import { type Signers, vouchersBy } from '../ring/certificates.ts';
import { type Macs, type RingDocument, type RingEntry, type RingWrap } from '../ring/document.ts';
import { isTombstone, revokedKey, signersOf, unwrappedKey } from '../ring/facts.ts';
import { MAX_KEYS_TO_ROTATE, MAX_KEYS_TO_SCHEDULE, MAX_RING_KEYS } from '../ring/policy.ts';
import { emergencyWaitMs, type KeyTimes, longestDelayMs, timesOfNewKey } from '../ring/schedule.ts';
import {
  coveredMs,
  isUsable,
  type KnownWrap,
  liveKeys,
  type RingKey,
  type RingSnapshot,
  withKeys,
  withRevoked,
} from '../ring/snapshot.ts';
import { documentOf, lacks, writtenKeys } from '../ring/written-document.ts';
import type { MemberParts } from './parts.ts';

const MS = 1_000;
/** How many keys the ring may have when a key is created; for an urgent key, only the keys in use count. */
const MOST_KEYS: Readonly<Partial<Record<RotationReason, number>>> = {
  requested: MAX_KEYS_TO_ROTATE,
  emergency: MAX_KEYS_TO_ROTATE,
  scheduled: MAX_KEYS_TO_SCHEDULE,
  'key-version': MAX_KEYS_TO_ROTATE,
};
/** How long a revocation waits for a successor, as a multiple of the deadline of one KMS call. */
const CALLS_OF_A_SUCCESSOR = 3;

/** How long one pass adds missing wraps, as a multiple of the deadline of one KMS call. */
const CALLS_FOR_WRAPS = 4;

type Parts = Pick<MemberParts, 'ring' | 'policy' | 'wrappers' | 'wraps' | 'stored' | 'view'>;

/**
 * Writes what a member knows, with new keys, revocations and further wraps. Every write is one compare-and-swap of the
 * document that was read; after a lost race the ring is read again, never overwritten.
 */
export class RingWriter {
  readonly #o: Parts;

  constructor(parts: Parts) {
    this.#o = parts;
  }

  /**
   * Announces in the ring document that this member is about to create a key, so that no other member creates one;
   * `undefined` withdraws the claim. The rest of the document stays as it was read, unless it lacks what this member
   * knows: a member that dies after its claim may be the only one that knows of a revocation that the store has lost.
   * @throws {RingConflictError} when another writer was first.
   */
  async claim(claim: string | undefined): Promise<void> {
    const now = this.#o.view.now();
    const { snapshot } = this.#o.view;
    const there = this.#o.stored.latest?.document;
    const isWhole = there !== undefined && !lacks(there, snapshot, this.#o.view.judgement(now));
    await this.#o.stored.write({ ...(isWhole ? there : this.#documentOf(snapshot, now)), claim });
  }

  /**
   * Creates a new key to publish later, and writes nothing.
   * @throws {RingStoreError | KeyWrapperError}
   */
  async make(reason: RotationReason): Promise<NewKey> {
    this.#checkRoom(reason);
    this.#checkClock();
    return this.#newKey(reason);
  }

  /**
   * Publishes a new key, or `made`.
   * @throws {RingConflictError | RingStoreError | KeyWrapperError}
   */
  async publish(reason: RotationReason, made?: NewKey): Promise<void> {
    const added = made ?? (await this.make(reason));
    await this.#write(this.#o.view.snapshot, added);
    this.#announce(added, reason);
  }

  /**
   * Revokes keys, and activates a successor in the same write if there is room, the KMS answers and the clock is
   * confirmed. Otherwise, the revocation is written without a successor.
   * @throws {RingConflictError | RingStoreError} from the store; also `unavailable`, after the other revocations were
   * written, for a key that has not been unwrapped, if neither a newer key nor a successor can certify its revocation.
   */
  async revoke(meant: readonly RingKey[]): Promise<void> {
    const { signers, snapshot } = this.#o.view;
    const now = this.#o.view.now();
    const ids = new Set(meant.map(({ id }) => id));
    // A key that is revoked in this write does not certify the revocation of another key.
    const stay = new Map([...signers].filter(([id]) => !ids.has(id)));
    const wallMs = this.#o.view.wallMs(now);
    const revokedBy = (keys: readonly RingKey[], by: Signers): readonly RingKey[] =>
      keys.flatMap((key) => revokedKey(this.#o.ring, key, wallMs, by) ?? []);
    const certified = revokedBy(meant, stay);
    // Keys that are not unwrapped, and newer than all known keys: only the successor can certify their revocations.
    const others = meant.filter(({ id }) => !certified.some((key) => key.id === id));
    const isLater = ({ created }: RingKey): boolean => created > wallMs - (wallMs % MS);
    let missed = others;
    if (certified.length > 0 || !others.every(isLater)) {
      const without = withRevoked(snapshot, certified);
      const successor = await this.#successor(without, now);
      const further = successor === undefined ? [] : revokedBy(others, signersOf([successor.key], new Map()));
      missed = others.filter(({ id }) => !further.some((key) => key.id === id));
      if (certified.length + further.length > 0) {
        await this.#write(withRevoked(without, further), successor);
        if (successor !== undefined) this.#announce(successor, 'revocation');
      }
    }
    const [first] = missed;
    if (first !== undefined) {
      throw new RingStoreError(
        'unavailable',
        `key ${first.id} could not be unwrapped yet, and no newer key certifies its revocation`,
      );
    }
  }

  async #successor(known: RingSnapshot, now: Moment): Promise<NewKey | undefined> {
    if (this.#o.view.clockTrouble(now) !== undefined || !this.#hasRoom(known)) return undefined;
    const until = later(now, CALLS_OF_A_SUCCESSOR * this.#o.policy.kmsTimeoutSeconds * MS);
    try {
      const successor = await this.#newKey('revocation', { foreground: true, until });
      return this.#isTooOld(successor) ? undefined : successor;
    } catch (error) {
      // A KMS failure is tolerated: the revocation does not depend on it, and a member that finds no key to seal with
      // creates one.
      if (error instanceof KeyWrapperError) return undefined;
      throw error;
    }
  }

  /** Overwrites the document that was read with the facts that this member knows. */
  async restore(): Promise<void> {
    await this.#write(this.#o.view.snapshot);
    const { length } = this.#o.view.snapshot.keys;
    channels.healed.publish(() => ({ ringName: this.#o.ring, keys: length }));
  }

  /** Whether no key may seal, because all are expired, revoked or propagating, and no pending entry can provide one. */
  get isDead(): boolean {
    return this.#coveredMs <= 0;
  }

  /**
   * The key that the ring needs now, if any: one that is active immediately if no key may seal, an emergency key if the
   * last key stops sealing soon. A scheduled rotation happens long before that; this is for a ring that could not
   * rotate, or that returned to an old key when a newer one was revoked.
   */
  get neededKey(): 'initial' | 'emergency' | undefined {
    const leftMs = this.#coveredMs;
    if (leftMs <= 0) return 'initial';
    const readMs = (this.#o.policy.refreshEverySeconds + this.#o.policy.backoffCapSeconds) * MS;
    const emergencyMs = emergencyWaitMs(this.#o.policy);
    if (leftMs > emergencyMs + readMs || this.#o.view.clockTrouble() !== undefined) return undefined;
    if (leftMs <= emergencyMs) return 'initial';
    return this.keyCount < MAX_KEYS_TO_ROTATE ? 'emergency' : undefined;
  }

  get #coveredMs(): number {
    return coveredMs(this.#o.view.snapshot, this.#o.view.wallMs(), this.#o.policy);
  }

  /** The number of keys that count towards the limits of the ring. */
  get keyCount(): number {
    return this.#keysOf(this.#o.view.snapshot).filter((key) => !isTombstone(key)).length;
  }

  #keysOf(known: RingSnapshot): readonly RingKey[] {
    const { ring, view } = this.#o;
    const now = view.now();
    return writtenKeys(ring, known, view.past).filter((key) => !view.isRemovable(key, now));
  }

  /**
   * Whether there is room for a key that nothing else can replace: revoked keys can be left out for it, once every
   * member that reaches the store has read their revocation.
   */
  #hasRoom(known: RingSnapshot): boolean {
    const wallMs = this.#o.view.wallMs();
    const { refreshEverySeconds, clockSkewSeconds } = this.#o.policy;
    const readMs = (2 * refreshEverySeconds + clockSkewSeconds) * MS;
    const isSpare = ({ revocation }: RingKey): boolean =>
      revocation !== undefined && Math.abs(wallMs - revocation.at) > readMs;
    return this.#keysOf(known).filter((key) => !isSpare(key)).length < MAX_RING_KEYS;
  }

  /** Keeps room for urgent writes: a key for a ring that no longer seals, and revocations. */
  #checkRoom(reason: RotationReason): void {
    const atMost = MOST_KEYS[reason];
    const count = this.keyCount;
    const isFull = atMost === undefined ? !this.#hasRoom(this.#o.view.snapshot) : count >= atMost;
    if (isFull) throw new RingStoreError('too-large', `the ring has ${count} keys; wait until the oldest expires`);
  }

  /** Adds the wraps that a key wrapper could not make when the keys were published. */
  async addMissingWraps(options: CallOptions): Promise<void> {
    const richer: RingKey[] = [];
    const until = later(this.#o.view.now(), CALLS_FOR_WRAPS * this.#o.policy.kmsTimeoutSeconds * MS);
    for (const key of liveKeys(this.#o.view.snapshot, this.#o.view.wallMs()).filter(isUsable)) {
      if (key.isLeft || !lacksWraps(key, this.#o.wrappers)) continue;
      // The next pass continues: the work that follows this one must not wait for a KMS that hangs.
      if (hasPassed(until, this.#o.view.now())) break;
      const added = await this.#o.wraps.missingWraps(key, key.held, options);
      if (added.length > 0) richer.push({ ...key, wraps: [...key.wraps, ...added.map(unwrappedWrap)] });
    }
    if (richer.length > 0) await this.#write(withKeys(this.#o.view.snapshot, richer));
  }

  async #newKey(reason: RotationReason, options?: CallOptions): Promise<NewKey> {
    const began = this.#o.view.now();
    const { signers, snapshot } = this.#o.view;
    const { keys, carried, unreadable } = snapshot;
    // Attackers may have written the entries that are not unwrapped: they must not move a new key into the future.
    const nowMs = this.#o.view.wallMs(began);
    const madeAt = [...keys, ...this.#o.view.past.values()].map(({ created }) => created);
    const claimed = [...carried, ...unreadable].map(({ created }) => Math.min(created, nowMs - (nowMs % MS)));
    const newest = Math.max(...madeAt, ...claimed);
    const times = timesOfNewKey(reason, nowMs, this.#o.policy, newest);
    const listed = new Set(this.#o.stored.latest?.document?.entries.map(({ id }) => id));
    const isTaken = (id: string): boolean => signers.has(id) || listed.has(id);
    // Every key that this member can sign with vouches for it: live, revoked or expired.
    const vouch = (named: KeyTimes & { readonly id: string }): Macs => vouchersBy(this.#o.ring, named, signers);
    const { entry, held } = await this.#o.wraps.create(times, isTaken, vouch, options);
    const now = this.#o.view.now();
    this.#o.view.limits.kmsCheckPassed(now);
    this.#o.view.noteAttempt(entry.id);
    const key = {
      ...unwrappedKey(this.#o.ring, entry, held, undefined, this.#o.view.sealsFrom(entry, now)),
      vouchers: entry.vouchers,
      wraps: entry.wraps.map(unwrappedWrap),
    };
    return { began, entry, key };
  }

  /** Whether a key is too old to be published: it would be active before the other members can know it. */
  #isTooOld({ began, entry }: NewKey): boolean {
    return ageMs(began, this.#o.view.now()) > longestDelayMs(entry, this.#o.policy);
  }

  async #write(others: RingSnapshot, added?: NewKey): Promise<void> {
    const now = this.#o.view.now();
    const known = added === undefined ? others : withKeys(others, [added.key]);
    if (added !== undefined && this.#isTooOld(added)) {
      throw new RingStoreError('unavailable', 'nothing was published: this member was delayed for too long');
    }
    const document = this.#documentOf(known, now);
    try {
      await this.#o.stored.write(document);
    } catch (error) {
      if (error instanceof RingConflictError) {
        channels.conflict.publish(() => ({ ringName: this.#o.ring, keys: document.entries.length }));
      }
      throw error;
    }
    this.#o.view.limits.wasRead(this.#o.view.now());
    this.#o.view.install(known);
  }

  #documentOf(known: RingSnapshot, now: Moment): RingDocument {
    const isRemovable = (key: RingKey): boolean => this.#o.view.isRemovable(key, now);
    return documentOf(known, this.#o.stored.latest?.document, {
      ring: this.#o.ring,
      past: this.#o.view.past,
      isRemovable,
    });
  }

  /** Throws while this member's clock is unconfirmed, because it sets a new key's times, which apply to every member. */
  #checkClock(): void {
    const trouble = this.#o.view.clockTrouble();
    if (trouble !== undefined) throw new RingStoreError('unavailable', `nothing is published: ${trouble}`);
  }

  #announce({ began, entry }: NewKey, reason: RotationReason): void {
    const { ring: ringName, view } = this.#o;
    channels.rotation.publish(() => ({ ringName, keyId: entry.id, reason, seconds: secondsSince(began, view.now()) }));
  }
}

/** A new key, wrapped and checked, not yet published. */
export interface NewKey {
  readonly began: Moment;
  readonly entry: RingEntry;
  readonly key: RingKey;
}

const unwrappedWrap = (wrap: RingWrap): KnownWrap => ({ ...wrap, isUnwrapped: true });
