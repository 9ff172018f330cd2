import { ageMs, type Deadline, hasPassed, later, type Moment, steadyMs } from '../clock.ts';
import type { SealUnavailableReason } from '../errors.ts';
import type { KeyWrapperErrorKind } from '../key-wrapper.ts';
import { ARMED, afterRefusal, isRefusal, type KillSwitch } from './kill-switch.ts';
import type { ResolvedPolicy } from './policy.ts';

const MS = 1_000;

/**
 * How long this member may go on without the KMS and the store. Only an unwrap that returned the right bytes is proof
 * of the right to use the key, and only a good read of the ring tells about revocations.
 */
export class Limits {
  readonly #policy: ResolvedPolicy;
  #proof: Moment | undefined;
  #read: Moment | undefined;
  #complete: Moment | undefined;
  #killSwitch: KillSwitch = ARMED;
  #sealProofUntil: Deadline | undefined;
  #sealReadUntil: Deadline | undefined;
  #openProofUntil: Deadline | undefined;
  #openReadUntil: Deadline | undefined;

  constructor(policy: ResolvedPolicy) {
    this.#policy = policy;
  }

  /** The KMS unwrapped the right bytes; both stops end. */
  proved(now: Moment): void {
    this.#proof = now;
    this.#killSwitch = ARMED;
    const { sealOutageSeconds } = this.#policy;
    this.#sealProofUntil = later(now, sealOutageSeconds * MS);
    this.#openProofUntil = later(now, (sealOutageSeconds + this.#openingSeconds) * MS);
  }

  /** The ring was read and is authentic. */
  wasRead(now: Moment): void {
    this.#read = now;
    const { storeOutageSeconds } = this.#policy;
    this.#sealReadUntil = later(now, storeOutageSeconds * MS);
    this.#openReadUntil = later(now, (storeOutageSeconds + this.#openingSeconds) * MS);
  }

  /** A refresh went through whole: read, and every live key held. */
  completed(now: Moment): void {
    this.#complete = now;
  }

  /** The KMS answered with an error. Only refusals count, by the clock that never steps: no step hides one. */
  failed(kind: KeyWrapperErrorKind, now: Moment): void {
    if (isRefusal(kind)) this.#killSwitch = afterRefusal(this.#killSwitch, kind, steadyMs(now));
  }

  get lastProof(): Moment | undefined {
    return this.#proof;
  }

  get lastRead(): Moment | undefined {
    return this.#read;
  }

  get lastComplete(): Moment | undefined {
    return this.#complete;
  }

  /** Whether refusals are being counted: the KMS is to be asked again soon. */
  get isRefused(): boolean {
    return this.#killSwitch.refusals.length > 0;
  }

  /** Whether the KMS refused often enough to stop sealing. */
  get isStopped(): boolean {
    return this.#killSwitch.trippedAt !== undefined;
  }

  /** Why sealing is not allowed; undefined when it is. */
  sealBlock(now: Moment): SealUnavailableReason | undefined {
    if (this.#killSwitch.trippedAt !== undefined) return 'key refused by the kms';
    if (this.#sealProofUntil === undefined || hasPassed(this.#sealProofUntil, now)) return 'key proof too old';
    if (this.#sealReadUntil === undefined || hasPassed(this.#sealReadUntil, now)) return 'ring read too old';
    return undefined;
  }

  mayOpen(now: Moment): boolean {
    if (this.#openProofUntil === undefined || hasPassed(this.#openProofUntil, now)) return false;
    if (this.#openReadUntil === undefined || hasPassed(this.#openReadUntil, now)) return false;
    const { trippedAt } = this.#killSwitch;
    if (trippedAt === undefined) return true;
    const { clockSkewSeconds, refreshEverySeconds } = this.#policy;
    return steadyMs(now) - trippedAt < (clockSkewSeconds + refreshEverySeconds) * MS;
  }

  /** Until when sealing goes on if nothing succeeds any more, wall clock. */
  get sealUntilMs(): number | undefined {
    if (this.#sealProofUntil === undefined || this.#sealReadUntil === undefined) return undefined;
    return Math.min(this.#sealProofUntil.wallMs, this.#sealReadUntil.wallMs);
  }

  /** Not ready: others may already seal with keys that this member has not heard of. */
  isCurrent(now: Moment): boolean {
    const { propagationSeconds, clockSkewSeconds } = this.#policy;
    return this.#complete !== undefined && ageMs(this.#complete, now) <= (propagationSeconds - clockSkewSeconds) * MS;
  }

  /** How much longer than sealing opening goes on: what was sealed last is opened for its whole life. */
  get #openingSeconds(): number {
    return this.#policy.tokenLifetimeSeconds + 2 * this.#policy.clockSkewSeconds;
  }
}
