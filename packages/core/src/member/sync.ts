import { ageMs, type Deadline, earlier, hasPassed, later, type Moment } from '../base/clock.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingStoreError } from '../contracts/ring-store.ts';
import { isCorrupt } from '../kms/corrupt-wraps.ts';
import type { CallOptions } from '../kms/kms-calls.ts';
import type { Unwrapped } from '../kms/wraps.ts';
import { type RingDocument, type RingEntry, type RingWrap } from '../ring/document.ts';
import { isFromTheFuture, unwrappedKey } from '../ring/facts.ts';
import { belongs, learn, withUnwrapped } from '../ring/learn.ts';
import { createSnapshot, isUsable, type RingKey, type RingSnapshot } from '../ring/snapshot.ts';
import { isRefused, LEAST_SPACING_MS } from './kill-switch.ts';
import type { KmsCheck } from './kms-check.ts';
import { BATCH, isDead, type LearnAnewOptions, learnAnew, mayBeOlder, pastSigners } from './learn-anew.ts';
import type { MemberParts } from './parts.ts';
import type { Repairs } from './repairs.ts';

const MS = 1_000;
/** How long one read unwraps entries, as a multiple of the deadline of one KMS call. */
const CALLS_OF_A_READ = 4;
/** The same while refusals are counted, because a slow pass would hide them from the kill switch. */
const CALLS_WHILE_REFUSED = 1;
/** The failure that is noted for an entry that does not belong to the ring. It is never reported. */
const CORRUPT = new KeyWrapperError('corrupt', { provider: '', operation: 'unwrap' });

/** Options of a read of the ring. */
export interface SyncOptions extends CallOptions {
  /**
   * Whether to defer unwraps that are not urgent, because the whole fleet reads at the same time after a notification.
   */
  readonly deferUnwraps?: boolean;
  /**
   * Whether a token caused the read. If so, only entries that were never tried are unwrapped, because an attacker may
   * choose the token.
   */
  readonly forToken?: boolean;
}

type Parts = Pick<MemberParts, 'ring' | 'policy' | 'wraps' | 'stored' | 'view'>;

/** Updates this member's knowledge of the ring from the store. Only authenticated facts of a document are adopted. */
export class RingSync {
  readonly repairs: Repairs;
  readonly check: KmsCheck;
  readonly #o: Parts;
  #learnedFrom: RingDocument | undefined;
  /**
   * Wall time minus monotonic time when {@link #learnedFrom} was learned; if it changes, the document is learned again.
   */
  #learnedShift = 0;
  #wasAnswered = false;
  /** When the KMS first refused an entry although it unwrapped a held key, by the id of the entry. */
  readonly #refusedAt = new Map<string, Moment>();
  /** Entries of a ring that this member does not know, kept in case it has to begin again. */
  readonly #unwrapped = new Map<string, Unwrapped>();

  constructor(parts: Parts, repairs: Repairs, check: KmsCheck) {
    this.#o = parts;
    this.repairs = repairs;
    this.check = check;
  }

  /**
   * Reads the ring and learns its facts. Facts that the document lacks are written later: see {@link Repairs}.
   * @throws {RingStoreError} when the ring cannot be read.
   * @throws {KeyWrapperError} when one of its keys could not be unwrapped; everything else is learned.
   */
  async read(options: SyncOptions): Promise<void> {
    this.#wasAnswered = false;
    const stored = await this.#o.stored.read();
    this.#wasAnswered = true;
    const { document } = stored ?? {};
    let failure: unknown;
    const isLearned = document === this.#learnedFrom && Math.abs(this.#timeShift() - this.#learnedShift) <= MS;
    if (document !== undefined && (!isLearned || this.#o.view.snapshot.carried.length > 0)) {
      failure = await this.#learnFrom(document, options);
      // An entry that cannot be unwrapped now may become readable later, although the document stays the same.
      const judgement = this.#o.view.judgement(this.#o.view.now());
      const isUnsettled = document.entries.some((entry) => isFromTheFuture(entry, judgement));
      const isWhole = this.#o.view.snapshot.unreadable.length === 0 && !isUnsettled;
      // Whether the member switches to another ring is decided at the next read that nobody else caused.
      this.#noteLearned(isWhole && !isCaused(options) ? document : undefined);
    }
    const now = this.#o.view.now();
    this.#o.view.dropExpired(now);
    // An entry that this member's own pin refuses shows nothing about its writer.
    const { byId } = this.#o.view.snapshot;
    const teaches = document?.entries.some(({ id }) => byId.get(id)?.authenticator !== undefined) === true;
    if (teaches) this.#o.view.limits.wasRead(now);
    const isForeign = stored !== undefined && !teaches && (document === undefined || document.entries.length > 0);
    this.repairs.consider(document, now, isForeign);
    if (failure !== undefined) throw failure;
    // If neither the store nor this member has a live key, the read succeeds, and the member creates a key.
    const entries = stored === undefined ? [] : document?.entries;
    const known = [...this.#o.view.snapshot.keys, ...this.#o.view.snapshot.carried];
    if (entries !== undefined && [...entries, ...known].every((key) => key.opensUntil <= this.#o.view.wallMs(now)))
      return;
    if (stored === undefined) throw new RingStoreError('unavailable', 'the ring is absent from its store');
    if (stored.document === undefined) throw stored.error;
    if (!teaches) throw new RingStoreError('corrupt', 'the store holds no key of this ring');
  }

  /** Reads the ring before a write: entries that cannot be unwrapped yet do not prevent the write. */
  async readToWrite(options: SyncOptions): Promise<void> {
    try {
      await this.read(options);
    } catch (error) {
      if (!(error instanceof KeyWrapperError)) throw error;
    }
  }

  #noteLearned(document: RingDocument | undefined): void {
    this.#learnedFrom = document;
    this.#learnedShift = this.#timeShift();
  }

  #timeShift(now: Moment = this.#o.view.now()): number {
    return this.#o.view.wallMs(now) - now.steadyMs;
  }

  /** Whether the store answered the last read in any way. If so, it can be written to. */
  get wasAnswered(): boolean {
    return this.#wasAnswered;
  }

  /**
   * Unwraps the new entries that are vouched for. Swaps the snapshot once, so that a revocation and its successor take
   * effect together.
   */
  async #learnFrom(document: RingDocument, options: SyncOptions): Promise<unknown> {
    const limited = { ...options, until: this.#unwrapsUntil(options) };
    const { carried, unreadable } = this.#o.view.snapshot;
    const tried = new Set([...carried, ...unreadable].map(({ id }) => id));
    const failures = new Map<string, unknown>();
    const checked = (known: RingSnapshot): ReturnType<typeof learn> =>
      learn(known, document, this.#o.view.judgement(this.#o.view.now()));
    let { known, wanted } = checked(this.#o.view.snapshot);
    if (wanted.length === 0 && !isCaused(options) && (await this.#goOver(document, limited))) return undefined;
    for (;;) {
      // A read that others caused does not repeat unwraps that failed before: timers trigger the retries.
      const untried = wanted.filter(({ id }) => !failures.has(id) && !(isCaused(options) && tried.has(id)));
      const wallMs = this.#o.view.wallMs();
      const urgent = untried.filter(({ activates }) => options.deferUnwraps !== true || activates <= wallMs);
      // Entries marked as revoked come later, because a newer key may certify the revocation without an unwrap. Entries
      // that failed before come later too, because they must not prevent attempts on the others.
      const rank = (entry: RingEntry): number => (entry.revoked === undefined ? 0 : 2) + (tried.has(entry.id) ? 1 : 0);
      const first = Math.min(...urgent.map(rank));
      const batch = urgent.filter((entry) => rank(entry) === first);
      if (batch.length === 0 || hasPassed(limited.until, this.#o.view.now())) break;
      const learned = await this.#unwrapEach(batch.slice(0, BATCH), document, known, limited, failures);
      ({ known, wanted } = checked(withUnwrapped(known, learned, this.#o.view.judgement(this.#o.view.now()))));
    }
    const refused = wanted.filter(({ id }) => isRefused(failures.get(id)));
    for (const id of this.#refusedAt.keys()) if (!wanted.some((entry) => entry.id === id)) this.#refusedAt.delete(id);
    if (refused.length > 0 && options.forToken !== true) await this.#checkRefused(refused, failures, options);
    const wasUnreadable = new Set(unreadable.map(({ id }) => id));
    const isUnreadable = ({ id }: RingEntry): boolean =>
      failures.has(id) ? isCorrupt(failures.get(id)) : wasUnreadable.has(id);
    const pending = wanted.filter((entry) => !isUnreadable(entry));
    this.#o.view.install(createSnapshot(known.keys, pending, wanted.filter(isUnreadable)));
    return pending.map(({ id }) => failures.get(id)).find((failure) => failure !== undefined);
  }

  /** When this read stops unwrapping, because other work must not wait for a document that an attacker wrote. */
  #unwrapsUntil({ until }: SyncOptions): Deadline {
    const { policy, view } = this.#o;
    const now = view.now();
    const calls = view.limits.isRefused(now) ? CALLS_WHILE_REFUSED : CALLS_OF_A_READ;
    const over = later(now, calls * policy.kmsTimeoutSeconds * MS);
    return until === undefined ? over : earlier(until, over);
  }

  async #unwrapEach(
    entries: readonly RingEntry[],
    document: RingDocument,
    known: RingSnapshot,
    options: SyncOptions,
    failures: Map<string, unknown>,
  ): Promise<readonly RingKey[]> {
    const results = await Promise.allSettled(entries.map((entry) => this.#o.wraps.unwrap(entry, options)));
    const now = this.#o.view.now();
    return results.flatMap((result, i) => {
      const entry = entries[i] as RingEntry;
      if (result.status === 'rejected') {
        failures.set(entry.id, result.reason);
        return [];
      }
      this.#o.view.limits.kmsCheckPassed(now);
      const { held, wrap } = result.value;
      const key = unwrappedKey(this.#o.ring, entry, held, wrap, this.#o.view.sealsFrom(entry, now));
      if (belongs(key, entry, document, known, this.#o.view.judgement(now))) return [key];
      failures.set(entry.id, CORRUPT);
      return [];
    });
  }

  /**
   * Treats an entry as corrupt if the KMS refuses it twice, but does not refuse a held key that the same key wrapper
   * unwraps: one refusal can be a stray one.
   */
  async #checkRefused(
    refused: readonly RingEntry[],
    failures: Map<string, unknown>,
    options: SyncOptions,
  ): Promise<void> {
    const unwrapped = await this.#checked(options);
    if (unwrapped === undefined) return;
    const now = this.#o.view.now();
    for (const entry of refused) {
      const first = this.#refusedAt.get(entry.id);
      if (first === undefined) this.#refusedAt.set(entry.id, now);
      else if (ageMs(first, now) < LEAST_SPACING_MS) continue;
      else if (this.#o.wraps.noteRefused(entry, unwrapped)) failures.set(entry.id, CORRUPT);
    }
  }

  /** The wrap of a held key that the KMS unwraps now; undefined if it does not. */
  async #checked(options: CallOptions): Promise<RingWrap | undefined> {
    try {
      return await this.check.run(options);
    } catch {
      // The kill switch counts a refusal; the refresh fails with the answer for the entry.
      return undefined;
    }
  }

  /**
   * The one exception to "a member that knows a key never starts again": its ring was created recently, while the store
   * had lost an older ring, which has now come back. Switches to the older ring, but still unseals the tokens of its
   * newer ring until they expire. If the time of this read is not enough, the next read continues.
   */
  async #goOver(document: RingDocument, options: CallOptions & { until: Deadline }): Promise<boolean> {
    const { snapshot } = this.#o.view;
    const leastMs = this.#o.view.wallMs() - this.#o.policy.storeOutageSeconds * MS;
    if (!mayBeOlder(document, snapshot, leastMs)) return false;
    // An installation since the last read has overwritten the data keys that its snapshot does not contain.
    for (const [name, { held }] of this.#unwrapped) if (held.isOverwritten) this.#unwrapped.delete(name);
    let known: RingSnapshot;
    try {
      known = await this.anew(document, options);
    } catch (error) {
      if (!(await this.#isNoRing(error, options.until))) throw error;
      this.#unwrapped.clear();
      return false;
    }
    this.#unwrapped.clear();
    if (isDead(known, this.#o.view.wallMs())) return false;
    this.#o.view.begin(createSnapshot([...known.keys, ...snapshot.keys.map((key) => ({ ...key, isLeft: true }))]));
    return true;
  }

  /**
   * Whether a document that could not be learned as a whole is neither a usable ring nor the ring of this member. If
   * nothing of it was unwrapped before the time was over, although the KMS unwraps a held key, it is junk: an attacker
   * who cannot call the KMS can fill a document with wraps, so this member does not try all of them.
   */
  async #isNoRing(error: unknown, until: Deadline): Promise<boolean> {
    if (!hasPassed(until, this.#o.view.now())) {
      return error instanceof RingStoreError || isCorrupt(error) || isRefused(error);
    }
    return this.#unwrapped.size === 0 && (await this.#checked({})) !== undefined;
  }

  /** The facts that a member without known facts adopts from a document; see {@link learnAnew}. */
  anew(document: RingDocument, options: CallOptions): Promise<RingSnapshot> {
    return learnAnew(document, this.#learnOptions(options));
  }

  /** Remembers the authenticators of a ring whose keys have all expired. */
  async rememberPast(document: RingDocument, options: CallOptions): Promise<void> {
    this.#o.view.rememberPast(await pastSigners(document, this.#learnOptions(options)));
    this.#unwrapped.clear();
  }

  #learnOptions(options: CallOptions): LearnAnewOptions {
    return {
      ...options,
      wraps: this.#o.wraps,
      unwrapped: this.#unwrapped,
      // Facts about another ring do not apply to a ring that the member reads from the beginning.
      judgement: () => ({ ...this.#o.view.judgement(this.#o.view.now()), past: new Map() }),
      onKmsCheck: () => this.#o.view.limits.kmsCheckPassed(this.#o.view.now()),
    };
  }

  /** Installs what a start has learned. */
  begin(known: RingSnapshot, document: RingDocument | undefined): void {
    if (known.keys.some(isUsable)) this.#o.view.limits.wasRead(this.#o.view.now());
    this.#o.view.begin(known);
    // Entries that were refused or corrupt at the start are tried again once a known key vouches for them.
    const isWhole = document?.entries.every(({ id }) => known.byId.has(id)) === true;
    this.#noteLearned(isWhole ? document : undefined);
    this.#unwrapped.clear();
    this.repairs.consider(document, this.#o.view.now());
  }
}

/** Whether a token or a notification caused a read: an attacker can send either to every member at the same time. */
function isCaused({ forToken, deferUnwraps }: SyncOptions): boolean {
  return forToken === true || deferUnwraps === true;
}
