import { ageMs, type Clock, type Moment, pause, type RandomSource, uniform } from '../clock.ts';
import type { ResolvedPolicy } from './policy.ts';
import { RingConflictError, type RingStore, RingStoreError } from './store.ts';
import type { Stored, StoredRingDocument } from './stored-ring.ts';
import type { RingView } from './view.ts';
import type { RingWriter } from './writer.ts';

const MS = 1_000;
/** Enough that two claims never are alike. */
const CLAIM_BYTES = 16;
const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 3_000;
/** Calls to the KMS one after the other, retries included, that a founder may need: generate, sign, prove. */
const CALLS_OF_A_FOUNDER = 12;

/**
 * Creates a ring, or waits for who does: members that start at once must not each make a data key.
 *
 * In a store that other processes share, whoever wins the compare-and-swap of a claim makes the key, and the others
 * wait. A claim whose owner is gone is taken over after as long as he could have needed, measured by the clock of who
 * waits; if he lives after all, his ring loses the race. Where all members are in this process, taking turns is enough.
 */
export class Founding {
  readonly #store: RingStore;
  readonly #policy: ResolvedPolicy;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #closing: AbortSignal;
  readonly #view: RingView;
  readonly #stored: StoredRingDocument;
  readonly #writer: RingWriter;
  #ownClaim: string | undefined;
  #waitingFor: { readonly claim: string; readonly since: Moment } | undefined;
  #looks = 0;

  constructor(options: {
    readonly store: RingStore;
    readonly policy: ResolvedPolicy;
    readonly clock: Clock;
    readonly random: RandomSource;
    readonly closing: AbortController;
    readonly view: RingView;
    readonly stored: StoredRingDocument;
    readonly writer: RingWriter;
  }) {
    this.#store = options.store;
    this.#policy = options.policy;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#closing = options.closing.signal;
    this.#view = options.view;
    this.#stored = options.stored;
    this.#writer = options.writer;
  }

  /**
   * One attempt in a store that holds no live key. False: somebody else is at it, look again.
   * @throws {RingConflictError} when somebody else claimed first.
   * @throws {RingStoreError | KeyWrapperError} what kept this member from creating it; the claim is given back.
   */
  async attempt(there: Stored | undefined): Promise<boolean> {
    if (this.#store.kind === 'memory') return inTurn(this.#store, () => this.#createIfUnchanged(there));
    if (await this.#isClaimedByAnother(there?.document?.claim)) return false;
    // By another time the ring may well be alive.
    const trouble = this.#view.clockTrouble();
    if (trouble !== undefined) throw new RingStoreError('unavailable', `no ring is created: ${trouble}`);
    // Known before it is written: the answer may get lost, and then it is this member's own claim that stands there.
    const claim = (this.#ownClaim ??= newClaim(this.#random));
    await this.#writer.claim(claim);
    try {
      await this.#writer.publish('initial');
    } catch (error) {
      if (!(error instanceof RingConflictError) && !this.#closing.aborted) await this.#giveBack();
      throw error;
    }
    return true;
  }

  async #createIfUnchanged(there: Stored | undefined): Promise<true> {
    if ((await this.#stored.read())?.revision !== there?.revision) throw new RingConflictError();
    await this.#writer.publish('initial');
    return true;
  }

  /** Waits a moment where another's claim may still become a ring. */
  async #isClaimedByAnother(claim: string | undefined): Promise<boolean> {
    if (claim === undefined || claim === this.#ownClaim) return false;
    const now = this.#view.now();
    if (this.#waitingFor?.claim !== claim) this.#waitingFor = { claim, since: now };
    const patience = CALLS_OF_A_FOUNDER * this.#policy.kmsTimeoutSeconds * MS;
    if (ageMs(this.#waitingFor.since, now) >= patience) return false;
    const wait = Math.min(LONGEST_LOOK_MS, FIRST_LOOK_MS * 2 ** this.#looks) * (0.5 + uniform(this.#random) / 2);
    this.#looks += 1;
    await pause(this.#clock, wait, this.#closing);
    return true;
  }

  /** So that the others need not wait. Where it fails they do; what kept this member from founding is thrown. */
  async #giveBack(): Promise<void> {
    const [result] = await Promise.allSettled([this.#writer.claim(undefined)]);
    if (result.status === 'fulfilled') this.#ownClaim = undefined;
  }
}

function newClaim(random: RandomSource): string {
  const bytes = new Uint8Array(CLAIM_BYTES);
  random(bytes);
  return Buffer.from(bytes).toString('base64url');
}

/** The turns of codecs in one process that share a store object. */
const turns = new WeakMap<RingStore, Promise<unknown>>();

function inTurn<T>(store: RingStore, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(store) ?? Promise.resolve()).then(run);
  turns.set(
    store,
    turn.catch(() => undefined),
  );
  return turn;
}
