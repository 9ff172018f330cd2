import type { ResolvedPolicy } from './policy.ts';

/** Whose clock it is. */
export type DatedService = 'kms' | 'store';

/** A date in a header is a whole second, cut off. */
const RESOLUTION_MS = 1_000;

/**
 * Compares this member's clock with the dates that the KMS and the store put on their answers. Whoever is further off
 * than any two members may be must not publish: its keys would be active at the wrong time on every other clock.
 */
export class ServiceClock {
  readonly #toleratedMs: number;
  readonly #wallMs: () => number;
  readonly #offByMs = new Map<DatedService, number>();

  constructor(policy: ResolvedPolicy, wallMs: () => number) {
    // An answer may be as old as its deadline when it is looked at.
    this.#toleratedMs = (policy.clockSkewSeconds + policy.kmsTimeoutSeconds) * 1_000 + RESOLUTION_MS;
    this.#wallMs = wallMs;
  }

  /** Notes the date of an answer that came just now. What is no date says nothing. */
  note(service: DatedService, date: unknown): void {
    const ms = date instanceof Date ? date.getTime() : Number.NaN;
    if (Number.isFinite(ms)) this.#offByMs.set(service, this.#wallMs() - ms);
  }

  /** Why this member must not publish; undefined when its clock is fit. */
  get trouble(): string | undefined {
    for (const [service, offByMs] of this.#offByMs) {
      if (Math.abs(offByMs) <= this.#toleratedMs) continue;
      const seconds = Math.round(Math.abs(offByMs) / 1_000);
      return `this machine's clock is ${seconds} s ${offByMs > 0 ? 'ahead of' : 'behind'} that of the ${service}`;
    }
    return undefined;
  }
}
