import { type EpisodeReport, episodeOptions, runEpisode, runPlay, SHORT_LIVES } from './adversary/episode.ts';
import { PLAYS } from './adversary/plays.ts';
import { ADVERSARIES } from './adversary/powers.ts';
import type { Violation } from './oracle.ts';
import { simulate } from './simulate.ts';
import type { WorldOptions, WorldPolicy } from './world.ts';

/** One of the fixed searches: an episode with an adversary, or a fleet under some faults. */
export interface Search {
  readonly name: string;
  readonly seed: number;
  readonly run: () => Promise<readonly Violation[]>;
}

/** A run with an adversary. */
interface Episode extends Search {
  readonly report: () => Promise<EpisodeReport>;
}

/** Maximum number of members of a fleet in the fixed searches; the command runs larger fleets. */
const MOST_MEMBERS = 8;
const ADVERSARY_SEEDS: readonly number[] = [1, 2, 3];

function episode(adversary: string, seed: number): Episode {
  const report = () => runEpisode(adversary, episodeOptions(seed, MOST_MEMBERS));
  return { name: adversary, seed, report, run: async () => (await report()).violations };
}

function faults(names: string, seed: number, days = 1.25, policy: Partial<WorldPolicy> = {}): Search {
  const options: WorldOptions = {
    seed,
    members: 6,
    days,
    loss: 0.02,
    clockSkewSeconds: 600,
    quantumMs: 20,
    policy: { ...SHORT_LIVES, ...policy },
  };
  return { name: names, seed, run: async () => (await simulate(options, names.split(','))).violations };
}

/** Each adversary in turn, so that few runs meet many guards. */
export const ADVERSARY_SEARCHES: readonly Episode[] = [
  ...ADVERSARY_SEEDS.flatMap((seed) => Object.keys(ADVERSARIES).map((name) => episode(name, seed))),
  // The only one that meets a valid wrap beside an invalid one of the same key.
  episode('W+k-older', 11),
];

/** Faults that are aimed at guards; the test of every class of faults has them too. */
const FAULT_SEARCHES: readonly Search[] = [
  faults('revocation,revocation-at-partition', 1),
  faults('key-disabled', 1),
  faults('key-disabled-at-partition', 1),
  faults('long-partition', 1),
  faults('clock-wrong-at-boot', 1),
  faults('clock-wrong-at-publication', 1),
  faults('clock-wrong', 1),
  faults('clock-steps-at-activation', 1),
  faults('cut-off-at-publication', 1),
  faults('freeze-publisher', 1),
  faults('late-write', 1),
  faults('freeze', 1),
  faults('date-wrong', 1),
  faults('date-wrong', 2),
  faults('flapping', 1, 0.5),
  faults('revocation-in-trouble', 1),
  faults('revocation-of-all', 1),
  faults('full-ring', 1, 0.6),
  faults('store-failover,crash', 1),
  faults('store-flush', 1),
  faults('two-operators-rotate,emergency', 1),
  faults('ring-made-twice', 1, 0.3),
  faults('flapping-at-proof', 1, 0.75),
  faults('hasty-key-at-kms-partition', 1),
  faults('clock-ahead-of-an-end-at-boot', 1),
  faults('clock-wrong-at-an-end', 1),
  faults('late-write-at-partition', 1),
  faults('slow-publisher', 1, 1.25, { kmsTimeoutSeconds: 300 }),
  faults('wrap-denied-until-the-end', 1),
];

/** Attackers in fixed steps: these cost least, and come first. */
const PLAY_SEARCHES: readonly Search[] = Object.keys(PLAYS).map((name) => ({
  name,
  seed: 1,
  run: async () => (await runPlay(name, 1)).violations,
}));

export const STANDING_SEARCHES: readonly Search[] = [...PLAY_SEARCHES, ...FAULT_SEARCHES, ...ADVERSARY_SEARCHES];
