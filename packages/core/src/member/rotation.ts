import { type Deadline, hasPassed, later, schedule, uniform } from '../base/clock.ts';
import { type Backoff, backoffMs } from '../base/retry.ts';
import { channels } from '../contracts/events.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { RingConflictError } from '../contracts/ring-store.ts';
import type { WrappedVersion } from '../kms/wraps.ts';
import { MAX_KEYS_TO_ROTATE, MAX_KEYS_TO_SCHEDULE } from '../ring/policy.ts';
import { type KeyTimes, newest, rotateAt, rotationDelayMs } from '../ring/schedule.ts';
import { emitFailedRotation } from './failures.ts';
import type { MemberParts } from './parts.ts';
import type { Turns } from './turns.ts';

const MS = 1_000;
const FIRST_BACKOFF_MS = 120_000;

/** Decides when this member makes the rotations that are due because of a key's age or a new version of the KMS key. */
export class Rotation {
  readonly #o: MemberParts;
  readonly #turns: Turns;
  /** Called after a rotation that was due has ended, with its error if it failed. */
  readonly #ended: (error: unknown) => void;
  #cancel: (() => void) | undefined;
  #failures = 0;
  #versionDueAt: Deadline | undefined;
  /** A version of the KMS key that had wrapped no key of the ring when it was noticed. */
  #newVersion: WrappedVersion | undefined;

  constructor(parts: MemberParts, turns: Turns, ended: (error: unknown) => void) {
    this.#o = parts;
    this.#turns = turns;
    this.#ended = ended;
  }

  /** Whether a rotation is overdue, and keeps failing. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  cancel(): void {
    this.#cancel?.();
  }

  /** Sets the timer for the next rotation. Call it whenever the snapshot changes. */
  consider(): void {
    if (this.#o.role === 'reader') return;
    if (!this.#isDue()) {
      // Another member has rotated, or this member may not rotate, so no rotation is overdue here.
      this.#failures = 0;
      return;
    }
    if (this.#cancel !== undefined) return;
    if (this.#failures === 0) {
      this.#waitTurn({});
      return;
    }
    const capMs = this.#o.policy.kmsCheckEverySeconds * MS;
    const backoff: Backoff = { firstMs: FIRST_BACKOFF_MS, capMs, leastShare: 0.5 };
    this.#after(backoffMs(backoff, this.#failures, this.#uniform()), {});
  }

  /** Looks for a new KMS key version, if that is due. Runs after a KMS check, so a failing KMS gets no further call. */
  async lookForNewVersion(): Promise<void> {
    const { role, policy, view, wraps } = this.#o;
    if (role === 'reader' || policy.keyVersionEverySeconds === 0) return;
    const now = view.now();
    const everyMs = policy.keyVersionEverySeconds * MS;
    // Members that start at the same time must not check at the same time.
    this.#versionDueAt ??= later(now, everyMs * this.#uniform());
    if (!hasPassed(this.#versionDueAt, now)) return;
    this.#versionDueAt = later(now, everyMs * (1 - 0.2 * this.#uniform()));
    let found: WrappedVersion | undefined;
    try {
      found = await wraps.newVersion(view.knownWraps);
    } catch (error) {
      // The failed call has already emitted its event. Only a rotation depends on the call, and the rotation would fail
      // as well.
      if (error instanceof KeyWrapperError) return;
      throw error;
    }
    if (found === undefined) return;
    const { provider, keyId } = found;
    this.#newVersion = found;
    channels['key-version'].publish(() => ({ ringName: this.#o.ring, provider, version: keyId }));
    this.consider();
  }

  /** Waits for one turn, which takes half of {@link rotationDelayMs}. */
  #waitTurn(options: { readonly isLast?: boolean }): void {
    this.#after(rotationDelayMs(this.#uniform(), this.#o.policy) / 2, options);
  }

  #after(waitMs: number, options: { readonly isLast?: boolean }): void {
    this.#cancel = schedule(
      this.#o.clock,
      () => {
        this.#cancel = undefined;
        void this.#turns.background(() => this.#rotateIfDue(options));
      },
      waitMs,
    );
  }

  /**
   * Rotates at the end of a turn if a rotation is still due. A member waits for a second turn, and creates a key after
   * it, only if a KMS check passes at the end of the first. When an outage ends, members of a large fleet reach the end
   * of a turn continually: with a single turn, each of them would create a key until the first key was stored.
   */
  async #rotateIfDue({ isLast = false }: { readonly isLast?: boolean }): Promise<void> {
    const { sync, view, writer } = this.#o;
    // The codec may have been closed while this task waited behind others.
    if (view.isClosed) return;
    const began = view.now();
    const reason = this.#isAgeDue() ? 'scheduled' : 'key-version';
    try {
      await sync.readToWrite({});
      if (!isLast && this.#isDue()) {
        await sync.check.run({});
        this.#waitTurn({ isLast: true });
        return;
      }
      if (this.#isDue()) await writer.publish(reason);
      this.#failures = 0;
    } catch (error) {
      if (view.isClosed || error instanceof RingConflictError) return;
      this.#failures += 1;
      emitFailedRotation(this.#o, reason, error, began);
      this.consider();
      this.#ended(error);
      return;
    }
    this.#ended(undefined);
  }

  #isDue(): boolean {
    const { view, writer } = this.#o;
    if (view.isClosed) return false;
    const now = view.now();
    if (view.sealBlock(now) !== undefined || view.clockTrouble(now) !== undefined) return false;
    if (writer.keyCount >= MAX_KEYS_TO_SCHEDULE) return false;
    return this.#isAgeDue() || this.#isVersionDue();
  }

  /**
   * Whether a rotation to a new version is due: one for all members, and at most one per interval, because a service
   * can report a new version but still wrap with the old one.
   */
  #isVersionDue(): boolean {
    const { policy, view, writer } = this.#o;
    if (!this.#isVersionNew || writer.keyCount >= MAX_KEYS_TO_ROTATE) return false;
    const { keys, carried } = view.snapshot;
    const youngestMs = Math.max(...[...keys.filter(({ isLeft }) => !isLeft), ...carried].map(({ created }) => created));
    return view.wallMs() >= youngestMs + policy.keyVersionEverySeconds * MS;
  }

  /** Whether a new version was noticed, and no member has rotated since. */
  get #isVersionNew(): boolean {
    const found = this.#newVersion;
    if (found === undefined) return false;
    const isWrapped = this.#o.view.knownWraps.some(
      ({ provider, keyId }) => provider === found.provider && keyId === found.keyId,
    );
    if (isWrapped) this.#newVersion = undefined;
    return !isWrapped;
  }

  #isAgeDue(): boolean {
    const { policy, view } = this.#o;
    const { keys, carried } = view.snapshot;
    const last = newest<KeyTimes & { readonly id: string }>([
      ...keys.filter((key) => !key.revoked && !key.isLeft),
      ...carried,
    ]);
    return last !== undefined && view.wallMs() >= rotateAt(last, policy);
  }

  #uniform(): number {
    return uniform(this.#o.random);
  }
}
