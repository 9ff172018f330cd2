import type { RingProblem } from '@sealring/core';
import type { RingKey } from './key-phases.ts';

/** The ring as it was read last: what the page shows beside what the members export. */
export interface RingReport {
  /** Its name: metrics of members count where they name the same ring. */
  readonly ring: string;
  /** The kind of its store. */
  readonly store: string;
  readonly at: Date;
  /** `codec.health().keys`, and when those were revoked that are. They are shown by their hashes. */
  readonly keys: readonly RingKey[];
  /** The id of the key that members seal with; undefined for none. */
  readonly sealingKey: string | undefined;
  /** When the next rotation is due, where that is known. */
  readonly nextRotation: Date | undefined;
  /** Why the ring could not be read this time, on one line; what is shown was read before. Nothing secret. */
  readonly trouble: string | undefined;
  /** What needs an operator, with what to do: `codec.health().problems`, and what else was found. No key ids. */
  readonly problems: readonly Pick<RingProblem, 'detail' | 'remedy'>[];
}
