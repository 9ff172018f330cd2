import { type Clock, type Moment, momentOf } from '../base/clock.ts';
import type { ResolvedPolicy } from '../ring/policy.ts';

/** The service that a date came from. */
export type DatedService = 'kms' | 'store';

/** The name of a service in a sentence. */
export const SERVICE_NAMES: Readonly<Record<DatedService, string>> = { kms: 'the KMS', store: 'the store' };

/** A date in a header is truncated to a whole second. */
const RESOLUTION_MS = 1_000;
/** The largest correction of a running clock, as a share of the time that passed: twice the limit of NTP. */
const SLEW = 0.001;

/**
 * The one clock of a member. Its time, which is checked against the dates of the KMS and the store, decides the state
 * of keys and is written into the ring.
 *
 * The wall clock is trusted while it agrees with the monotonic one. A step of more than the tolerated skew is
 * unconfirmed until the date of a service matches it or the clock steps back; meanwhile, the monotonic clock continues
 * from the last trusted time. While the time is unconfirmed, nothing is published, removed
 * or treated as expired.
 */
export class RingClock {
  readonly #clock: Clock;
  readonly #stepMs: number;
  readonly #toleratedMs: number;
  /** Wall time minus monotonic time when the wall clock was last trusted. */
  #offsetMs = 0;
  /** Whether a date has ever matched {@link #offsetMs}. */
  #isDated = false;
  #stepped = false;
  #hasSeenDates = false;
  #lastTickSteadyMs = 0;
  /**
   * For each service, its date minus monotonic time. Contains only dates that were noted since the wall clock last
   * stepped.
   */
  readonly #dates = new Map<DatedService, number>();
  /** Uptime, including suspensions, minus wall time, as of when the wall clock was last trusted; NaN if unknown. */
  #uptimeOffsetMs = Number.NaN;

  constructor(policy: ResolvedPolicy, clock: Clock) {
    this.#clock = clock;
    this.#stepMs = policy.clockSkewSeconds * 1_000 + RESOLUTION_MS;
    // An answer may be as old as the deadline of its call when it is evaluated.
    this.#toleratedMs = (policy.clockSkewSeconds + policy.kmsTimeoutSeconds) * 1_000 + RESOLUTION_MS;
    this.#believe(momentOf(clock), false);
  }

  /** The time that decides the state of keys, in milliseconds since the epoch. */
  timeMs(now: Moment): number {
    if (Math.abs(this.#driftMs(now)) <= this.#stepMs) {
      this.#stepped = false;
      return now.wallMs;
    }
    // A machine may have been suspended while its clock was wrong.
    if (!this.#stepped || this.#wasSuspended(now)) this.#step(now);
    return this.#stepped ? now.steadyMs + this.#offsetMs : now.wallMs;
  }

  /** Follows a clock that is corrected slowly. Call it regularly, and never in response to a client. */
  tick(now: Moment): void {
    this.timeMs(now);
    const most = Math.max(0, now.steadyMs - this.#lastTickSteadyMs) * SLEW;
    this.#lastTickSteadyMs = now.steadyMs;
    if (!this.#stepped) this.#offsetMs += Math.max(-most, Math.min(most, this.#driftMs(now)));
  }

  /** Notes the date of an answer that just arrived. An invalid date is ignored. */
  note(service: DatedService, date: unknown): void {
    const ms = date instanceof Date ? date.getTime() : Number.NaN;
    if (!Number.isFinite(ms)) return;
    const now = momentOf(this.#clock);
    this.timeMs(now);
    this.#hasSeenDates = true;
    this.#dates.set(service, ms - now.steadyMs);
    if (Math.abs(now.wallMs - ms) <= this.#toleratedMs) this.#believe(now, true);
  }

  /**
   * Accepts the clock's current time, for a member that does not know any other time yet. Returns true if the clock
   * had stepped.
   */
  startAgain(now: Moment): boolean {
    this.timeMs(now);
    if (!this.#stepped) return false;
    this.#believe(now, false);
    return true;
  }

  /** Why nothing is published, removed or treated as expired now; undefined when the time is confirmed. */
  trouble(now: Moment): string | undefined {
    this.timeMs(now);
    if (this.#stepped) {
      return `this machine's clock stepped by ${inSeconds(this.#driftMs(now))} s, and no date of the KMS or the store confirms it`;
    }
    const off = [...this.#dates].map(([service, offset]) => ({ service, ms: now.wallMs - now.steadyMs - offset }));
    const [first] = off;
    if (first === undefined || off.some(({ ms }) => this.#isTolerated(ms))) return undefined;
    const direction = first.ms > 0 ? 'ahead of' : 'behind';
    return `this machine's clock is ${inSeconds(first.ms)} s ${direction} the clock of ${SERVICE_NAMES[first.service]}`;
  }

  /** The service whose date disagrees, while the date of the other service agrees. */
  disputedBy(now: Moment): DatedService | undefined {
    if (this.trouble(now) !== undefined) return undefined;
    return [...this.#dates].find(([, offset]) => !this.#isTolerated(now.wallMs - now.steadyMs - offset))?.[0];
  }

  #isTolerated(offByMs: number): boolean {
    return Math.abs(offByMs) <= this.#toleratedMs;
  }

  #driftMs(now: Moment): number {
    return now.wallMs - now.steadyMs - this.#offsetMs;
  }

  #step(now: Moment): void {
    // If no date has ever matched the trusted time, the new time replaces it at once: later dates are compared with the
    // new time.
    if ((!this.#isDated && this.#dates.size > 0) || this.#wasSuspended(now)) {
      this.#believe(now, false);
      return;
    }
    this.#stepped = true;
    // These dates were noted before the step: if the machine was suspended, they no longer match.
    this.#dates.clear();
  }

  /** Without any dates, a step is a suspension if the time since the machine started has grown by as much. */
  #wasSuspended(now: Moment): boolean {
    return !this.#hasSeenDates && Math.abs(this.#uptimeOffset(now) - this.#uptimeOffsetMs) <= this.#stepMs;
  }

  #uptimeOffset(now: Moment): number {
    return (this.#clock.uptimeMs?.() ?? Number.NaN) - now.wallMs;
  }

  #believe(now: Moment, isDated: boolean): void {
    this.#offsetMs = now.wallMs - now.steadyMs;
    this.#isDated = isDated;
    this.#stepped = false;
    this.#lastTickSteadyMs = now.steadyMs;
    this.#uptimeOffsetMs = this.#uptimeOffset(now);
  }
}

function inSeconds(ms: number): number {
  return Math.round(Math.abs(ms) / 1_000);
}
