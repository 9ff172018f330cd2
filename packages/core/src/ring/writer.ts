import { secondsSince } from '../clock.ts';
import { channels } from '../events.ts';
import type { HeldKey } from '../key-cache.ts';
import type { KeyWrapper } from '../key-wrapper.ts';
import { MAX_EPOCH, type RingContent, type RingEntry } from './document.ts';
import type { CallOptions } from './kms-calls.ts';
import { isFull, withoutRemovable } from './merge.ts';
import { MAX_RING_KEYS, type ResolvedPolicy } from './policy.ts';
import { maySeal, type RotationReason, timesOfNewKey } from './schedule.ts';
import { isUsable, liveKeys, type RingSnapshot, type UsableKey } from './snapshot.ts';
import { RingConflictError, RingStoreError } from './store.ts';
import type { StoredRingDocument } from './stored-ring.ts';
import type { RingView } from './view.ts';
import { type KeyWraps, lacksWraps } from './wraps.ts';

/**
 * What a member writes: new keys, revocations, further wraps, unions. Every write is one compare-and-swap of the
 * document that the change was made from; what lost the race is read again, never forced.
 */
export class RingWriter {
  readonly #ring: string;
  readonly #policy: ResolvedPolicy;
  readonly #wrappers: readonly KeyWrapper[];
  readonly #wraps: KeyWraps;
  readonly #stored: StoredRingDocument;
  readonly #view: RingView;

  constructor(options: {
    readonly ring: string;
    readonly policy: ResolvedPolicy;
    readonly wrappers: readonly KeyWrapper[];
    readonly wraps: KeyWraps;
    readonly stored: StoredRingDocument;
    readonly view: RingView;
  }) {
    this.#ring = options.ring;
    this.#policy = options.policy;
    this.#wrappers = options.wrappers;
    this.#wraps = options.wraps;
    this.#stored = options.stored;
    this.#view = options.view;
  }

  /**
   * Says in the store that this member is about to found the ring, so that no other one makes a data key meanwhile.
   * @throws {RingConflictError} when somebody else was faster.
   */
  claim(claim: string, expected: string | undefined): Promise<{ readonly revision: string }> {
    return this.#stored.write(unfounded(this.#ring, { claim }), [], expected);
  }

  /** Takes a claim back, so that somebody else can try. */
  async giveClaimBack(revision: string): Promise<void> {
    await this.#stored.write(unfounded(this.#ring, {}), [], revision);
  }

  /** Founds a ring in place of this member's own claim, if there is one. */
  async found(claimed: string | undefined): Promise<void> {
    await this.#publishInto(unfounded(this.#ring, {}), claimed, [], 'initial');
  }

  /**
   * Publishes a successor of the ring as it is known, with `change` made to its entries in the same write.
   * @throws {RingConflictError | RingStoreError | KeyWrapperError}
   */
  async publish(
    reason: RotationReason,
    change: (entries: readonly RingEntry[]) => readonly RingEntry[] = (entries) => entries,
  ): Promise<void> {
    const base = this.#view.snapshot;
    const wallMs = this.#view.wallMs();
    const entries = change(withoutRemovable(base.document.entries, wallMs, this.#policy));
    if (isFull(entries)) {
      // A revocation cannot wait for room, and needs no successor where another key may seal.
      const goesOn = base.keys.some((key) => maySeal(key, wallMs) && isUnrevokedIn(entries, key.id));
      if (reason === 'revocation' && goesOn) return this.write({ ...base.document, entries }, base.revision);
      throw new RingStoreError('too-large', `the ring has ${MAX_RING_KEYS} keys, all of them live`);
    }
    const signers = signersOf(base, wallMs);
    await this.#publishInto({ ...base.document, entries }, base.revision, signers, reason);
  }

  /** Whether {@link maintain} has something to do. */
  get isNeeded(): boolean {
    return this.#isDead() || this.#lackingWraps().length > 0;
  }

  /** Gives a dead ring a key, and keys the wraps that a key wrapper could not make when they were published. */
  async maintain(options: CallOptions): Promise<void> {
    await this.reviveIfDead();
    await this.#addMissingWraps(options);
  }

  /** A ring in which no key may seal, all of them ended, revoked or still propagating, gets one at once. */
  async reviveIfDead(): Promise<void> {
    if (this.#isDead()) await this.publish('initial');
  }

  #isDead(): boolean {
    const wallMs = this.#view.wallMs();
    return !this.#view.snapshot.keys.some((key) => maySeal(key, wallMs));
  }

  #lackingWraps(): readonly UsableKey[] {
    return liveKeys(this.#view.snapshot, this.#view.wallMs())
      .filter(isUsable)
      .filter((key) => lacksWraps(key.entry, this.#wrappers));
  }

  async #addMissingWraps(options: CallOptions): Promise<void> {
    const { snapshot } = this.#view;
    const richer = new Map<string, RingEntry>();
    for (const key of this.#lackingWraps()) {
      const entry = await this.#wraps.addMissing(key.entry, key.held, options);
      if (entry !== key.entry) richer.set(key.id, entry);
    }
    if (richer.size === 0) return;
    const entries = snapshot.document.entries.map((entry) => richer.get(entry.id) ?? entry);
    await this.write({ ...snapshot.document, entries }, snapshot.revision);
  }

  /** Writes the ring as it is known back into a store that lost it; `expected` is the revision of somebody's claim. */
  async restore(expected: string | undefined): Promise<void> {
    const { snapshot } = this.#view;
    const { document } = snapshot;
    await this.#write(document, signersOf(snapshot, this.#view.wallMs()), expected);
    channels.healed.publish(() => ({ epoch: document.epoch }));
  }

  /** Writes `content` under the next epoch, signed by every key known of the ring. */
  async write(content: RingContent, expected: string | undefined): Promise<void> {
    const signers = signersOf(this.#view.snapshot, this.#view.wallMs());
    await this.#write({ ...content, epoch: nextEpoch(content.epoch) }, signers, expected);
  }

  async #publishInto(
    content: RingContent,
    expected: string | undefined,
    signers: readonly HeldKey[],
    reason: RotationReason,
  ): Promise<void> {
    this.#checkClock();
    const began = this.#view.now();
    const times = timesOfNewKey(reason, this.#view.wallMs(), this.#policy);
    const isTaken = (id: string): boolean => content.entries.some((other) => other.id === id);
    const { entry, held } = await this.#wraps.create(times, isTaken);
    this.#view.limits.proved(this.#view.now());
    const epoch = nextEpoch(content.epoch);
    await this.#write({ ...content, epoch, entries: [...content.entries, entry] }, [...signers, held], expected);
    channels.rotation.publish(() => ({
      keyId: entry.id,
      reason,
      epoch,
      seconds: secondsSince(began, this.#view.now()),
    }));
  }

  async #write(content: RingContent, signers: readonly HeldKey[], expected: string | undefined): Promise<void> {
    this.#checkClock();
    try {
      const { document, revision } = await this.#stored.write(content, signers, expected);
      this.#view.limits.wasRead(this.#view.now());
      this.#view.install(document, revision);
    } catch (error) {
      if (error instanceof RingConflictError) channels.conflict.publish(() => ({ epoch: content.epoch }));
      throw error;
    }
  }

  /** Times are taken from this member's clock: written by a wrong one they would be wrong for everybody. */
  #checkClock(): void {
    const trouble = this.#view.clockTrouble;
    if (trouble !== undefined) throw new RingStoreError('unavailable', `nothing is published: ${trouble}`);
  }
}

function isUnrevokedIn(entries: readonly RingEntry[], id: string): boolean {
  return entries.some((entry) => entry.id === id && entry.revoked === undefined);
}

/** A document of no key: what stands in the store while a ring is being founded. */
function unfounded(ring: string, unknown: RingContent['unknown']): RingContent {
  return { ring, epoch: 0, entries: [], unknown };
}

/**
 * Who signs what this member writes: every key it can sign with whose life is not over, revoked ones included, since a
 * member that missed the revocation can check nothing else.
 * @throws {RingStoreError} while a live key is not held: a document without its MAC would shut out who holds only it.
 */
function signersOf(base: RingSnapshot, wallMs: number): readonly HeldKey[] {
  if (!liveKeys(base, wallMs).every(isUsable)) {
    throw new RingStoreError('unavailable', 'a live key of the ring could not be unwrapped yet');
  }
  return base.keys.flatMap((key) => (wallMs >= key.opensUntil || key.signer === undefined ? [] : [key.signer]));
}

function nextEpoch(epoch: number): number {
  if (epoch >= MAX_EPOCH) throw new RingStoreError('too-large', 'the epoch is at its end');
  return epoch + 1;
}
