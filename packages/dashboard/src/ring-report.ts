import type { RingProblem } from '@sealring/core';
import type { RingKey } from './key-phases.ts';

/** The ring as it was last read. The page shows it together with the metrics of the members. */
export interface RingReport {
  /** Name of the ring: only metrics with this name are shown. */
  readonly ring: string;
  /** Kind of the ring store. */
  readonly store: string;
  readonly at: Date;
  /** `codec.health().keys`, with the time of each revocation. The page shows the hashes of the keys. */
  readonly keys: readonly RingKey[];
  /** The id of the key that members seal with; undefined if there is none. */
  readonly sealingKey: string | undefined;
  /** When the next rotation is due, if known. */
  readonly nextRotation: Date | undefined;
  /**
   * Why the ring could not be read this time, on one line and without secrets; the other data is then from an earlier
   * read.
   */
  readonly trouble: string | undefined;
  /**
   * Problems that an operator must solve, with remedies: `codec.health().problems` and others. Their text contains no
   * key ids.
   */
  readonly problems: readonly Pick<RingProblem, 'detail' | 'remedy'>[];
}
