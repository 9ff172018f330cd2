import { ageMs, type Moment, secondsSince } from '../base/clock.ts';
import { type CodecFailure, type CodecStatus, channels } from '../contracts/events.ts';
import { failureOf } from './failures.ts';
import type { MemberParts } from './parts.ts';
import { problemsOf, type RingProblem } from './problems.ts';
import type { Rotation } from './rotation.ts';

/** The last failure and its time. */
export type LastFailure = CodecFailure & { readonly at: Date };

/** The condition of a member: its status, its last failure, and the events about both. */
export class Condition {
  readonly #o: MemberParts;
  readonly #rotation: Rotation;
  #failures = 0;
  #failedAt: Moment | undefined;
  #lastFailure: LastFailure | undefined;
  #lastStatus: CodecStatus | undefined;

  constructor(parts: MemberParts, rotation: Rotation) {
    this.#o = parts;
    this.#rotation = rotation;
  }

  /** The number of passes that have failed since the last successful one. */
  get failures(): number {
    return this.#failures;
  }

  get lastFailure(): LastFailure | undefined {
    return this.#lastFailure;
  }

  /**
   * `failing`: the member cannot work, or must not receive requests. `degraded`: it works, but needs attention. `known`
   * contains the current problems, if the caller has already determined them.
   */
  status(now: Moment, known?: readonly RingProblem[]): CodecStatus {
    const { sync, view } = this.#o;
    if (!view.isReady(now)) return 'failing';
    const isTroubled = this.#failures > 0 || this.#rotation.isFailing || view.limits.isRefused(now);
    if (isTroubled || sync.repairs.dueAt !== undefined) return 'degraded';
    return (known ?? this.problems(now)).length > 0 ? 'degraded' : 'ok';
  }

  /** The problems that an operator should know about, each with its remedy. */
  problems(now: Moment): readonly RingProblem[] {
    const { role, sync, view, writer, ringClock } = this.#o;
    return problemsOf({ role, view, sync, writer, clock: ringClock }, now);
  }

  /** Records that a pass failed. */
  failed(error: unknown): void {
    this.#failures += 1;
    this.#failedAt = this.#o.view.now();
    this.noteFailure(failureOf(error));
  }

  /** Records that a pass succeeded. */
  passed(): void {
    this.#failures = 0;
    this.#failedAt = undefined;
    if (this.#o.view.clockTrouble() !== undefined) this.noteFailure({ source: 'clock', kind: 'unconfirmed' });
    // While an overdue rotation keeps failing, the last failure stays visible.
    else if (!this.#rotation.isFailing) this.#lastFailure = undefined;
  }

  /** Records a failure outside of a pass; `health()` shows it. */
  noteFailure(failure: CodecFailure): void {
    this.#lastFailure = { ...failure, at: new Date(this.#o.view.now().wallMs) };
  }

  /** Whether a pass failed less than `recentMs` ago, and none has succeeded since. */
  hasFailedWithin(recentMs: number, now: Moment): boolean {
    return this.#failedAt !== undefined && ageMs(this.#failedAt, now) <= recentMs;
  }

  /** Emits the end of a refresh, and the status if it has changed. */
  emitRefresh(failure: unknown, began: Moment): void {
    channels.refresh.publish(() => ({
      ringName: this.#o.ring,
      seconds: secondsSince(began, this.#o.view.now()),
      ...(failure === undefined ? { ok: true } : { ok: false, ...failureOf(failure) }),
    }));
    this.emitStatus();
  }

  /** Emits the status if it has changed. */
  emitStatus(): void {
    const { view } = this.#o;
    if (view.isClosed) return;
    const status = this.status(view.now());
    if (status === this.#lastStatus) return;
    this.#lastStatus = status;
    channels.state.publish(() => ({ ringName: this.#o.ring, status }));
  }
}
