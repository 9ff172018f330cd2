import type { ResolvedPolicy } from '@sealring/core/ring';
import { error, type Finding, info, ok, warning } from './finding.ts';

/** The dates that services put on their answers, against this machine's clock. */
export class ServiceDates {
  readonly #wallMs: () => number;
  readonly #offByMs = new Map<string, number>();

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
  }

  /** For one service: what to hand to its calls. */
  noteOf(service: string): (date: Date) => void {
    return (date) => {
      const ms = date.getTime();
      if (Number.isFinite(ms)) this.#offByMs.set(service, this.#wallMs() - ms);
    };
  }

  findings({ clockSkewSeconds, kmsTimeoutSeconds }: ResolvedPolicy): readonly Finding[] {
    if (this.#offByMs.size === 0) {
      return [info('clock', 'no service said what time it is: the clock of this machine was not checked')];
    }
    return [...this.#offByMs].map(([service, offByMs]) => {
      const seconds = Math.round(Math.abs(offByMs) / 1_000);
      const what = `this machine's clock is ${seconds} s ${offByMs >= 0 ? 'ahead of' : 'behind'} that of ${service}`;
      const remedy = `Set the clock by NTP. Members whose clock is off by more than clockSkewSeconds (${clockSkewSeconds}) do not publish keys.`;
      // As members reckon: an answer may be as old as its deadline, and its date is a whole second.
      if (seconds > clockSkewSeconds + kmsTimeoutSeconds + 1) return error('clock', what, remedy);
      // Two members may be off in opposite directions.
      if (seconds > clockSkewSeconds / 2 + 1) return warning('clock', what, remedy);
      return ok('clock', what);
    });
  }
}
