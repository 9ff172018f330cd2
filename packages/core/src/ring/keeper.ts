import {
  ageMs,
  type Clock,
  hasPassed,
  later,
  type Moment,
  momentOf,
  pause,
  type RandomSource,
  schedule,
  uniform,
} from '../clock.ts';
import { CodecClosedError, SealUnavailableError, type SealUnavailableReason } from '../errors.ts';
import { channels } from '../events.ts';
import type { EnvelopeKeyCache, HeldKey } from '../key-cache.ts';
import { type KeyWrapper, KeyWrapperError } from '../key-wrapper.ts';
import { contradicts, isSignedBy, judge, type OwnKey } from './authentication.ts';
import { MAX_EPOCH, type RingContent, type RingDocument, type RingEntry } from './document.ts';
import { REFUSAL_PROBE_MS } from './kill-switch.ts';
import { Limits } from './limits.ts';
import { isFull, lacks, union, withoutRemovable } from './merge.ts';
import { MAX_RING_KEYS, type ResolvedPolicy } from './policy.ts';
import { mayOpen, newest, type RotationReason, rotateAt, rotationDelayMs, timesOfNewKey } from './schedule.ts';
import {
  createSnapshot,
  isUsable,
  liveKeys,
  type RingKey,
  type RingSnapshot,
  sealingKeyOf,
  type UsableKey,
} from './snapshot.ts';
import { RingConflictError, type RingStore, RingStoreError } from './store.ts';
import { type Stored, StoredRingDocument } from './stored-ring.ts';
import { type KeyWraps, lacksWraps } from './wraps.ts';

const MS = 1_000;
const BACKOFF_BASE_MS = 10_000;
const HEAL_WAIT_MS = 5_000;
const ABSENT_POLL_MS = 3_000;
const PUSH_WAIT_CAP_MS = 60_000;
const START_BACKOFF_BASE_MS = 200;
const START_BACKOFF_CAP_MS = 5_000;
/** Rounds after which a writer that loses every race gives up. */
const MAX_CONFLICTS = 64;

export interface RingKeeperOptions {
  readonly ring: string;
  readonly store: RingStore;
  readonly wrappers: readonly KeyWrapper[];
  readonly wraps: KeyWraps;
  readonly cache: EnvelopeKeyCache;
  readonly policy: ResolvedPolicy;
  readonly role: 'member' | 'reader';
  readonly create: 'if-absent' | 'now' | 'never';
  /** Keys created before count as revoked, milliseconds since the epoch. */
  readonly acceptCreatedFromMs: number | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** 32 bytes of the kernel's random device; empty where there is none. */
  readonly readKernelEntropy: () => Promise<Uint8Array>;
  readonly closing: AbortController;
}

/** What last went wrong: whose answer, of which kind, when. */
export interface KeeperFailure {
  readonly kind: string;
  readonly at: Date;
}

/**
 * Keeps the ring: the only place with timers. Reads, authenticates, unwraps, proves, rotates, revokes and heals; what
 * seals and opens tokens only ever looks at its snapshot.
 */
export class RingKeeper {
  readonly #o: RingKeeperOptions;
  readonly #stored: StoredRingDocument;
  readonly #limits: Limits;
  #snapshot: RingSnapshot | undefined;
  #kernelEntropy: Uint8Array = new Uint8Array(0);
  #sealedWith: string | undefined;
  #highestWallMs = 0;
  #failures = 0;
  #lastFailure: KeeperFailure | undefined;
  #lastStatus = '';
  #closed = false;
  #queue: Promise<unknown> = Promise.resolve();
  #pendingRefresh: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  #overdueAt: Moment | undefined;
  #proofWanted = false;
  #missRefreshAt: Moment | undefined;
  #cancelRotation: (() => void) | undefined;
  #rotationFailures = 0;
  #unwatch: () => void = () => undefined;

  constructor(options: RingKeeperOptions) {
    this.#o = options;
    const { store, ring, clock, policy, closing } = options;
    const timeoutSeconds = policy.kmsTimeoutSeconds;
    this.#stored = new StoredRingDocument({ store, ring, clock, timeoutSeconds, closing: closing.signal });
    this.#limits = new Limits(policy);
  }

  // ---- what tokens need: synchronous, no I/O

  get snapshot(): RingSnapshot {
    if (this.#closed || this.#snapshot === undefined) throw new CodecClosedError();
    return this.#snapshot;
  }

  get kernelEntropy(): Uint8Array {
    return this.#kernelEntropy;
  }

  now(): Moment {
    return momentOf(this.#o.clock);
  }

  /** The time that keys are judged by: never further back than the highest seen minus the tolerated skew. */
  nowMs(now: Moment): number {
    if (now.wallMs > this.#highestWallMs) this.#highestWallMs = now.wallMs;
    return Math.max(now.wallMs, this.#highestWallMs - this.#o.policy.clockSkewSeconds * MS);
  }

  /** The key that seals now. @throws {SealUnavailableError} */
  sealingKey(now: Moment): UsableKey {
    const { snapshot } = this;
    this.#noticeGap(now);
    const block = this.#sealBlock(now);
    if (block !== undefined) throw new SealUnavailableError(block);
    const key = sealingKeyOf(snapshot, this.nowMs(now), this.#sealedWith);
    if (key === undefined) throw new SealUnavailableError('no active key');
    this.#sealedWith = key.id;
    return key;
  }

  /** The key with this id, if it may open now. */
  openingKey(id: string, now: Moment): UsableKey | undefined {
    const key = this.snapshot.byId.get(id);
    this.#noticeGap(now);
    if (key === undefined || !isUsable(key) || !mayOpen(key, this.nowMs(now)) || !this.#limits.mayOpen(now)) {
      return undefined;
    }
    return key;
  }

  /** All keys that may open now, newest first. */
  openingKeys(now: Moment): readonly UsableKey[] {
    const { snapshot } = this;
    this.#noticeGap(now);
    if (!this.#limits.mayOpen(now)) return [];
    const nowMs = this.nowMs(now);
    return snapshot.keys.filter((key): key is UsableKey => isUsable(key) && mayOpen(key, nowMs)).reverse();
  }

  /** A token named a key that is not in the ring: reads the ring soon, at most once per missRefresh. */
  noteUnknownKey(id: string | undefined, now: Moment): void {
    if (id !== undefined && this.snapshot.byId.has(id)) return;
    if (this.takeMissRefresh(now)) this.#scheduleNext(0);
  }

  // ---- what operators and the boundary ask for

  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} what went wrong. */
  refresh(): Promise<void> {
    this.#assertOpen();
    this.#pendingRefresh ??= this.#exclusive(() => {
      this.#pendingRefresh = undefined;
      return this.#pass({ foreground: true, afterPush: false });
    });
    return this.#pendingRefresh;
  }

  /** Publishes a successor. A conflict means that somebody else did: then only if the wish is not fulfilled. */
  async rotate(reason: 'requested' | 'emergency'): Promise<void> {
    this.#assertMember('rotate');
    const askedAt = this.nowMs(this.now());
    const known = new Set(this.snapshot.keys.map((key) => key.id));
    await this.#exclusive(() =>
      this.#retryConflicts(async (first) => {
        if (!first) {
          await this.#readRing({ foreground: true });
          const latest =
            timesOfNewKey(reason, askedAt, this.#o.policy).activates + this.#o.policy.clockSkewSeconds * MS;
          if (this.snapshot.keys.some((key) => !known.has(key.id) && !key.revoked && key.activates <= latest)) return;
        }
        await this.#publish(reason, this.snapshot, (entries) => entries);
      }),
    );
  }

  /** Revokes the keys that `isMeant` picks; a successor becomes active in the same write. */
  async revoke(isMeant: (key: RingKey) => boolean): Promise<void> {
    this.#assertMember('revoke');
    await this.#exclusive(() =>
      this.#retryConflicts(async () => {
        await this.#readRing({ foreground: true });
        const ids = new Set(this.snapshot.keys.filter((key) => !key.revoked && isMeant(key)).map((key) => key.id));
        if (ids.size === 0) return;
        const revokedAt = Math.floor(this.nowMs(this.now()) / MS) * MS;
        await this.#publish('revocation', this.snapshot, (entries) =>
          entries.map((entry) => (ids.has(entry.id) ? { ...entry, revoked: revokedAt } : entry)),
        );
      }),
    );
  }

  /** What may be awaited before a synchronous unseal: see {@link KmsCodec.prepare}. */
  needsRefreshFor(id: string | undefined, now: Moment): boolean {
    const { refreshEverySeconds, proveEverySeconds } = this.#o.policy;
    const read = this.#limits.lastRead;
    const proof = this.#limits.lastProof;
    if (read === undefined || ageMs(read, now) > refreshEverySeconds * MS) return true;
    if (proof === undefined || ageMs(proof, now) > proveEverySeconds * MS) return true;
    return id !== undefined && !this.snapshot.byId.has(id);
  }

  /** Whether a refresh that tokens cause is allowed now; counts it. */
  takeMissRefresh(now: Moment): boolean {
    if (this.#missRefreshAt !== undefined && !hasPassed(this.#missRefreshAt, now)) return false;
    this.#missRefreshAt = later(now, this.#o.policy.missRefreshSeconds * MS);
    return true;
  }

  get limits(): Limits {
    return this.#limits;
  }

  get lastFailure(): KeeperFailure | undefined {
    return this.#lastFailure;
  }

  /** Id of the key that sealed last. */
  get sealedWith(): string | undefined {
    return this.#sealedWith;
  }

  /** `failing`: cannot do its work or must not be sent any. `degraded`: works, but something needs a look. */
  status(now: Moment): 'ok' | 'degraded' | 'failing' {
    if (!this.isReady(now)) return 'failing';
    return this.#failures > 0 || this.#limits.isRefused ? 'degraded' : 'ok';
  }

  isReady(now: Moment): boolean {
    const sealing = this.#o.role === 'reader' || this.canSeal(now);
    return sealing && this.#limits.mayOpen(now) && this.#limits.isCurrent(now);
  }

  canSeal(now: Moment): boolean {
    if (this.#closed || this.#snapshot === undefined || this.#sealBlock(now) !== undefined) return false;
    return sealingKeyOf(this.#snapshot, this.nowMs(now), this.#sealedWith) !== undefined;
  }

  // ---- life

  /** Resolves when all live keys are held and, for a member, one of them may seal. */
  async start(): Promise<void> {
    const { policy, clock, closing, role, create } = this.#o;
    const startedAt = momentOf(clock);
    let absentSince: Moment | undefined;
    let failures = 0;
    for (;;) {
      closing.signal.throwIfAborted();
      try {
        this.#kernelEntropy = await this.#o.readKernelEntropy();
        const stored = await this.#stored.read();
        const now = momentOf(clock);
        if (stored !== undefined) {
          absentSince = undefined;
          await this.#adoptCold(stored, { foreground: true });
          await this.#reviveIfDead();
          break;
        }
        if (create === 'never') throw new RingStoreError('corrupt', "there is no ring, and create is 'never'");
        absentSince ??= now;
        if (role === 'member' && ageMs(absentSince, now) >= policy.createAfterSeconds * MS) {
          await this.#found();
          break;
        }
        const patience = (policy.startTimeoutSeconds + (role === 'member' ? policy.createAfterSeconds : 0)) * MS;
        if (ageMs(startedAt, now) >= patience) throw new RingStoreError('unavailable', 'there is no ring yet');
        const left = role === 'member' ? policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;
        await pause(clock, Math.min(ABSENT_POLL_MS * (1 + this.#uniform()), Math.max(left, 1)), closing.signal);
      } catch (error) {
        closing.signal.throwIfAborted();
        if (error instanceof RingConflictError) continue;
        const expired = ageMs(startedAt, momentOf(clock)) >= policy.startTimeoutSeconds * MS;
        if (expired || !mayPass(error)) throw error;
        const wait = Math.min(START_BACKOFF_CAP_MS, START_BACKOFF_BASE_MS * 2 ** failures);
        failures += 1;
        await pause(clock, wait * this.#uniform(), closing.signal);
      }
    }
    this.#limits.completed(momentOf(clock));
    this.#considerRotation();
    this.#scheduleNext(this.#refreshDelayMs());
    this.#unwatch = this.#o.store.watch?.(() => this.#onPush()) ?? this.#unwatch;
  }

  /** Stops timers and calls; the snapshot is gone at once. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelTimer();
    this.#cancelRotation?.();
    this.#unwatch();
    this.#o.closing.abort(new CodecClosedError());
    this.#snapshot = undefined;
    await this.#queue;
    this.#snapshot = undefined;
    this.#o.cache.clear();
  }

  // ---- one pass: read, adopt, unwrap, prove, maintain

  async #pass(options: { readonly foreground: boolean; readonly afterPush: boolean }): Promise<void> {
    if (this.#closed) throw new CodecClosedError();
    let failure: unknown;
    try {
      this.#kernelEntropy = await this.#o.readKernelEntropy();
      await this.#readRing(options);
      if (!options.afterPush) {
        await this.#proveIfDue(options);
        this.#limits.completed(this.now());
        if (this.#o.role === 'member') {
          await this.#reviveIfDead();
          await this.#addMissingWraps();
          this.#considerRotation();
        }
      }
      this.#failures = 0;
      this.#lastFailure = undefined;
    } catch (error) {
      if (this.#closed) throw new CodecClosedError();
      failure = error;
      // A lost race is no failure: the next read adopts what the winner wrote.
      if (!(error instanceof RingConflictError)) this.#recordFailure(error);
    }
    this.#scheduleNext(this.#nextDelayMs(failure, options));
    channels.refresh.publish(() => ({
      ok: failure === undefined,
      ...(failure === undefined ? {} : { kind: kindOf(failure) }),
      ...(this.#snapshot === undefined ? {} : { epoch: this.#snapshot.document.epoch }),
    }));
    this.#announceState();
    if (failure !== undefined) throw failure;
  }

  async #readRing(options: { readonly foreground: boolean; readonly afterPush?: boolean }): Promise<void> {
    const stored = await this.#stored.read();
    if (stored === undefined) return this.#healAbsence();
    const current = this.snapshot;
    if (stored.document.body === current.document.body) {
      this.#limits.wasRead(this.now());
      if (options.afterPush !== true) await this.#adopt(current.document, stored.revision, options);
      return;
    }
    switch (this.#judge(stored.document)) {
      case 'adopt':
        return this.#adoptRead(stored, options);
      case 'cold':
        return this.#adoptCold(stored, options);
      case 'heal':
        return this.#heal(options);
    }
  }

  /** What to do with a document other than the current one. @throws {RingStoreError} for one that is not ours. */
  #judge(document: RingDocument): 'adopt' | 'cold' | 'heal' {
    const current = this.snapshot;
    const nowMs = this.nowMs(this.now());
    const own = current.keys.flatMap((key): OwnKey[] =>
      isUsable(key) && mayOpen(key, nowMs) ? [{ id: key.id, activates: key.activates, held: key.held }] : [],
    );
    if (own.length === 0) return 'cold';
    const verdict = judge(document, own);
    if (verdict === 'forged') throw new RingStoreError('corrupt', 'not signed by a key of this ring');
    const newer = document.epoch > current.document.epoch;
    return verdict === 'accepted' && newer && !lacks(document, current.document, nowMs) ? 'adopt' : 'heal';
  }

  async #adoptRead(
    stored: Stored,
    options: { readonly foreground: boolean; readonly afterPush?: boolean },
  ): Promise<void> {
    this.#limits.wasRead(this.now());
    if (options.afterPush === true) this.#swap(stored.document, stored.revision);
    else await this.#adopt(stored.document, stored.revision, options);
  }

  /** Unwraps what is new and swaps the snapshot, after the unwraps or after their failure. */
  async #adopt(document: RingDocument, revision: string | undefined, options: { foreground: boolean }): Promise<void> {
    const failure = await this.#unwrapLive(document.entries, options);
    this.#swap(document, revision);
    if (failure !== undefined) throw failure;
  }

  /** Without live keys of one's own, the newest key of the document must have signed it. */
  async #adoptCold(stored: Stored, options: { foreground: boolean }): Promise<void> {
    const { document, revision } = stored;
    const nowMs = this.nowMs(this.now());
    const live = document.entries.filter((entry) => nowMs < entry.opensUntil && !this.#isRevoked(entry));
    const failure = await this.#unwrapLive(document.entries, options);
    if (failure !== undefined) throw failure;
    const held = live.map((entry) => ({ entry, key: this.#o.wraps.cached(entry) }));
    const newestEntry = newest(live);
    const signer = held.find(({ entry }) => entry.id === newestEntry?.id)?.key;
    const contradicted = held.some(({ key }) => key !== undefined && contradicts(document, key));
    if (newestEntry !== undefined && (signer === undefined || !isSignedBy(document, signer) || contradicted)) {
      throw new RingStoreError('corrupt', 'not signed by its newest key');
    }
    if (
      live.length === 0 &&
      (this.#o.role === 'reader' || document.entries.some((entry) => this.#isPinnedOut(entry)))
    ) {
      throw new RingStoreError('corrupt', 'the ring holds no live key that may be used');
    }
    this.#limits.wasRead(this.now());
    this.#swap(document, revision);
  }

  /** Unwraps every live entry that is not held yet. Returns the first failure: the others are still worth having. */
  async #unwrapLive(entries: readonly RingEntry[], options: { foreground: boolean }): Promise<unknown> {
    const nowMs = this.nowMs(this.now());
    const wanted = entries.filter(
      (entry) => nowMs < entry.opensUntil && !this.#isRevoked(entry) && this.#o.wraps.cached(entry) === undefined,
    );
    const results = await Promise.allSettled(wanted.map((entry) => this.#o.wraps.unwrap(entry, options)));
    const now = this.now();
    for (const result of results) {
      if (result.status === 'fulfilled') this.#limits.proved(now);
    }
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return undefined;
    this.#noteRefusal(failed.reason, now);
    return failed.reason;
  }

  async #proveIfDue(options: { foreground: boolean }): Promise<void> {
    const { policy, clock, wraps } = this.#o;
    const now = momentOf(clock);
    const { lastProof } = this.#limits;
    const due = policy.proveEverySeconds * MS * (1 - 0.2 * this.#uniform());
    // One refresh interval of slack: the pass after the next would be too late.
    const fresh = lastProof !== undefined && ageMs(lastProof, now) + policy.refreshEverySeconds * MS < due;
    if (fresh && !this.#proofWanted && !this.#limits.isRefused) return;
    const key = newest(liveKeys(this.snapshot, this.nowMs(now)).filter(isUsable));
    if (key === undefined) return;
    try {
      await wraps.prove(key.entry, key.held, options);
      this.#proofWanted = false;
      this.#limits.proved(momentOf(clock));
    } catch (error) {
      this.#noteRefusal(error, momentOf(clock));
      throw error;
    }
  }

  #noteRefusal(error: unknown, now: Moment): void {
    if (error instanceof KeyWrapperError) this.#limits.failed(error.kind, now);
  }

  // ---- writing

  async #found(): Promise<void> {
    const { ring } = this.#o;
    await this.#publishInto({ ring, epoch: 0, entries: [], unknown: {} }, undefined, [], 'initial');
  }

  /** A ring whose last key has ended, or been revoked, gets a new one at once: nothing else can seal. */
  async #reviveIfDead(): Promise<void> {
    if (this.#o.role === 'reader') return;
    const nowMs = this.nowMs(this.now());
    const { keys } = this.snapshot;
    if (keys.some((key) => !key.revoked && nowMs < key.sealsUntil)) return;
    await this.#publish('initial', this.snapshot, (entries) => entries);
  }

  /** Publishes a successor of the ring in `base`. @throws {RingConflictError | RingStoreError | KeyWrapperError} */
  async #publish(
    reason: RotationReason,
    base: RingSnapshot,
    change: (entries: readonly RingEntry[]) => readonly RingEntry[],
  ): Promise<void> {
    const nowMs = this.nowMs(this.now());
    const entries = change(withoutRemovable(base.document.entries, nowMs, this.#o.policy));
    if (isFull(entries)) throw new RingStoreError('too-large', `the ring has ${MAX_RING_KEYS} keys, all of them live`);
    const signers = this.#signersOf(base, nowMs);
    await this.#publishInto({ ...base.document, entries }, base.revision, signers, reason);
  }

  async #publishInto(
    content: RingContent,
    expected: string | undefined,
    signers: readonly HeldKey[],
    reason: RotationReason,
  ): Promise<void> {
    const { policy, wraps, clock } = this.#o;
    const times = timesOfNewKey(reason, this.nowMs(momentOf(clock)), policy);
    const { entry, held } = await wraps.create(times, (id) => content.entries.some((other) => other.id === id));
    this.#limits.proved(momentOf(clock));
    const entries = [...content.entries, entry];
    await this.#write({ ...content, epoch: nextEpoch(content.epoch), entries }, [...signers, held], expected);
    channels.rotation.publish(() => ({ keyId: entry.id, reason, epoch: content.epoch + 1 }));
  }

  async #write(content: RingContent, signers: readonly HeldKey[], expected: string | undefined): Promise<void> {
    try {
      const written = await this.#stored.write(content, signers, expected);
      this.#limits.wasRead(this.now());
      this.#swap(written.document, written.revision);
    } catch (error) {
      if (error instanceof RingConflictError) channels.conflict.publish(() => ({ epoch: content.epoch }));
      throw error;
    }
  }

  /**
   * Who signs what this member writes: every key it can sign with whose life is not over, revoked ones included, since
   * a member that missed the revocation can check nothing else.
   * @throws {RingStoreError} while a live key is not held: a document without its MAC would shut out who holds only it.
   */
  #signersOf(base: RingSnapshot, nowMs: number): readonly HeldKey[] {
    const live = base.keys.filter((key) => nowMs < key.opensUntil);
    if (live.some((key) => !key.revoked && key.held === undefined)) {
      throw new RingStoreError('unavailable', 'a live key of the ring could not be unwrapped yet');
    }
    return live.flatMap((key) => (key.signer === undefined ? [] : [key.signer]));
  }

  async #addMissingWraps(): Promise<void> {
    const { snapshot } = this;
    const { wrappers, wraps } = this.#o;
    const nowMs = this.nowMs(this.now());
    const poor = liveKeys(snapshot, nowMs).filter((key) => isUsable(key) && lacksWraps(key.entry, wrappers));
    if (poor.length === 0) return;
    const richer = new Map<string, RingEntry>();
    for (const key of poor) {
      if (key.held === undefined) continue;
      const entry = await wraps.addMissing(key.entry, key.held);
      if (entry !== key.entry) richer.set(key.id, entry);
    }
    if (richer.size === 0) return;
    const entries = snapshot.document.entries.map((entry) => richer.get(entry.id) ?? entry);
    const content = { ...snapshot.document, entries, epoch: nextEpoch(snapshot.document.epoch) };
    await this.#write(content, this.#signersOf(snapshot, nowMs), snapshot.revision);
  }

  // ---- healing: absence is not deletion

  async #healAbsence(): Promise<void> {
    if (this.#o.role === 'reader') throw new RingStoreError('unavailable', 'the ring is absent from its store');
    await pause(this.#o.clock, HEAL_WAIT_MS * this.#uniform(), this.#o.closing.signal);
    if ((await this.#stored.read()) !== undefined) throw new RingConflictError();
    const { snapshot } = this;
    const nowMs = this.nowMs(this.now());
    await this.#write(snapshot.document, this.#signersOf(snapshot, nowMs), undefined);
    channels.healed.publish(() => ({ epoch: snapshot.document.epoch }));
  }

  /** Writes the union over a document of this ring that lacks something; in memory it holds at once. */
  async #heal(options: { readonly foreground: boolean }): Promise<void> {
    const { clock, closing, role } = this.#o;
    if (role === 'member') await pause(clock, HEAL_WAIT_MS * this.#uniform(), closing.signal);
    const stored = await this.#stored.read();
    if (stored === undefined) throw new RingConflictError();
    const verdict = this.#judge(stored.document);
    if (verdict === 'adopt') return this.#adoptRead(stored, options);
    if (verdict === 'cold') return this.#adoptCold(stored, options);
    const content = union(this.snapshot.document, stored.document);
    await this.#adopt({ ...stored.document, ...content, body: '' }, undefined, options);
    if (role === 'reader') throw new RingStoreError('corrupt', 'an older document of this ring: a member must heal it');
    const nowMs = this.nowMs(momentOf(clock));
    const signers = this.#signersOf(this.snapshot, nowMs);
    await this.#write({ ...content, epoch: nextEpoch(content.epoch) }, signers, stored.revision);
    channels.healed.publish(() => ({ epoch: content.epoch + 1 }));
  }

  // ---- rotation by itself

  #considerRotation(): void {
    if (this.#o.role === 'reader' || this.#cancelRotation !== undefined || !this.#isRotationDue()) return;
    const { policy, clock } = this.#o;
    const wait =
      this.#rotationFailures === 0
        ? rotationDelayMs(this.#uniform(), policy)
        : Math.min(policy.proveEverySeconds * MS, 60_000 * 2 ** this.#rotationFailures) * (0.5 + this.#uniform() / 2);
    this.#cancelRotation = schedule(
      clock,
      () => {
        this.#cancelRotation = undefined;
        if (!this.#closed) void this.#exclusive(() => this.#rotateIfDue());
      },
      wait,
    );
  }

  async #rotateIfDue(): Promise<void> {
    try {
      await this.#readRing({ foreground: false });
      if (this.#isRotationDue()) await this.#publish('scheduled', this.snapshot, (entries) => entries);
      this.#rotationFailures = 0;
    } catch (error) {
      if (this.#closed || error instanceof RingConflictError) return;
      this.#rotationFailures += 1;
      this.#recordFailure(error);
      this.#considerRotation();
    }
  }

  #isRotationDue(): boolean {
    const now = this.now();
    if (this.#closed || this.#sealBlock(now) !== undefined) return false;
    const last = newest(this.snapshot.keys.filter((key) => !key.revoked));
    return last !== undefined && this.nowMs(now) >= rotateAt(last, this.#o.policy);
  }

  // ---- plumbing

  #swap(document: RingDocument, revision: string | undefined): void {
    const snapshot = createSnapshot(
      document,
      revision,
      (entry) => this.#o.wraps.cached(entry),
      (entry) => this.#isRevoked(entry),
    );
    if (this.#closed) return;
    this.#snapshot = snapshot;
    const kept = new Set(snapshot.keys.map((key) => key.signer));
    this.#o.cache.prune((key) => kept.has(key));
  }

  #isRevoked(entry: RingEntry): boolean {
    return entry.revoked !== undefined || this.#isPinnedOut(entry);
  }

  #isPinnedOut(entry: RingEntry): boolean {
    const { acceptCreatedFromMs } = this.#o;
    return acceptCreatedFromMs !== undefined && entry.created < acceptCreatedFromMs;
  }

  #sealBlock(now: Moment): SealUnavailableReason | undefined {
    return this.#o.role === 'reader' ? 'reader' : this.#limits.sealBlock(now);
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

  async #retryConflicts(attempt: (first: boolean) => Promise<void>): Promise<void> {
    for (let round = 0; ; round++) {
      try {
        return await attempt(round === 0);
      } catch (error) {
        if (!(error instanceof RingConflictError) || round >= MAX_CONFLICTS) throw error;
        await pause(this.#o.clock, Math.min(1_000, 10 * 2 ** round) * this.#uniform(), this.#o.closing.signal);
      }
    }
  }

  #scheduleNext(delayMs: number): void {
    if (this.#closed) return;
    this.#cancelTimer();
    this.#overdueAt = later(this.now(), delayMs + this.#o.policy.backoffCapSeconds * MS);
    this.#cancelTimer = schedule(this.#o.clock, () => this.#background(false), delayMs);
  }

  #background(afterPush: boolean): void {
    if (this.#closed) return;
    // The failure is in health() and in the event; nobody awaits a background pass.
    this.#exclusive(() => this.#pass({ foreground: false, afterPush })).catch(() => undefined);
  }

  /** Timers do not run while a machine is suspended: the next call notices. */
  #noticeGap(now: Moment): void {
    if (this.#overdueAt === undefined || !hasPassed(this.#overdueAt, now)) return;
    this.#proofWanted = true;
    this.#scheduleNext(0);
  }

  #onPush(): void {
    this.#background(true);
  }

  #nextDelayMs(failure: unknown, options: { readonly afterPush: boolean }): number {
    if (failure instanceof RingConflictError) return HEAL_WAIT_MS * this.#uniform();
    if (failure !== undefined) {
      if (this.#limits.isRefused) return REFUSAL_PROBE_MS;
      const { backoffCapSeconds } = this.#o.policy;
      return Math.min(backoffCapSeconds * MS, BACKOFF_BASE_MS * 2 ** (this.#failures - 1)) * this.#uniform();
    }
    if (!options.afterPush) return this.#refreshDelayMs();
    const nowMs = this.nowMs(this.now());
    const soonest = Math.min(
      ...this.snapshot.keys.filter((key) => key.signer === undefined).map((key) => Math.max(key.activates - nowMs, 0)),
    );
    return Math.min(PUSH_WAIT_CAP_MS, soonest / 4, this.#o.policy.refreshEverySeconds * MS) * this.#uniform();
  }

  #refreshDelayMs(): number {
    return this.#o.policy.refreshEverySeconds * MS * (1 - 0.2 * this.#uniform());
  }

  #recordFailure(error: unknown): void {
    this.#failures += 1;
    this.#lastFailure = { kind: kindOf(error), at: new Date(this.#o.clock.wallMs()) };
  }

  #announceState(): void {
    if (this.#closed) return;
    const status = this.status(this.now());
    if (status === this.#lastStatus) return;
    this.#lastStatus = status;
    channels.state.publish(() => ({ status }));
  }

  #uniform(): number {
    return uniform(this.#o.random);
  }

  #assertOpen(): void {
    if (this.#closed) throw new CodecClosedError();
  }

  #assertMember(operation: string): void {
    this.#assertOpen();
    if (this.#o.role === 'reader') throw new RingStoreError('read-only', `a reader does not ${operation}`);
  }
}

function nextEpoch(epoch: number): number {
  if (epoch >= MAX_EPOCH) throw new RingStoreError('too-large', 'the epoch is at its end');
  return epoch + 1;
}

/** What may be gone by the next attempt. */
function mayPass(error: unknown): boolean {
  if (error instanceof RingStoreError) return error.kind === 'unavailable';
  return error instanceof KeyWrapperError && (error.kind === 'unavailable' || error.kind === 'throttled');
}

function kindOf(error: unknown): string {
  if (error instanceof RingStoreError) return `store ${error.kind}`;
  if (error instanceof KeyWrapperError) return `kms ${error.kind}`;
  return error instanceof RingConflictError ? 'conflict' : 'internal';
}
