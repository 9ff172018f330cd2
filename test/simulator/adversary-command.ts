import { type EpisodeReport, episodeOptions, runEpisode, runPlay } from './adversary/episode.ts';
import { PLAYS } from './adversary/plays.ts';
import { HOUR } from './world.ts';

/** Options of `--adversary`. */
export interface AdversaryValues {
  readonly adversaries: readonly string[];
  readonly seeds: readonly [from: number, to: number];
  readonly mostMembers: number;
  readonly trace: boolean;
}

/**
 * Runs episodes in sequence, and reports how to repeat each that broke an invariant. Returns true if no episode
 * broke an invariant.
 */
export async function searchWithAdversaries(values: AdversaryValues): Promise<boolean> {
  const { adversaries, seeds, mostMembers, trace } = values;
  const [from, to] = seeds;
  const total = adversaries.length * (to - from + 1);
  let [done, failed, deliveries, told] = [0, 0, 0, Date.now()];
  const search = { isWanted: true };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      search.isWanted = false;
      process.stderr.write('  ending after this episode; once more to end at once\n');
    });
  }
  // Each adversary in turn, so that a search that is ended early has tried all.
  for (let seed = from; seed <= to && search.isWanted; seed++) {
    for (const adversary of adversaries) {
      if (!search.isWanted) break;
      const listener = trace
        ? { trace: (atMs: number, line: string) => void process.stdout.write(`${hours(atMs)}  ${line}\n`) }
        : {};
      const report = Object.hasOwn(PLAYS, adversary)
        ? await runPlay(adversary, seed, listener)
        : await runEpisode(adversary, episodeOptions(seed, mostMembers), listener);
      done += 1;
      deliveries += report.deliveries;
      if (report.violationCount > 0) {
        failed += 1;
        process.stdout.write(failure(report, mostMembers));
      }
      if (Date.now() - told >= 2_000) {
        told = Date.now();
        process.stderr.write(`  ${done} of ${total} episodes, ${failed} failed\n`);
      }
    }
  }
  const names = adversaries.join(', ');
  process.stdout.write(`${done} episodes of ${names}; ${deliveries} hostile acts; ${failed} episodes failed\n`);
  return failed === 0;
}

function failure({ adversary, seed, members, violations }: EpisodeReport, mostMembers: number): string {
  return [
    `${adversary}, seed ${seed}, ${members} members`,
    ...violations.map(({ atMs, law, detail }) => `FAILED      ${hours(atMs)}  ${law}: ${detail}`),
    `repeat with npm run simulate -- --adversary ${adversary} --seeds ${seed}-${seed} --members ${mostMembers} --trace`,
    '',
  ].join('\n');
}

function hours(ms: number): string {
  return `${(ms / HOUR).toFixed(3)} h`;
}
