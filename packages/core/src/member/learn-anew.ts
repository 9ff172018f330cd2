import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingStoreError } from '../contracts/ring-store.ts';
import type { CallOptions } from '../kms/kms-calls.ts';
import type { KeyWraps, Unwrapped } from '../kms/wraps.ts';
import { isCertified, newestFirst, type Signer } from '../ring/certificates.ts';
import { type Revocation, type RingDocument, type RingEntry, timesOf } from '../ring/document.ts';
import { isFromTheFuture, isTombstone, type Judgement, signersOf, unwrappedKey } from '../ring/facts.ts';
import { learn, lineagesOf } from '../ring/learn.ts';
import { createSnapshot, isUsable, type RingSnapshot } from '../ring/snapshot.ts';
import { isRefused } from './kill-switch.ts';

/** How many entries of a document are unwrapped at the same time. */
export const BATCH = 4;

/** The parts that a member needs to read a ring that it does not know. */
export interface LearnAnewOptions extends CallOptions {
  readonly judgement: () => Judgement;
  readonly wraps: KeyWraps;
  /** Entries that earlier attempts have unwrapped; this attempt adds its own. */
  readonly unwrapped: Map<string, Unwrapped>;
  /** Called after every unwrap that succeeded. */
  readonly onKmsCheck: () => void;
}

/**
 * The facts that a member without known facts adopts from a document: the live keys that can be unwrapped and are
 * linked by valid vouchers, and the revocations that they certify. The caller treats a ring without
 * a usable key as absent.
 *
 * @throws {KeyWrapperError} when a live entry cannot be unwrapped now, or when all of them are refused or corrupt.
 * @throws {RingStoreError} `corrupt` when the pin of this member refuses every entry that has not expired, and for two
 * lineages; `unavailable` when the creation times of the usable keys are in the future.
 */
export async function learnAnew(document: RingDocument, options: LearnAnewOptions): Promise<RingSnapshot> {
  const attempt = new Attempt(document, options);
  const live = attempt.entries.filter((entry) => attempt.isLive(entry));
  const [newest, ...others] = live.filter((entry) => entry.revoked === undefined);
  // One key is unwrapped first, because a failing KMS must not receive a call for every key from every process that
  // starts.
  if (newest !== undefined) await attempt.unwrap([newest]);
  await attempt.unwrap(others);
  // Revoked keys are unwrapped one by one, newest first, because whether a revocation holds may depend on newer keys.
  for (const entry of live) {
    if (entry.revoked !== undefined && !attempt.isCertified(entry, entry.revoked)) await attempt.unwrap([entry]);
  }
  attempt.throwWhatFailed(live);
  return attempt.oneLineage();
}

/**
 * Learns the authenticators of expired and revoked entries, so that they vouch for the next key. Running members that
 * know those keys accept the next key only with such a voucher, so a start waits for entries that may be unwrapped later.
 * @throws {KeyWrapperError} when an entry cannot be unwrapped yet, or when none can be unwrapped and the KMS refuses a
 * live one.
 */
export async function pastSigners(document: RingDocument, options: LearnAnewOptions): Promise<readonly Signer[]> {
  const attempt = new Attempt(document, options);
  await attempt.unwrap(attempt.entries);
  attempt.throwWhatMayLink();
  const isRevoked = (id: string): boolean => attempt.learned().byId.get(id)?.revoked === true;
  return attempt.entries.flatMap((entry) => {
    const held = attempt.keyOf(entry)?.held;
    return held === undefined ? [] : [{ ...entry, revoked: isRevoked(entry.id), authenticator: held.authenticator }];
  });
}

class Attempt {
  readonly #document: RingDocument;
  readonly #o: LearnAnewOptions;
  readonly #failures = new Map<string, unknown>();
  /** Newest first by (created, id). */
  readonly entries: readonly RingEntry[];

  constructor(document: RingDocument, options: LearnAnewOptions) {
    this.#document = document;
    this.#o = options;
    this.entries = document.entries.toSorted(newestFirst);
  }

  isLive(entry: RingEntry): boolean {
    const { nowMs, isPinnedOut } = this.#o.judgement();
    return nowMs < entry.opensUntil && !isPinnedOut(entry);
  }

  keyOf(entry: RingEntry): Unwrapped | undefined {
    return this.#o.unwrapped.get(memoryOf(entry));
  }

  async unwrap(entries: readonly RingEntry[]): Promise<void> {
    // Transient failures are waited out before any other call is made.
    if ([...this.#failures.values()].some(mayPass)) return;
    const wanted = entries.filter((entry) => this.keyOf(entry) === undefined && !this.#failures.has(entry.id));
    for (let i = 0; i < wanted.length; i += BATCH) {
      const batch = wanted.slice(i, i + BATCH);
      const results = await Promise.allSettled(batch.map((entry) => this.#o.wraps.unwrap(entry, this.#o)));
      for (const [j, result] of results.entries()) {
        const entry = batch[j] as RingEntry;
        if (result.status === 'rejected') {
          this.#failures.set(entry.id, result.reason);
          continue;
        }
        this.#o.onKmsCheck();
        this.#o.unwrapped.set(memoryOf(entry), result.value);
      }
      if (results.some((result) => result.status === 'rejected' && mayPass(result.reason))) return;
    }
  }

  /** The keys known so far, with the revocations that they certify. */
  learned(): RingSnapshot {
    const judgement = this.#o.judgement();
    const keys = this.entries.flatMap((entry) => {
      const found = this.keyOf(entry);
      if (found === undefined || !this.isLive(entry) || isFromTheFuture(entry, judgement)) return [];
      return [unwrappedKey(judgement.ring, entry, found.held, found.wrap, 0)];
    });
    return learn(createSnapshot(keys), this.#document, judgement).known;
  }

  isCertified(entry: RingEntry, revoked: Revocation): boolean {
    const judgement = this.#o.judgement();
    const signers = signersOf(this.learned().keys, judgement.past);
    return isCertified(judgement.ring, entry, revoked, signers);
  }

  /**
   * Entries that are corrupt or refused are skipped as long as another entry can be unwrapped. If no entry can be
   * unwrapped, the start fails.
   */
  throwWhatFailed(live: readonly RingEntry[]): void {
    const failed = live.flatMap((entry) => (this.#failures.has(entry.id) ? [this.#failures.get(entry.id)] : []));
    const passing = failed.find(mayPass);
    if (passing !== undefined) throw passing;
    if (this.learned().keys.some(isUsable)) return;
    if (failed.length > 0) throw failed.find(isRefused) ?? failed[0];
    const judgement = this.#o.judgement();
    if (live.some((entry) => this.keyOf(entry) !== undefined && isFromTheFuture(entry, judgement))) {
      throw new RingStoreError(
        'unavailable',
        "by this machine's clock, the keys of the ring were created in the future",
      );
    }
    // If no entry is live, this member's pin refuses all entries that have not expired.
    if (live.length === 0 && this.entries.some(({ opensUntil }) => judgement.nowMs < opensUntil)) {
      throw new RingStoreError('corrupt', 'the ring holds no live key that may be used');
    }
  }

  throwWhatMayLink(): void {
    const passing = [...this.#failures.values()].find(mayPass);
    if (passing !== undefined) throw passing;
    const refused = this.entries.filter((entry) => this.isLive(entry)).map(({ id }) => this.#failures.get(id));
    const refusal = refused.find(isRefused);
    if (refusal !== undefined && this.entries.every((entry) => this.keyOf(entry) === undefined)) throw refusal;
  }

  /**
   * The keys known so far that are linked to a usable key. Keys of another lineage are left out, even revoked ones,
   * because with such a key this member would vouch for the keys that came with it.
   * @throws {RingStoreError} for two lineages, naming the newest key of each.
   */
  async oneLineage(): Promise<RingSnapshot> {
    // An expired or revoked key may be the link.
    if (this.#liveLineages().length > 1) await this.unwrap(this.entries);
    const [one, other] = this.#liveLineages();
    const known = this.learned();
    if (one === undefined) return known;
    if (other === undefined)
      return createSnapshot(known.keys.filter((key) => isTombstone(key) || one.includes(key.id)));
    throw new LineageError(
      `two lineages of keys, with ${one[0] ?? ''} and ${other[0] ?? ''} as the newest: no key of one vouches for the ` +
        'other. Running members repair their ring; if none is running, import a copy of the ring or use a new ring name',
    );
  }

  #liveLineages(): readonly string[][] {
    const { ring } = this.#o.judgement();
    const usable = new Set(
      this.learned()
        .keys.filter(isUsable)
        .map(({ id }) => id),
    );
    const keys = this.entries.flatMap((entry) => {
      const held = this.keyOf(entry)?.held;
      return held === undefined
        ? []
        : [{ entry, signer: { ...entry, revoked: false, authenticator: held.authenticator } }];
    });
    return lineagesOf(ring, keys).filter((group) => group.some((id) => usable.has(id)));
  }
}

/** The error for a document that contains two rings. Running members repair their ring, so a start waits for that. */
export class LineageError extends RingStoreError {
  constructor(detail: string) {
    super('corrupt', detail);
  }
}

/**
 * The name under which an unwrapped entry is remembered. An entry whose times changed between two attempts counts as a
 * different entry.
 */
function memoryOf(entry: RingEntry): string {
  return [entry.id, ...timesOf(entry)].join('/');
}

function mayPass(failure: unknown): boolean {
  return !(failure instanceof KeyWrapperError) || failure.kind === 'throttled' || failure.kind === 'unavailable';
}

/** Whether the ring that a member learned has no usable key: every key has expired or is revoked. */
export function isDead(known: RingSnapshot, nowMs: number): boolean {
  return !known.keys.some((key) => isUsable(key) && nowMs < key.opensUntil);
}

/**
 * Whether a document may be the older ring in whose absence the ring of a member was created, at `leastMs` or later. The
 * oldest key of a new ring has no ancestors: a ring whose oldest key has some is older, and has lost keys.
 */
export function mayBeOlder({ entries }: RingDocument, { keys, byId }: RingSnapshot, leastMs: number): boolean {
  const [root] = keys
    .filter((key) => !key.isLeft && !isTombstone(key))
    .toSorted(newestFirst)
    .slice(-1);
  if (root?.ancestors?.ids.length !== 0) return false;
  const isYoung = root.created > leastMs;
  const isOlder = entries.some(({ created }) => created < root.created);
  return isYoung && isOlder && !entries.some(({ id }) => byId.has(id));
}
