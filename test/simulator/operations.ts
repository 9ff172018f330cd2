import type { KmsCodec } from '@sealring/core';
import type { Dice } from './dice.ts';
import type { Oracle } from './oracle.ts';
import { DAY, HOUR, SECOND, type World } from './world.ts';

/** Nothing happens before. */
export const QUIET_MS: number = 6 * HOUR;

/** Every `dailyMs` after the quiet hours, at a random moment within it; more often if keys live shorter. */
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

/** An operator's request to any member; a refused request is not repeated. */
export function operate(
  world: World,
  oracle: Oracle,
  act: (codec: KmsCodec) => Promise<void>,
  dice: Dice = world.dice,
): void {
  const codec = world.anyMember(dice)?.codec;
  if (codec === undefined) return;
  // A fault may be active: the operator sees the error.
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
