import { ageMs, type Clock, type Moment, pause, type RandomSource, uniform } from '../clock.ts';
import { channels } from '../events.ts';
import { KeyWrapperError } from '../key-wrapper.ts';
import { contradicts, isSignedBy, judge, type OwnKey } from './authentication.ts';
import type { RingDocument, RingEntry } from './document.ts';
import { isUnfounded } from './founding.ts';
import type { CallOptions } from './kms-calls.ts';
import { lacks, union } from './merge.ts';
import type { ResolvedPolicy } from './policy.ts';
import { newest } from './schedule.ts';
import { isUsable, liveKeys } from './snapshot.ts';
import { RingConflictError, RingStoreError } from './store.ts';
import type { Stored, StoredRingDocument } from './stored-ring.ts';
import type { RingView } from './view.ts';
import type { KeyWraps } from './wraps.ts';
import type { RingWriter } from './writer.ts';

const MS = 1_000;
/** Longest random wait before a member writes over a document that lost something: one of many is enough. */
const HEAL_WAIT_MS = 5_000;

/** How a read of the ring is made. */
export interface SyncOptions extends CallOptions {
  /** Unwrap later what is not urgent: after a push the whole fleet reads at once. */
  readonly deferUnwraps?: boolean;
}

/**
 * Brings the view up to date with the store: reads, judges, unwraps, adopts, and heals what was lost. Absence is not
 * deletion: a key leaves this member's memory at its end or by a revocation, never because a document lacks it.
 */
export class RingSync {
  readonly #role: 'member' | 'reader';
  readonly #policy: ResolvedPolicy;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #closing: AbortSignal;
  readonly #wraps: KeyWraps;
  readonly #stored: StoredRingDocument;
  readonly #view: RingView;
  readonly #writer: RingWriter;
  #jitterOf: Moment | undefined;
  #proofIntervalMs = 0;
  #isHealing = false;

  constructor(options: {
    readonly role: 'member' | 'reader';
    readonly policy: ResolvedPolicy;
    readonly clock: Clock;
    readonly random: RandomSource;
    readonly closing: AbortSignal;
    readonly wraps: KeyWraps;
    readonly stored: StoredRingDocument;
    readonly view: RingView;
    readonly writer: RingWriter;
  }) {
    this.#role = options.role;
    this.#policy = options.policy;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#closing = options.closing;
    this.#wraps = options.wraps;
    this.#stored = options.stored;
    this.#view = options.view;
    this.#writer = options.writer;
  }

  /** Reads the ring and makes it the view. @throws {RingConflictError | RingStoreError | KeyWrapperError} */
  async read(options: SyncOptions): Promise<void> {
    const stored = await this.#stored.read();
    if (stored === undefined || isUnfounded(stored.document)) {
      await this.#healAbsence();
      this.#isHealing = false;
      return;
    }
    const { document: current, revision } = this.#view.snapshot;
    if (stored.document === current && stored.revision === revision && this.#holdsAll()) this.#wasRead();
    else if (stored.document.body === current.body) await this.#adoptAgain(stored, options);
    else if (!(await this.#adoptOrStart(stored, options))) await this.#heal(options);
    this.#isHealing = false;
  }

  /**
   * Adopts a document without live keys of one's own: the newest of its keys must have signed it, and all of its live
   * keys must be here, or tokens would be lost.
   * @throws {RingStoreError | KeyWrapperError}
   */
  async start(stored: Stored, options: SyncOptions): Promise<void> {
    const { document, revision } = stored;
    const wallMs = this.#view.wallMs();
    const live = document.entries.filter((entry) => this.#isLive(entry, wallMs));
    // One first: a KMS in trouble is not asked for a ringful of keys by every process that starts meanwhile.
    const first = newest(live);
    const failure =
      (first === undefined ? undefined : await this.#unwrapLive([first], options)) ??
      (await this.#unwrapLive(live, options));
    if (failure !== undefined) throw failure;
    if (live.length === 0) this.#checkMayRevive(document);
    else if (!this.#isSignedByNewest(document, live))
      throw new RingStoreError('corrupt', 'not signed by its newest key');
    this.#wasRead();
    this.#view.install(document, revision);
  }

  /**
   * Whether none of a document's keys can be used any more. Nothing in such a document can be checked: it may be an old
   * copy of a ring that lives on elsewhere, and says no more than an empty store.
   */
  isDead(document: RingDocument): boolean {
    const wallMs = this.#view.wallMs();
    return !document.entries.some((entry) => this.#isLive(entry, wallMs));
  }

  #isLive(entry: RingEntry, wallMs: number): boolean {
    return wallMs < entry.opensUntil && !this.#view.isRevoked(entry);
  }

  /** Whether the store was seen to have lost something, and it is not restored yet. */
  get isHealing(): boolean {
    return this.#isHealing;
  }

  /** Milliseconds until the KMS is to be asked for the next proof; 0 when that is due. */
  msUntilProof(): number {
    const { lastProof, isRefused } = this.#view.limits;
    if (lastProof === undefined || isRefused) return 0;
    // Drawn once per proof: drawn at every look, the shortest of many draws would win.
    if (lastProof !== this.#jitterOf) {
      this.#jitterOf = lastProof;
      this.#proofIntervalMs = this.#policy.proveEverySeconds * MS * (1 - 0.2 * uniform(this.#random));
    }
    return Math.max(0, this.#proofIntervalMs - ageMs(lastProof, this.#view.now()));
  }

  /** Unwraps the newest key once more. @throws {KeyWrapperError} */
  async prove(options: SyncOptions): Promise<void> {
    const key = newest(liveKeys(this.#view.snapshot, this.#view.wallMs()).filter(isUsable));
    if (key === undefined) return;
    try {
      await this.#wraps.prove(key.entry, key.held, options);
      this.#view.limits.proved(this.#view.now());
    } catch (error) {
      this.#noteRefusal(error);
      throw error;
    }
  }

  /** The same first line, stored anew or signed otherwise: it must be signed all the same. */
  async #adoptAgain(stored: Stored, options: SyncOptions): Promise<void> {
    const verdict = this.#judge(stored.document);
    if (verdict === 'start') await this.start(stored, options);
    else if (verdict === 'overwrite') await this.#heal(options);
    else await this.#adopt(stored, options);
  }

  /** Adopts a document other than the current one if it may be; false where it has to be healed. */
  async #adoptOrStart(stored: Stored, options: SyncOptions): Promise<boolean> {
    const verdict = this.#judge(stored.document);
    if (verdict === 'adopt') await this.#adopt(stored, options);
    else if (verdict === 'start') await this.start(stored, options);
    return verdict === 'adopt' || verdict === 'start';
  }

  /** @throws {RingStoreError} `corrupt` for a document that no key of this member vouches for. */
  #judge(document: RingDocument): 'adopt' | 'start' | 'unite' | 'overwrite' {
    const { snapshot } = this.#view;
    const { document: current } = snapshot;
    const wallMs = this.#view.wallMs();
    const own: readonly OwnKey[] = liveKeys(snapshot, wallMs).filter(isUsable);
    if (own.length === 0) return 'start';
    switch (judge(document, own, this.#view.pastSigners())) {
      case 'accepted':
        return document.epoch > current.epoch && !lacks(document, current, wallMs) ? 'adopt' : 'unite';
      case 'older branch':
        return 'unite';
      case 'ended branch':
        return 'overwrite';
      case 'forged':
        throw new RingStoreError('corrupt', 'not signed by a key of this ring');
    }
  }

  #wasRead(): void {
    this.#view.limits.wasRead(this.#view.now());
  }

  /** Whether there is nothing left to unwrap. */
  #holdsAll(): boolean {
    return liveKeys(this.#view.snapshot, this.#view.wallMs()).every(isUsable);
  }

  /** Unwraps what is new and swaps the view, after the unwraps or after their failure. */
  async #adopt(stored: Stored, options: SyncOptions): Promise<void> {
    this.#wasRead();
    const failure = await this.#unwrapLive(stored.document.entries, options);
    this.#view.install(stored.document, stored.revision);
    if (failure !== undefined) throw failure;
  }

  /**
   * Unwraps every live key that is not held yet; with `deferUnwraps`, those that may seal already, since they come with
   * the revocation of what seals now. Returns the first failure: the others are still worth having.
   */
  async #unwrapLive(entries: readonly RingEntry[], options: SyncOptions): Promise<unknown> {
    const wallMs = this.#view.wallMs();
    const wanted = entries.filter(
      (entry) =>
        this.#isLive(entry, wallMs) &&
        this.#wraps.cached(entry) === undefined &&
        (options.deferUnwraps !== true || entry.activates <= wallMs),
    );
    const results = await Promise.allSettled(wanted.map((entry) => this.#wraps.unwrap(entry, options)));
    if (results.some((result) => result.status === 'fulfilled')) this.#view.limits.proved(this.#view.now());
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return undefined;
    this.#noteRefusal(failed.reason);
    return failed.reason;
  }

  #isSignedByNewest(document: RingDocument, live: readonly RingEntry[]): boolean {
    const held = live.map((entry) => this.#wraps.cached(entry));
    if (held.some((key) => key !== undefined && contradicts(document, key))) return false;
    const signer = held[live.findIndex((entry) => entry.id === newest(live)?.id)];
    return signer !== undefined && isSignedBy(document, signer);
  }

  /** Nothing in such a document can be checked; whoever could put it there could as well have deleted the ring. */
  #checkMayRevive(document: RingDocument): void {
    if (this.#role === 'reader' || document.entries.some((entry) => this.#view.isPinnedOut(entry))) {
      throw new RingStoreError('corrupt', 'the ring holds no live key that may be used');
    }
  }

  async #healAbsence(): Promise<void> {
    this.#isHealing = true;
    if (this.#role === 'reader') throw new RingStoreError('unavailable', 'the ring is absent from its store');
    await this.#waitToHeal();
    const stored = await this.#stored.read();
    if (stored !== undefined && !isUnfounded(stored.document)) throw new RingConflictError();
    await this.#writer.restore(stored?.revision);
  }

  /** Writes over a document of this ring that lacks something: the union with it, which holds in memory at once. */
  async #heal(options: SyncOptions): Promise<void> {
    this.#isHealing = true;
    if (this.#role === 'member') await this.#waitToHeal();
    const stored = await this.#stored.read();
    if (stored === undefined || isUnfounded(stored.document)) throw new RingConflictError();
    if (await this.#adoptOrStart(stored, options)) return;
    if (this.#judge(stored.document) === 'unite') await this.#unite(stored.document, options);
    if (this.#role === 'reader') {
      throw new RingStoreError('corrupt', 'an older document of this ring, which a member has to heal');
    }
    await this.#writer.write(this.#view.snapshot.document, stored.revision);
    channels.healed.publish(() => ({ epoch: this.#view.snapshot.document.epoch }));
  }

  async #unite(seen: RingDocument, options: SyncOptions): Promise<void> {
    const content = union(this.#view.snapshot.document, seen);
    const failure = await this.#unwrapLive(content.entries, options);
    // An empty body equals that of no stored document: the next read looks again, whatever becomes of the write.
    this.#view.install({ ...seen, ...content, body: '' }, undefined);
    if (failure !== undefined) throw failure;
  }

  #waitToHeal(): Promise<void> {
    return pause(this.#clock, HEAL_WAIT_MS * uniform(this.#random), this.#closing);
  }

  #noteRefusal(error: unknown): void {
    if (error instanceof KeyWrapperError) this.#view.limits.failed(error.kind, this.#view.now());
  }
}
