import { Dice } from '../dice.ts';
import { Oracle, type Violation } from '../oracle.ts';
import { HOUR, MINUTE, SECOND, World, type WorldOptions, type WorldPolicy } from '../world.ts';
import { judgeAfterwards } from './after.ts';
import { Attacker } from './attacker.ts';
import { PLAYS, Stage } from './plays.ts';
import { ADVERSARIES, NOTHING, type Powers } from './powers.ts';
import { begin as beginUnrest } from './unrest.ts';

/** The result of an episode. */
export interface EpisodeReport {
  readonly adversary: string;
  readonly seed: number;
  readonly members: number;
  readonly hours: number;
  readonly deliveries: number;
  readonly sealed: number;
  readonly opened: number;
  readonly violationCount: number;
  readonly violations: readonly Violation[];
}

/** Keys that live for half a day, so that faults and attackers meet more of them. */
export const SHORT_LIVES: Partial<WorldPolicy> = { rotateEverySeconds: 19_200, storeOutageSeconds: 14_400 };

/** Everything random in an episode follows from its seed. */
export function episodeOptions(seed: number, most = 20): WorldOptions {
  const dice = new Dice(seed * 7_919 + 1);
  const members = 5 + Math.floor(dice.uniform() * Math.max(1, most - 4));
  return { seed, members, days: 2, loss: 0.01, clockSkewSeconds: 600, quantumMs: 20, policy: SHORT_LIVES };
}

interface Listener {
  readonly trace?: (atMs: number, line: string) => void;
}

/** One fleet and one attacker: some quiet hours, some hours of attack and faults, and then the final checks. */
export async function runEpisode(
  adversary: string,
  options: WorldOptions,
  listener: Listener = {},
): Promise<EpisodeReport> {
  const powers = ADVERSARIES[adversary];
  if (powers === undefined) throw new RangeError(`unknown adversary ${JSON.stringify(adversary)}`);
  const { world, oracle, attacker, calls, attackedMs } = await attack(powers, options, listener);
  if (oracle.violationCount === 0 && !powers.writes) {
    // Compares the calls that the attacker causes with the calls of the same fleet without an attacker.
    const without = await attack(NOTHING, options, {});
    judgeCalls(oracle, calls, without.calls, { members: options.members, attackedMs });
    end(without.world);
  }
  if (oracle.violationCount === 0) await judgeAfterwards(world, oracle);
  const report = reportOf(adversary, world, oracle, attacker.deliveries);
  end(world);
  return report;
}

async function attack(powers: Powers, options: WorldOptions, listener: Listener) {
  const world = new World(options);
  trace(world, listener);
  const oracle = new Oracle(world);
  const dice = new Dice(options.seed * 104_729 + 3);
  world.store.pushes = dice.chance(0.3);
  if (dice.chance(0.2)) for (const { dates } of [world.kms, world.store]) dates.aheadMs = undefined;
  const fromMs = dice.between(8 * HOUR, 16 * HOUR);
  const untilMs = fromMs + dice.between(30 * MINUTE, 3.5 * HOUR);
  for (const member of world.members) member.start();
  oracle.watch(2 * MINUTE);
  world.peaceFromMs = untilMs;
  const attacker = new Attacker(world, oracle, powers, new Dice(dice.word()));
  const unrest = new Dice(dice.word());
  world.timeline.after(fromMs, () => attacker.begin(untilMs));
  // Without revocations there is no revoked key to steal.
  world.timeline.after(fromMs - 2 * HOUR, () => beginUnrest(world, oracle, unrest));
  await advance(world, untilMs, () => oracle.violationCount > 0);
  const calls = { kms: world.kms.total, reads: world.store.calls.read };
  return { world, oracle, attacker, calls, attackedMs: untilMs - fromMs };
}

/** A play ends by itself, long before this limit. */
const LONGEST_PLAY_MS: number = 24 * HOUR;

/** One fleet, one attacker who follows a play, and then the final checks. */
export async function runPlay(name: string, seed: number, listener: Listener = {}): Promise<EpisodeReport> {
  const play = PLAYS[name];
  if (play === undefined) throw new RangeError(`unknown play ${JSON.stringify(name)}`);
  const options = { ...episodeOptions(seed), members: 5, loss: 0 };
  const world = new World(options);
  trace(world, listener);
  const oracle = new Oracle(world);
  for (const member of world.members) member.start();
  oracle.watch(2 * MINUTE);
  const stage = new Stage(world, oracle, play.powers);
  const performed = { isOver: false, failure: undefined as unknown };
  play.perform(stage).then(
    () => (performed.isOver = true),
    (error: unknown) => Object.assign(performed, { isOver: true, failure: error }),
  );
  const isWanted = (): boolean => !performed.isOver && oracle.violationCount === 0;
  while (isWanted() && world.timeline.nowMs < LONGEST_PLAY_MS) {
    await world.timeline.advance(world.timeline.nowMs + 10 * SECOND, options.quantumMs);
  }
  if (performed.failure !== undefined) throw performed.failure;
  if (oracle.violationCount === 0) await judgeAfterwards(world, oracle);
  const report = reportOf(name, world, oracle, stage.deliveries);
  end(world);
  return report;
}

function trace(world: World, { trace: tell }: Listener): void {
  if (tell === undefined) return;
  world.trace = (line) => tell(world.timeline.nowMs, line);
  world.store.trace = world.trace;
}

function reportOf(adversary: string, world: World, oracle: Oracle, deliveries: number): EpisodeReport {
  return {
    adversary,
    seed: world.options.seed,
    members: world.options.members,
    hours: world.timeline.nowMs / HOUR,
    deliveries,
    sealed: oracle.sealed,
    opened: oracle.opened,
    violationCount: oracle.violationCount,
    violations: oracle.violations,
  };
}

function end(world: World): void {
  for (const member of world.members) member.crash();
}

/** Share of calls, and calls of a member, by which two runs may differ by chance. */
const BY_CHANCE = { share: 0.1, calls: 12 };

function judgeCalls(
  oracle: Oracle,
  calls: { readonly kms: number; readonly reads: number },
  without: { readonly kms: number; readonly reads: number },
  { members, attackedMs }: { readonly members: number; readonly attackedMs: number },
): void {
  const slack = BY_CHANCE.calls * members;
  const kms = without.kms * (1 + BY_CHANCE.share) + slack;
  if (calls.kms > kms)
    oracle.report('as many KMS calls as without an attacker', `${calls.kms} instead of ${without.kms}`);
  const reads = without.reads * (1 + BY_CHANCE.share) + slack + (members * attackedMs) / MISS_REFRESH_MS;
  if (calls.reads > reads) {
    oracle.report(
      'one read per missRefresh per member',
      `${calls.reads} instead of ${without.reads}, at most ${reads}`,
    );
  }
}

/** The default of the lifecycle: 10 s. */
const MISS_REFRESH_MS = 10_000;

async function advance(world: World, untilMs: number, isEnough: () => boolean): Promise<void> {
  while (world.timeline.nowMs < untilMs && !isEnough()) {
    await world.timeline.advance(Math.min(untilMs, world.timeline.nowMs + HOUR / 4), world.options.quantumMs);
  }
}
