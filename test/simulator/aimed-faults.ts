import { RingStoreError } from '@sealring/core';
import type { FaultClass } from './faults.ts';
import { type SimulatedMember } from './member.ts';
import { nowAndThen, operate, QUIET_MS, revokeSealingKey } from './operations.ts';
import type { Oracle } from './oracle.ts';
import { storedKeys } from './stored-keys.ts';
import { EPOCH_MS } from './timeline.ts';
import { DAY, HOUR, MINUTE, SECOND, type World, type WorldEvent } from './world.ts';

const WRONG_BY_MS: readonly number[] = [14 * HOUR, 3 * DAY, 366 * DAY, -14 * HOUR, -3 * DAY];
const WRONG_FOR_MS: readonly number[] = [2 * SECOND, MINUTE, HOUR];

/** Runs `run` for some of the events of a kind, after the quiet hours and before the final ones. */
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

/** A revocation that the store is able to write: nothing else may refuse it. */
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
  oracle.wished([keyId]);
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

/** Revokes every key at once, like an operator who does not know which key was stolen. */
async function revokeAll(world: World, oracle: Oracle): Promise<void> {
  const member = world.anyMember();
  const { codec } = member ?? {};
  if (codec === undefined) return;
  const now = world.timeline.nowMs;
  const meant = codec
    .health()
    .keys.filter(({ created, state }) => state !== 'expired' && Number(created) <= EPOCH_MS + now);
  oracle.wishedAll(EPOCH_MS + now);
  try {
    await codec.revokeAllBefore(new Date(EPOCH_MS + now));
  } catch (error) {
    oracle.caught(error, 'an operator revokes all');
    return;
  }
  // Keys that others published meanwhile, too.
  const revoked = codec.health().keys.filter(({ state }) => state === 'revoked');
  for (const { id } of [...meant, ...revoked]) if (!oracle.isRevoked(id)) oracle.revoked(id);
  const left = codec.health().keys.filter((key) => meant.some(({ id }) => id === key.id) && key.state !== 'revoked');
  for (const { id, state } of left) {
    if (state !== 'expired') oracle.report('all means all', `${member?.name ?? ''} left ${id} ${state}`);
  }
}

/** Requests rotations until they are refused, and then a revocation: the ring must have room left for a successor. */
async function fillAndRevoke(world: World, oracle: Oracle, what: 'all' | 'one'): Promise<void> {
  const { codec } = world.anyMember() ?? {};
  if (codec === undefined) return;
  for (let i = 0; i < 80; i++) {
    try {
      await codec.rotate();
    } catch (error) {
      oracle.caught(error, 'an operator');
      if (error instanceof RingStoreError && error.kind === 'too-large') break;
    }
  }
  const member = world.anyMember();
  if (member === undefined) return;
  if (what === 'all') await revokeAll(world, oracle);
  else await revokeInTrouble(world, oracle, member);
}

/** Live keys of the stored ring that are not revoked, oldest first. */
function liveKeys(world: World): readonly { readonly id: string; readonly opensInMs: number }[] {
  const wallMs = EPOCH_MS + world.timeline.nowMs;
  return storedKeys(world.store.document)
    .filter((key) => key.revoked === undefined)
    .toSorted((a, b) => a.activates.localeCompare(b.activates))
    .map(({ id, opensUntil }) => ({ id, opensInMs: Date.parse(opensUntil) - wallMs }))
    .filter(({ opensInMs }) => opensInMs > 0);
}

/**
 * A member starts with a clock by which a live key expires at this moment, or has expired, while the newest remains.
 * The clock comes back to the right time, and then the member needs that key.
 */
function startsAheadOfAnEnd(world: World): void {
  const member = world.anyToSpare();
  const live = liveKeys(world);
  const newestInMs = live.at(-1)?.opensInMs ?? 0;
  const older = live.slice(0, -1).filter(({ opensInMs }) => opensInMs > HOUR / 2 && opensInMs < newestInMs - HOUR);
  // Without any date no member could notice.
  if (!world.isDated || member === undefined || member.wrongMs !== 0 || older.length === 0) return;
  const isEnding = world.dice.chance(0.5);
  const { opensInMs } = isEnding ? world.dice.pick(older) : (older.at(-1) as (typeof older)[number]);
  world.crash(member, 30 * SECOND);
  if (isEnding) world.clockIsWrong(member, opensInMs - 5 * MINUTE, 40 * MINUTE);
  else world.clockIsWrong(member, opensInMs + world.dice.between(10 * MINUTE, HOUR), 12 * MINUTE);
}

/** Permissions that flap at the moment of use, and an application that does not wait. */
function flap(world: World, oracle: Oracle, member: SimulatedMember | undefined): void {
  const { codec } = member ?? {};
  world.kmsFails('denied', world.dice.between(4 * SECOND, 6 * SECOND));
  if (codec === undefined || world.dice.chance(0.5)) return;
  for (const ms of [SECOND, 2 * SECOND, 3 * SECOND]) {
    world.timeline.after(ms, () => {
      if (member?.isUp !== true || member.codec !== codec) return;
      codec.refresh().catch((error: unknown) => oracle.caught(error, 'an application refreshes'));
    });
  }
}

/** Faults that are aimed at an event, which random times seldom meet. */
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
  'clock-ahead-of-an-end-at-boot': (world) => at(world, 'activation', 0.8, () => startsAheadOfAnEnd(world)),
  'clock-wrong-at-an-end': (world) => {
    const met = new Set<string>();
    world.timeline.after(QUIET_MS, () =>
      world.timeline.every(5 * MINUTE, () => {
        const ending = liveKeys(world).find(({ opensInMs }) => opensInMs < 20 * MINUTE);
        if (ending === undefined || met.has(ending.id)) return;
        met.add(ending.id);
        const member = world.anyMember();
        if (member?.wrongMs === 0) world.clockIsWrong(member, world.dice.pick(WRONG_BY_MS), HOUR);
      }),
    );
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
        world.setClock(member, world.dice.chance(0.5) ? half : world.dice.between(-half, half));
        world.timeline.after(world.dice.between(MINUTE, 8 * MINUTE), () => {
          world.setClock(member, world.dice.between(-half, 0));
        });
      }
    });
  },
  'freeze-publisher': (world) => {
    at(world, 'generating', 0.7, (member) => {
      if (member === undefined) return;
      world.timeline.after(world.dice.between(0, 200), () => {
        if (!member.isUp) return;
        world.freeze(member, world.dice.between(MINUTE, 3 * HOUR));
      });
    });
  },
  'slow-publisher': (world) => {
    const slowMs = 0.97 * world.policy.kmsTimeoutSeconds * SECOND;
    let lastMs = Number.NEGATIVE_INFINITY;
    at(world, 'generating', 0.7, () => {
      if (world.timeline.nowMs - lastMs < 4 * HOUR) return;
      lastMs = world.timeline.nowMs;
      // The current call, and the next one.
      world.kmsIsSlow(slowMs, 1.5 * slowMs);
    });
  },
  'late-write-at-partition': (world) => {
    at(world, 'generating', 0.7, (publisher) => {
      if (publisher === undefined || world.wrapTrouble.since !== undefined) return;
      const heldMs = world.dice.between(80 * MINUTE, 3 * HOUR);
      world.holdWrites(publisher, heldMs);
      world.timeline.after(SECOND, () => world.wrapsFail(heldMs + MINUTE));
      world.timeline.after(heldMs - 2 * MINUTE, () => {
        const others = world.sample().filter((member) => member !== publisher && member.isUp && !member.line.storeCut);
        if (others.length < 3) return;
        world.cut(world.dice.pick(others), 'store', 55 * MINUTE);
        world.cut(world.dice.pick(others), 'kms', 43 * MINUTE);
      });
    });
  },
  'late-write': (world) => {
    at(world, 'generating', 0.7, (member) => {
      if (member === undefined || world.wrapTrouble.since !== undefined) return;
      const heldMs = world.dice.between(MINUTE, 3 * HOUR);
      world.holdWrites(member, heldMs);
      // No other member makes the key meanwhile.
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
  'hasty-key-at-kms-partition': (world, oracle) => {
    nowAndThen(world, 12 * HOUR, () => {
      for (let i = 0; i < 2; i++) {
        const member = world.anyMember();
        if (member !== undefined) world.cut(member, 'kms', 43 * MINUTE);
      }
      world.timeline.after(2 * MINUTE, () => {
        if (world.dice.chance(0.5)) revokeSealingKey(world, oracle);
        else operate(world, oracle, (codec) => codec.rotate({ emergency: true }));
      });
    });
  },
  'flapping-at-proof': (world, oracle) => {
    let lastMs = Number.NEGATIVE_INFINITY;
    at(world, 'unwrapping', 0.2, (member) => {
      if (world.timeline.nowMs - lastMs < 3 * MINUTE) return;
      lastMs = world.timeline.nowMs;
      flap(world, oracle, member);
    });
  },
  'wrap-denied-until-the-end': (world) => {
    const half = (world.options.clockSkewSeconds * SECOND) / 2;
    let isOver = false;
    at(world, 'activation', 1, () => {
      const newest = storedKeys(world.store.document)
        .toSorted((a, b) => a.activates.localeCompare(b.activates))
        .at(-1);
      if (isOver || newest === undefined || world.wrapTrouble.since !== undefined) return;
      isOver = true;
      const endsInMs = Date.parse(newest.sealsUntil) - EPOCH_MS - world.timeline.nowMs;
      world.wrapsFail(endsInMs + world.dice.between(-MINUTE, MINUTE));
      // A member whose clock is behind seals with the last key for longer than a member whose clock is ahead may know
      // it.
      world.timeline.after(endsInMs - 30 * MINUTE, () => {
        for (const [i, member] of world.members.entries()) world.setClock(member, i % 2 === 0 ? half : -half);
      });
    });
  },
  'ring-made-twice': (world) => {
    // The ring is lost while no other member can write it back, and a server starts.
    world.timeline.after(world.dice.between(HOUR, 3 * HOUR), () => {
      const [first, ...others] = world.members;
      if (first?.isUp !== true) return;
      world.crash(first, 10 * SECOND);
      for (const member of others) world.cut(member, 'store', 15 * MINUTE);
      world.store.flush();
    });
  },
  'long-partition': (world) => {
    nowAndThen(world, 20 * HOUR, () => {
      const member = world.anyMember();
      if (member !== undefined) world.cut(member, world.dice.pick(['kms', 'store']), 9 * HOUR);
    });
  },
  'full-ring': (world, oracle) => {
    let times = 0;
    nowAndThen(world, 2 * DAY, () => void fillAndRevoke(world, oracle, times++ % 2 === 0 ? 'all' : 'one'));
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
