/** What an attacker has, as the threat model gives it to him. */
export interface Powers {
  /** He reads and writes the store. */
  readonly writes: boolean;
  /** Which data keys of the ring he steals, as they are at the moment of the theft. */
  readonly steals: 'newest' | 'older' | 'revoked' | 'ended' | undefined;
  /** He may call `wrap` of the KMS. */
  readonly wraps: boolean;
  /** He can make every member believe that the ring has changed. */
  readonly notifies: boolean;
  /** He presents tokens. */
  readonly presents: boolean;
}

export const NOTHING: Powers = { writes: false, steals: undefined, wraps: false, notifies: false, presents: false };
const W: Powers = { ...NOTHING, writes: true };

export const ADVERSARIES: Readonly<Record<string, Powers>> = Object.freeze({
  W,
  'W+k-newest': { ...W, steals: 'newest' },
  'W+k-older': { ...W, steals: 'older' },
  'W+k-revoked': { ...W, steals: 'revoked' },
  'W+k-ended': { ...W, steals: 'ended' },
  'W+wrap': { ...W, wraps: true },
  N: { ...NOTHING, notifies: true },
  C: { ...NOTHING, presents: true },
});
