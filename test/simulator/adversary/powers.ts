/** The attacker's powers, as the threat model grants them. */
export interface Powers {
  /** Reads the store and writes to it. */
  readonly writes: boolean;
  /** Data keys of the ring that the attacker steals, as they are at the moment of the theft. */
  readonly steals: 'newest' | 'older' | 'revoked' | 'ended' | undefined;
  /** May call `wrap` of the KMS. */
  readonly wraps: boolean;
  /** Can notify every member of a change. */
  readonly notifies: boolean;
  /** Presents tokens. */
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
