import { ageMs, type Deadline, earlier, hasPassed, later, type Moment } from '../base/clock.ts';
import type { SealUnavailableReason } from '../contracts/errors.ts';
import type { KeyWrapperErrorKind } from '../contracts/key-wrapper.ts';
import type { ResolvedPolicy } from '../ring/policy.ts';
import { ARMED, afterRefusal, hasRecentRefusal, isRefusal, type KillSwitch, refusalWindowMs } from './kill-switch.ts';

const MS = 1_000;

/**
 * How long this member may continue without the KMS and the store. Only an unwrap that returned the right bytes shows
 * that the key may still be used, and only a successful read of the ring shows revocations.
 */
export class Limits {
  readonly #policy: ResolvedPolicy;
  #kmsCheck: Moment | undefined;
  #read: Moment | undefined;
  #complete: Moment | undefined;
  #killSwitch: KillSwitch = ARMED;
  #kmsCheckUntil: Deadline | undefined;
  #readUntil: Deadline | undefined;
  // The earlier of the two times above, and the later time at which unsealing ends: every token is checked against one
  // of them.
  #sealUntil: Deadline | undefined;
  #unsealUntil: Deadline | undefined;

  constructor(policy: ResolvedPolicy) {
    this.#policy = policy;
  }

  /**
   * Records that the KMS unwrapped the right bytes. This lifts a stop that the kill switch or an old KMS check has
   * caused.
   */
  kmsCheckPassed(now: Moment): void {
    this.#kmsCheck = now;
    this.#killSwitch = ARMED;
    this.#kmsCheckUntil = later(now, this.#policy.sealOutageSeconds * MS);
    this.#takeEarlier();
  }

  /** Records that the ring was read and is authentic. */
  wasRead(now: Moment): void {
    this.#read = now;
    this.#readUntil = later(now, this.#policy.storeOutageSeconds * MS);
    this.#takeEarlier();
  }

  /** Records that a refresh succeeded completely: the ring was read, and every live key is held. */
  completed(now: Moment): void {
    this.#complete = now;
  }

  /**
   * Records that the KMS answered with an error. Only refusals count. They are timed by the monotonic clock, so that no
   * step of the wall clock hides a refusal.
   */
  failed(kind: KeyWrapperErrorKind, now: Moment): void {
    if (!isRefusal(kind)) return;
    this.#killSwitch = afterRefusal(this.#killSwitch, kind, now, refusalWindowMs(this.#policy));
  }

  get lastKmsCheck(): Moment | undefined {
    return this.#kmsCheck;
  }

  get lastRead(): Moment | undefined {
    return this.#read;
  }

  get lastComplete(): Moment | undefined {
    return this.#complete;
  }

  /**
   * Whether refusals are being counted; if so, the KMS must be called again soon.
   */
  isRefused(now: Moment): boolean {
    return this.isStopped || hasRecentRefusal(this.#killSwitch, now.steadyMs, refusalWindowMs(this.#policy));
  }

  /** Whether the KMS refused often enough to stop sealing. */
  get isStopped(): boolean {
    return this.#killSwitch.trippedAt !== undefined;
  }

  /** Why sealing is not allowed; undefined when it is. */
  sealBlock(now: Moment): SealUnavailableReason | undefined {
    if (this.isStopped) return 'key refused by the kms';
    if (this.#sealUntil !== undefined && !hasPassed(this.#sealUntil, now)) return undefined;
    const isChecked = this.#kmsCheckUntil !== undefined && !hasPassed(this.#kmsCheckUntil, now);
    return isChecked ? 'ring read too old' : 'KMS check too old';
  }

  mayUnseal(now: Moment): boolean {
    if (this.#unsealUntil === undefined || hasPassed(this.#unsealUntil, now)) return false;
    const { trippedAt } = this.#killSwitch;
    if (trippedAt === undefined) return true;
    const { clockSkewSeconds, refreshEverySeconds } = this.#policy;
    // A machine that was suspended has used up the time, although its monotonic clock stood still.
    return ageMs(trippedAt, now) < (clockSkewSeconds + refreshEverySeconds) * MS;
  }

  /** When sealing ends, unless KMS checks and reads of the ring succeed before then. Wall time in milliseconds. */
  get sealUntilMs(): number | undefined {
    return this.#sealUntil?.wallMs;
  }

  /** False if others may already seal with keys that this member has not read. */
  isCurrent(now: Moment): boolean {
    const { propagationSeconds, clockSkewSeconds } = this.#policy;
    return this.#complete !== undefined && ageMs(this.#complete, now) <= (propagationSeconds - clockSkewSeconds) * MS;
  }

  #takeEarlier(): void {
    if (this.#kmsCheckUntil === undefined || this.#readUntil === undefined) return;
    const { tokenLifetimeSeconds, clockSkewSeconds } = this.#policy;
    this.#sealUntil = earlier(this.#kmsCheckUntil, this.#readUntil);
    // The token sealed last can be unsealed for its whole life.
    this.#unsealUntil = later(this.#sealUntil, (tokenLifetimeSeconds + 2 * clockSkewSeconds) * MS);
  }
}
