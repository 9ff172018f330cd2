import type { WorldOptions } from './world.ts';

/** The options of most test runs: the defaults of the lifecycle, a poor network, and clocks as far apart as allowed. */
export function usualWorld(seed: number, days: number, members = 8): WorldOptions {
  return { seed, members, days, loss: 0.02, clockSkewSeconds: 600, quantumMs: 20 };
}
