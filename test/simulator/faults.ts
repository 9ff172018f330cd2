import { AIMED_FAULTS } from './aimed-faults.ts';
import { nowAndThen, operate, QUIET_MS, revokeSealingKey } from './operations.ts';
import type { Oracle } from './oracle.ts';
import { storedKeys } from './stored-keys.ts';
import { EPOCH_MS } from './timeline.ts';
import { DAY, HOUR, MINUTE, propagationSecondsOf, SECOND, type World } from './world.ts';

/** One class of faults: schedules them in a world. Begins after six quiet hours. */
export type FaultClass = (world: World, oracle: Oracle) => void;

/** The newest key, and when it becomes active. */
function newestKey(world: World): { readonly id: string; readonly activates: number } {
  const newest = storedKeys(world.store.document)
    .toSorted((a, b) => a.activates.localeCompare(b.activates))
    .at(-1);
  return {
    id: newest?.id ?? '',
    activates: newest === undefined ? world.timeline.nowMs : Date.parse(newest.activates) - EPOCH_MS,
  };
}

/** An outage for every rotation, from `startsMs` after the moment when it is due. */
function outageAtRotation(world: World, startsMs: number, lastsMs: number): void {
  const dueAfterMs = (world.policy.rotateEverySeconds - propagationSecondsOf(world.policy)) * SECOND;
  const met = new Set<string>();
  world.timeline.after(QUIET_MS, () =>
    world.timeline.every(MINUTE, () => {
      const { id, activates } = newestKey(world);
      if (met.has(id) || world.timeline.nowMs < activates + dueAfterMs + startsMs) return;
      met.add(id);
      world.kmsFails('unavailable', lastsMs);
    }),
  );
}

function kmsOutage(minutes: number): FaultClass {
  return (world) => nowAndThen(world, DAY, () => world.kmsFails('unavailable', minutes * MINUTE));
}

export const FAULT_CLASSES: Readonly<Record<string, FaultClass>> = Object.freeze({
  quiet: () => undefined,
  'kms-outage-hourly-10': (world) => {
    world.timeline.after(QUIET_MS, () => world.timeline.every(HOUR, () => world.kmsFails('unavailable', 10 * MINUTE)));
  },
  'kms-outage-30': kmsOutage(30),
  'kms-outage-44': kmsOutage(44),
  'kms-outage-58': kmsOutage(58),
  'kms-outage-at-rotation': (world) => outageAtRotation(world, -10 * MINUTE, 25 * MINUTE),
  // At its end, a member's wait ends at every moment.
  'kms-outage-until-rotation': (world) => outageAtRotation(world, -10 * MINUTE, 15 * MINUTE),
  'store-outage-30': (world) => nowAndThen(world, DAY, () => world.storeFails(30 * MINUTE)),
  'store-partition': (world) => {
    nowAndThen(world, 3 * HOUR, () => {
      const member = world.anyMember();
      if (member !== undefined) world.cut(member, 'store', HOUR);
    });
  },
  'kms-partition': (world) => {
    nowAndThen(world, 3 * HOUR, () => {
      const member = world.anyMember();
      if (member !== undefined) world.cut(member, 'kms', 43 * MINUTE);
    });
  },
  crash: (world) => {
    nowAndThen(world, 20 * MINUTE, () => {
      const member = world.anyToSpare();
      if (member !== undefined) world.crash(member, world.dice.between(SECOND, 10 * MINUTE));
    });
  },
  freeze: (world) => {
    nowAndThen(world, 3 * HOUR, () => {
      const member = world.anyToSpare();
      if (member !== undefined) world.freeze(member, HOUR);
    });
  },
  'clock-steps': (world) => {
    const half = (world.options.clockSkewSeconds * SECOND) / 2;
    nowAndThen(world, HOUR, () => {
      const member = world.anyMember();
      if (member !== undefined) world.setClock(member, world.dice.between(-half, half));
    });
  },
  'two-operators-rotate': (world, oracle) => {
    nowAndThen(world, 12 * HOUR, () => {
      operate(world, oracle, (codec) => codec.rotate());
      operate(world, oracle, (codec) => codec.rotate());
    });
  },
  emergency: (world, oracle) =>
    nowAndThen(world, DAY, () => operate(world, oracle, (codec) => codec.rotate({ emergency: true }))),
  revocation: (world, oracle) => nowAndThen(world, DAY, () => revokeSealingKey(world, oracle)),
  'revocation-at-partition': (world, oracle) => {
    nowAndThen(world, DAY, () => {
      const cut = world.anyMember();
      if (cut !== undefined) world.cut(cut, 'store', HOUR);
      world.timeline.after(5 * MINUTE, () => revokeSealingKey(world, oracle));
    });
  },
  'wrap-denied': (world) => {
    nowAndThen(world, 3 * DAY, () => world.wrapsFail(DAY));
  },
  'store-flush': (world) => {
    nowAndThen(world, 12 * HOUR, () => {
      if (world.anyToSpare() === undefined) return;
      world.store.flush();
      for (let i = 0; i < 3; i++) {
        const member = world.anyToSpare();
        if (member !== undefined) world.crash(member, world.dice.between(SECOND, 2 * MINUTE));
      }
    });
  },
  'store-failover': (world) => {
    nowAndThen(world, HOUR, () => world.store.failOver(world.dice.between(MINUTE, 2 * HOUR)));
  },
  'key-disabled': (world) => nowAndThen(world, 2 * DAY, () => world.kmsFails('disabled', 3 * HOUR)),
  'key-disabled-at-partition': (world) => {
    nowAndThen(world, 2 * DAY, () => {
      const member = world.anyMember();
      if (member !== undefined) world.cut(member, 'kms', 43 * MINUTE);
      world.timeline.after(10 * MINUTE, () => world.kmsFails('disabled', 3 * HOUR));
    });
  },
  flapping: (world) => {
    nowAndThen(world, 10 * MINUTE, () => {
      world.kmsFails('denied', world.dice.between(SECOND, 6 * SECOND));
    });
  },
  push: (world) => {
    world.store.pushes = true;
  },
  ...AIMED_FAULTS,
});
