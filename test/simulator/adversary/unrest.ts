import type { Dice } from '../dice.ts';
import { operate, revokeSealingKey } from '../operations.ts';
import type { Oracle } from '../oracle.ts';
import { HOUR, MINUTE, SECOND, type World } from '../world.ts';

type Unrest = (world: World, oracle: Oracle, dice: Dice) => void;

/** Faults in a fleet during an attack: every kind that helps an attacker. */
const UNRESTS: readonly Unrest[] = [
  (world, _, dice) => {
    const member = world.anyToSpare(dice);
    if (member !== undefined) world.crash(member, dice.between(SECOND, 4 * MINUTE));
  },
  (world, _, dice) => {
    const member = world.anyToSpare(dice);
    if (member !== undefined) world.crash(member, dice.between(SECOND, 4 * MINUTE));
  },
  (world, _, dice) => {
    const member = world.anyMember(dice);
    if (member !== undefined) world.cut(member, dice.pick(['kms', 'store']), dice.between(MINUTE, HOUR));
  },
  (world, _, dice) => world.kmsFails(dice.pick(['unavailable', 'throttled']), dice.between(MINUTE, 30 * MINUTE)),
  (world, _, dice) => {
    const member = world.anyMember(dice);
    if (member === undefined || member.wrongMs !== 0) return;
    world.clockIsWrong(
      member,
      dice.pick([-1, 1]) * dice.pick([14 * HOUR, 72 * HOUR]),
      dice.pick([2 * SECOND, MINUTE, 20 * MINUTE]),
    );
  },
  (world, _, dice) => {
    const member = world.anyToSpare(dice);
    if (member?.isUp === true) world.freeze(member, dice.between(MINUTE, HOUR));
  },
  (world, oracle, dice) => revokeSealingKey(world, oracle, dice),
  (world, oracle, dice) => operate(world, oracle, (codec) => codec.rotate(), dice),
  (world, oracle, dice) => operate(world, oracle, (codec) => codec.rotate({ emergency: true }), dice),
];

/** Causes a fault at random times, until the end of the attack. */
export function begin(world: World, oracle: Oracle, dice: Dice): void {
  const everyMs = dice.pick([5 * MINUTE, 15 * MINUTE, 40 * MINUTE]);
  const next = (): void => {
    world.timeline.after(dice.latencyMs(everyMs), () => {
      if (world.timeline.nowMs >= world.peaceFromMs) return;
      dice.pick(UNRESTS)(world, oracle, dice);
      next();
    });
  };
  next();
}
