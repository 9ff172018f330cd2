import type { ResolvedPolicy } from '@sealring/core/ring';
import { error, type Finding, info, ok, warning } from './finding.ts';

/** Compares this machine's clock with the dates in the answers from the KMS and the store. */
export class ServiceDates {
  readonly #wallMs: () => number;
  readonly #offByMs = new Map<string, number>();

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
  }

  /** The `onServiceDate` callback for calls to one service. */
  noteOf(service: string): (date: Date) => void {
    return (date) => {
      const ms = date.getTime();
      if (Number.isFinite(ms)) this.#offByMs.set(service, this.#wallMs() - ms);
    };
  }

  findings({ clockSkewSeconds, kmsTimeoutSeconds }: ResolvedPolicy): readonly Finding[] {
    if (this.#offByMs.size === 0) {
      return [info('clock', 'the clock of this machine was not checked: no answer had a date')];
    }
    return [...this.#offByMs].map(([service, offByMs]) => {
      const seconds = Math.round(Math.abs(offByMs) / 1_000);
      const what = `this machine's clock is ${seconds} s ${offByMs >= 0 ? 'ahead of' : 'behind'} the clock of ${service}`;
      const remedy = `Synchronize the clock with NTP. A member whose clock is off by more than clockSkewSeconds (${clockSkewSeconds}) publishes no keys.`;
      // Members have the same tolerance: an answer can be as old as its deadline allows, and dates are given in whole seconds.
      if (seconds > clockSkewSeconds + kmsTimeoutSeconds + 1) return error('clock', what, remedy);
      // Half of the skew, because the clocks of two machines can be off in opposite directions.
      if (seconds > clockSkewSeconds / 2 + 1) return warning('clock', what, remedy);
      return ok('clock', what);
    });
  }
}
