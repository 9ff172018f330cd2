import { Attacker } from '../simulator/adversary/attacker.ts';
import { episodeOptions, SHORT_LIVES } from '../simulator/adversary/episode.ts';
import { PLAYS, Stage } from '../simulator/adversary/plays.ts';
import { ADVERSARIES } from '../simulator/adversary/powers.ts';
import { begin as beginUnrest } from '../simulator/adversary/unrest.ts';
import { Dice } from '../simulator/dice.ts';
import { Oracle } from '../simulator/oracle.ts';
import { HOUR, MINUTE, SECOND, World, type WorldOptions, type WorldPolicy } from '../simulator/world.ts';

/** A data key that a KMS has wrapped. */
export interface KeptKey {
  /** Base64url of the ciphertext. */
  readonly wrapped: string;
  readonly dataKey: string;
  readonly context: Readonly<Record<string, string>>;
}

/** The contents of a simulated fleet's store over time, and the data keys that its KMS can unwrap. */
export interface History {
  readonly name: string;
  readonly policy: WorldPolicy;
  /** Oldest first; milliseconds of the world. Null if the store was empty. */
  readonly versions: readonly { readonly atMs: number; readonly document: string | null }[];
  readonly keys: readonly KeptKey[];
}

/** Longest time of a play, as in the simulator. */
const LONGEST_PLAY_MS: number = 24 * HOUR;

/** Every name that {@link historyOf} accepts: random attackers, and plays. */
export const HISTORIES: readonly string[] = [
  ...Object.keys(ADVERSARIES).filter((name) => name.startsWith('W')),
  ...Object.keys(PLAYS),
];

/** Runs a fleet with an attacker and records its store. The same name and seed give the same history. */
export async function historyOf(name: string, seed: number): Promise<History> {
  const powers = ADVERSARIES[name];
  const options: WorldOptions = { ...episodeOptions(seed), members: powers === undefined ? 5 : 3, policy: SHORT_LIVES };
  const world = new World(powers === undefined ? { ...options, loss: 0 } : options);
  const recorded = record(world);
  const oracle = new Oracle(world);
  for (const member of world.members) member.start();
  if (powers !== undefined) await attack(world, oracle, name, seed);
  else await play(world, oracle, name);
  for (const member of world.members) member.crash();
  return { name, policy: world.policy, ...recorded };
}

function record(world: World): Pick<History, 'versions' | 'keys'> {
  const versions: { atMs: number; document: string | null }[] = [];
  const keys: KeptKey[] = [];
  const { onStored } = world.store;
  world.store.onStored = () => {
    versions.push({ atMs: Math.ceil(world.timeline.nowMs), document: world.store.document ?? null });
    onStored();
  };
  const keep = world.kms.keep.bind(world.kms);
  world.kms.keep = (dataKey, context) => {
    const kept = keep(dataKey, context);
    const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
    keys.push({ wrapped: base64url(kept.wrapped), dataKey: base64url(dataKey), context });
    return kept;
  };
  return { versions, keys };
}

async function attack(world: World, oracle: Oracle, name: string, seed: number): Promise<void> {
  const powers = ADVERSARIES[name];
  if (powers === undefined) throw new RangeError(`unknown adversary ${JSON.stringify(name)}`);
  const dice = new Dice(seed * 104_729 + 3);
  const fromMs = dice.between(8 * HOUR, 16 * HOUR);
  const untilMs = fromMs + dice.between(30 * MINUTE, 3.5 * HOUR);
  world.peaceFromMs = untilMs;
  const attacker = new Attacker(world, oracle, powers, new Dice(dice.word()));
  const unrest = new Dice(dice.word());
  world.timeline.after(fromMs, () => attacker.begin(untilMs));
  world.timeline.after(fromMs - 2 * HOUR, () => beginUnrest(world, oracle, unrest));
  await world.timeline.advance(untilMs + HOUR, world.options.quantumMs);
}

async function play(world: World, oracle: Oracle, name: string): Promise<void> {
  const found = PLAYS[name];
  if (found === undefined) throw new RangeError(`unknown play ${JSON.stringify(name)}`);
  const performed = { isOver: false, failure: undefined as unknown };
  found.perform(new Stage(world, oracle, found.powers)).then(
    () => (performed.isOver = true),
    (error: unknown) => Object.assign(performed, { isOver: true, failure: error }),
  );
  while (!performed.isOver && world.timeline.nowMs < LONGEST_PLAY_MS) {
    await world.timeline.advance(world.timeline.nowMs + 10 * SECOND, world.options.quantumMs);
  }
  if (performed.failure !== undefined) throw performed.failure;
}
