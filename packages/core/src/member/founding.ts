import { ageMs, type Moment, type RandomSource, uniform } from '../base/clock.ts';
import { type Backoff, backoffMs } from '../base/retry.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError, type RingStore, RingStoreError } from '../contracts/ring-store.ts';
import type { Stored } from '../stores/stored-ring.ts';
import type { MemberParts } from './parts.ts';

const MS = 1_000;
/** Enough random bytes that two claims are never equal. */
const CLAIM_BYTES = 16;
/** The time between reads of a store that holds the claim of another member. */
const LOOKS: Backoff = { firstMs: 50, capMs: 3_000, leastShare: 0.5 };
/** Maximum number of consecutive KMS calls, including retries, for the first key of a ring: generate, sign, unwrap. */
const CALLS_OF_A_FOUNDER = 12;

type Parts = Pick<MemberParts, 'store' | 'policy' | 'random' | 'closing' | 'view' | 'stored' | 'writer'>;

/**
 * Creates a key for a ring in which no key may seal, or waits for the member that creates it. Members that start at the
 * same time, or learn at the same time that every key is revoked, must not each create one.
 *
 * In a store that other processes share, the member that wins the compare-and-swap of a claim creates the key, and the
 * others wait. A waiting member takes over a claim after the longest time that its owner could have needed, measured by
 * its own clock; if the owner is still alive, its key loses the race. After three times as long, all claims are
 * ignored, because an attacker may have written them. Members in the same process take turns instead.
 */
export class Founding {
  readonly #o: Parts;
  #ownClaim: string | undefined;
  #waitingFor: { readonly claim: string; readonly since: Moment } | undefined;
  /** The times when a claim of another member was first and last seen. */
  #waiting: { readonly since: Moment; readonly seen: Moment } | undefined;
  #looks = 0;
  /** Whether the last call to the KMS failed: if so, the key is created before anything is written to the store. */
  #hasKmsFailed = false;

  constructor(parts: Parts) {
    this.#o = parts;
  }

  /**
   * Makes one attempt. Returns the milliseconds to wait before the next read of the store if another member is creating
   * the key, or 0 once the ring has the key.
   * @throws {RingConflictError} when another member claimed first.
   * @throws {RingStoreError | KeyWrapperError} when the creation fails; the claim is withdrawn.
   */
  async attempt(reason: 'initial' | 'emergency' = 'initial'): Promise<number> {
    const there = this.#o.stored.latest;
    if (this.#o.store.kind === 'memory') return inTurn(this.#o.store, () => this.#createIfUnchanged(there, reason));
    const wait = this.#waitForAnother(there?.document?.claim);
    if (wait > 0) return wait;
    // While the time is unconfirmed, a key of the ring that seems to have expired may still be live.
    const trouble = this.#o.view.clockTrouble();
    if (trouble !== undefined) throw new RingStoreError('unavailable', `no key was created: ${trouble}`);
    // Remembered before the write, because if the answer is lost, the claim in the store may be this member's own.
    const claim = (this.#ownClaim ??= newClaim(this.#o.random));
    const made = this.#hasKmsFailed ? await this.#o.writer.make(reason) : undefined;
    await this.#o.writer.claim(claim);
    try {
      await this.#o.writer.publish(reason, made);
    } catch (error) {
      this.#hasKmsFailed = error instanceof KeyWrapperError;
      if (!(error instanceof RingConflictError) && !this.#o.closing.aborted) await this.#giveBack();
      throw error;
    }
    this.#hasKmsFailed = false;
    this.#waiting = undefined;
    return 0;
  }

  async #createIfUnchanged(there: Stored | undefined, reason: 'initial' | 'emergency'): Promise<number> {
    if ((await this.#o.stored.read())?.revision !== there?.revision) throw new RingConflictError();
    await this.#o.writer.publish(reason);
    return 0;
  }

  /**
   * Milliseconds to wait while another member's claim can still lead to a key; 0 if this member may write its own
   * claim.
   */
  #waitForAnother(claim: string | undefined): number {
    if (claim === undefined || claim === this.#ownClaim) return 0;
    const now = this.#o.view.now();
    const patience = CALLS_OF_A_FOUNDER * this.#o.policy.kmsTimeoutSeconds * MS;
    if (this.#waitingFor?.claim !== claim) this.#waitingFor = { claim, since: now };
    const last = this.#waiting;
    const since = last !== undefined && ageMs(last.seen, now) <= patience ? last.since : now;
    if (since === now) this.#looks = 0;
    this.#waiting = { since, seen: now };
    const isHeeded = ageMs(this.#waitingFor.since, now) < patience && ageMs(since, now) < 3 * patience;
    if (!isHeeded) return 0;
    this.#looks += 1;
    return backoffMs(LOOKS, this.#looks, uniform(this.#o.random));
  }

  /**
   * Withdraws the claim, so that other members need not wait for it. If the write fails, they wait; the error that
   * prevented the creation is thrown either way. A claim that was withdrawn is not written again, because a member that
   * saw it would measure its age from the time when it first saw the claim.
   */
  async #giveBack(): Promise<void> {
    const [result] = await Promise.allSettled([this.#o.writer.claim(undefined)]);
    if (result.status === 'fulfilled') this.#ownClaim = undefined;
  }
}

function newClaim(random: RandomSource): string {
  const bytes = new Uint8Array(CLAIM_BYTES);
  random(bytes);
  return Buffer.from(bytes).toString('base64url');
}

/** For each store object that codecs in one process share, the last turn in the queue. */
const turns = new WeakMap<RingStore, Promise<unknown>>();

function inTurn<T>(store: RingStore, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(store) ?? Promise.resolve()).then(run);
  turns.set(
    store,
    turn.catch(() => undefined),
  );
  return turn;
}
