import type { FaultClass } from './faults.ts';
import { type SimulatedMember } from './member.ts';
import { nowAndThen, operate, QUIET_MS, revokeSealingKey } from './operations.ts';
import type { Oracle } from './oracle.ts';
import { EPOCH_MS } from './timeline.ts';
import { DAY, HOUR, MINUTE, SECOND, type World, type WorldEvent } from './world.ts';

const WRONG_BY_MS: readonly number[] = [14 * HOUR, 3 * DAY, 366 * DAY, -14 * HOUR, -3 * DAY];
const WRONG_FOR_MS: readonly number[] = [2 * SECOND, MINUTE, HOUR];

/** Runs `run` for some of the events of a kind, after the quiet hours and while there is no peace. */
function at(
  world: World,
  kind: WorldEvent['kind'],
  chance: number,
  run: (member: SimulatedMember | undefined) => void,
) {
  world.listen((event) => {
    const { nowMs } = world.timeline;
    if (event.kind !== kind || nowMs < QUIET_MS || nowMs >= world.peaceFromMs) return;
    if (world.dice.chance(chance)) run(event.member);
  });
}

/** The clock of one member leaps, and comes back. */
function leap(world: World, member: SimulatedMember | undefined): void {
  if (member === undefined || member.wrongMs !== 0) return;
  world.clockIsWrong(member, world.dice.pick(WRONG_BY_MS), world.dice.pick(WRONG_FOR_MS));
}

/** A revocation that the store does not keep from being written: nothing else may refuse it. */
async function revokeInTrouble(world: World, oracle: Oracle, member: SimulatedMember): Promise<void> {
  const { codec } = member;
  const keyId = codec?.health().keys.findLast(({ state }) => state === 'active' || state === 'propagating')?.id;
  if (codec === undefined || keyId === undefined) return;
  const isStoreWell = (): boolean =>
    !member.line.storeCut &&
    !world.store.down &&
    member.isUp &&
    member.codec === codec &&
    !world.hostility.isLately(world.timeline.nowMs, 0);
  let wasWell = isStoreWell();
  for (let tries = 0; tries < 5; tries++) {
    try {
      await codec.revoke(keyId);
      oracle.revoked(keyId);
      return;
    } catch (error) {
      oracle.caught(error, `${member.name} revokes`);
      wasWell &&= isStoreWell();
      if (tries === 4 && wasWell) oracle.report('a revocation is never refused', `${member.name}: ${String(error)}`);
      await world.timeline.pause(10 * SECOND);
    }
  }
}

/** Every key is revoked at once: what was stolen is not known. */
async function revokeAll(world: World, oracle: Oracle): Promise<void> {
  const member = world.anyMember();
  const { codec } = member ?? {};
  if (codec === undefined) return;
  const now = world.timeline.nowMs;
  const meant = codec
    .health()
    .keys.filter(({ created, state }) => state !== 'retired' && Number(created) <= EPOCH_MS + now);
  try {
    await codec.revokeAllBefore(new Date(EPOCH_MS + now));
  } catch (error) {
    oracle.caught(error, 'an operator revokes all');
    return;
  }
  for (const { id } of meant) oracle.revoked(id);
  const left = codec.health().keys.filter((key) => meant.some(({ id }) => id === key.id) && key.state !== 'revoked');
  for (const { id, state } of left) {
    if (state !== 'retired') oracle.report('all means all', `${member?.name ?? ''} left ${id} ${state}`);
  }
}

/** Faults that are aimed at an event, where random times seldom meet it. */
export const AIMED_FAULTS: Readonly<Record<string, FaultClass>> = Object.freeze({
  'clock-wrong': (world) => nowAndThen(world, 4 * HOUR, () => leap(world, world.anyMember())),
  'clock-wrong-at-publication': (world, oracle) => {
    nowAndThen(world, 8 * HOUR, () => {
      const member = world.anyMember();
      leap(world, member);
      const { codec } = member ?? {};
      if (codec !== undefined) codec.rotate().catch((error: unknown) => oracle.caught(error, 'an operator'));
    });
    at(world, 'generating', 0.5, (member) => leap(world, member));
    at(world, 'publication', 0.5, () => leap(world, world.anyMember()));
  },
  'clock-wrong-at-boot': (world) => {
    nowAndThen(world, 4 * HOUR, () => {
      const member = world.anyToSpare();
      if (member === undefined || member.wrongMs !== 0) return;
      world.crash(member, 30 * SECOND);
      const aheadMs = world.dice.pick(WRONG_BY_MS);
      world.clockIsWrong(member, aheadMs, 30 * SECOND + world.dice.pick([...WRONG_FOR_MS, 10 * MINUTE]));
    });
  },
  'no-dates': ({ kms, store }) => {
    kms.dates.aheadMs = undefined;
    store.dates.aheadMs = undefined;
  },
  'date-wrong': (world) => {
    nowAndThen(world, 8 * HOUR, () => {
      const aheadMs = world.dice.pick([20 * MINUTE, -20 * MINUTE, DAY]);
      world.dateIsWrong(world.dice.pick(['kms', 'store']), aheadMs, 2 * HOUR);
    });
  },
  'clock-steps-at-activation': (world) => {
    const half = (world.options.clockSkewSeconds * SECOND) / 2;
    at(world, 'activation', 1, () => {
      for (const member of world.sample()) {
        member.skewMs = world.dice.chance(0.5) ? half : world.dice.between(-half, half);
        world.timeline.after(world.dice.between(MINUTE, 8 * MINUTE), () => {
          member.skewMs = world.dice.between(-half, 0);
        });
      }
    });
  },
  'freeze-publisher': (world) => {
    at(world, 'generating', 0.7, (member) => {
      if (member === undefined) return;
      world.timeline.after(world.dice.between(0, 200), () => {
        if (member.isUp) world.freeze(member, world.dice.between(MINUTE, 3 * HOUR));
      });
    });
  },
  'late-write': (world) => {
    at(world, 'generating', 0.7, (member) => {
      if (member === undefined || world.wrapTrouble.since !== undefined) return;
      const heldMs = world.dice.between(MINUTE, 3 * HOUR);
      world.holdWrites(member, heldMs);
      // Nobody else makes the key meanwhile.
      world.timeline.after(SECOND, () => world.wrapsFail(heldMs + MINUTE));
    });
  },
  'cut-off-at-publication': (world) => {
    at(world, 'generating', 0.7, (publisher) => {
      const others = world.sample().filter((member) => member !== publisher && member.isUp && !member.line.storeCut);
      if (others.length < 3) return;
      world.cut(world.dice.pick(others), 'store', world.dice.between(HOUR - 5 * MINUTE, HOUR));
      world.cut(world.dice.pick(others), 'kms', 43 * MINUTE);
    });
  },
  'long-partition': (world) => {
    nowAndThen(world, 20 * HOUR, () => {
      const member = world.anyMember();
      if (member !== undefined) world.cut(member, world.dice.pick(['kms', 'store']), 9 * HOUR);
    });
  },
  'full-ring': (world, oracle) => {
    nowAndThen(world, 2 * DAY, () => {
      const { codec } = world.anyMember() ?? {};
      if (codec === undefined) return;
      void (async () => {
        for (let i = 0; i < 64; i++) {
          await codec.rotate().catch((error: unknown) => oracle.caught(error, 'an operator'));
        }
        const member = world.anyMember();
        if (member !== undefined) await revokeInTrouble(world, oracle, member);
      })();
    });
  },
  'revocation-in-trouble': (world, oracle) => {
    nowAndThen(world, DAY, () => {
      const member = world.anyMember();
      if (member === undefined) return;
      if (world.dice.chance(0.5)) world.kmsFails('unavailable', 40 * MINUTE);
      else if (member.wrongMs === 0) world.clockIsWrong(member, world.dice.pick(WRONG_BY_MS), HOUR);
      world.timeline.after(world.dice.between(0, 10 * MINUTE), () => void revokeInTrouble(world, oracle, member));
    });
  },
  'revocation-at-publication': (world, oracle) => {
    at(world, 'publication', 0.2, () => {
      world.timeline.after(world.dice.between(0, 2 * SECOND), () => revokeSealingKey(world, oracle));
      if (world.dice.chance(0.5)) operate(world, oracle, (codec) => codec.rotate());
    });
  },
  'revocation-of-all': (world, oracle) => nowAndThen(world, DAY, () => void revokeAll(world, oracle)),
});
