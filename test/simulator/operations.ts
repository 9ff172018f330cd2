import type { KmsCodec } from '@sealring/core';
import type { Dice } from './dice.ts';
import type { Oracle } from './oracle.ts';
import { DAY, HOUR, SECOND, type World } from './world.ts';

/** Nothing happens before. */
export const QUIET_MS: number = 6 * HOUR;

/** Every `dailyMs` from the quiet hours on, at a random moment within it; where keys live shorter, as much more often. */
export function nowAndThen(world: World, dailyMs: number, run: () => void): void {
  const everyMs = dailyMs * ((world.policy.rotateEverySeconds * SECOND) / DAY);
  world.timeline.after(QUIET_MS, () => {
    const next = (): void => {
      world.timeline.after(world.dice.between(0, everyMs), () => {
        if (world.timeline.nowMs < world.peaceFromMs) run();
      });
      world.timeline.after(everyMs, next);
    };
    next();
  });
}

/** What an operator asks of any member; a refused wish is tried again by nobody. */
export function operate(
  world: World,
  oracle: Oracle,
  act: (codec: KmsCodec) => Promise<void>,
  dice: Dice = world.dice,
): void {
  const codec = world.anyMember(dice)?.codec;
  if (codec === undefined) return;
  // The world may be in trouble just now: the operator sees the error.
  act(codec).catch((error: unknown) => oracle.caught(error, 'an operator'));
}

export function revokeSealingKey(world: World, oracle: Oracle, dice?: Dice): void {
  const act = async (codec: KmsCodec): Promise<void> => {
    const { sealingKey } = codec.health();
    if (sealingKey === undefined) return;
    oracle.wished([sealingKey]);
    await codec.revoke(sealingKey);
    oracle.revoked(sealingKey);
  };
  operate(world, oracle, act, dice);
}
