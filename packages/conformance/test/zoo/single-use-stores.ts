import { setTimeout as pause } from 'node:timers/promises';
import type { SingleUseStoreLike, SingleUseTarget } from '../../src/index.ts';

/** A store with one fault, and the requirement that has to catch it. */
export interface BrokenSingleUse {
  readonly target: SingleUseTarget;
  readonly caughtBy: string;
}

type Claim = (used: Map<string, number>, id: string, endMs: number) => Promise<boolean>;

const MARGIN_MS = 300_000;

/** A database in this process that remembers until `endMs`, and a margin longer. */
function kept(marginMs: number): Claim {
  return async (used, id, endMs) => {
    const now = Date.now();
    if ((used.get(id) ?? 0) > now || endMs + marginMs <= now) return false;
    used.set(id, endMs + marginMs);
    return true;
  };
}

const sound = kept(MARGIN_MS);

export function zooSingleUse(
  name: string,
  claim: Claim = sound,
  answersWhenDown = false,
  toldSeconds: number = MARGIN_MS / 1_000,
): SingleUseTarget {
  const used = new Map<string, number>();
  let isDown = false;
  const store: SingleUseStoreLike = {
    clockSkewSeconds: toldSeconds,
    async claim(id, expiresAt) {
      await pause(1);
      if (isDown && !answersWhenDown) throw new Error('down');
      return isDown || claim(used, id, expiresAt.getTime());
    },
  };
  const breakConnection = async () => {
    isDown = true;
    return () => void (isDown = false);
  };
  return { name, create: () => ({ store }), breakConnection };
}

export const BROKEN_SINGLE_USE: readonly BrokenSingleUse[] = [
  {
    target: zooSingleUse('answers with what SET answers', async (used, id, endMs) =>
      (await sound(used, id, endMs)) ? ('OK' as unknown as boolean) : false,
    ),
    caughtBy: 'USE-ANSWER',
  },
  {
    target: zooSingleUse('looks, and then writes', async (used, id, endMs) => {
      if (used.has(id)) return false;
      await pause(1);
      return sound(new Map(), id, endMs).then((won) => {
        used.set(id, endMs + MARGIN_MS);
        return won;
      });
    }),
    caughtBy: 'USE-ONE-WINNER',
  },
  {
    target: zooSingleUse('takes a token with another end for another token', (used, id, endMs) =>
      sound(used, `${id} ${Math.round(endMs / 1_000)}`, endMs),
    ),
    caughtBy: 'USE-ONCE',
  },
  {
    target: zooSingleUse('compares ids without case', (used, id, endMs) => sound(used, id.toLowerCase(), endMs)),
    caughtBy: 'USE-SEPARATE',
  },
  {
    target: zooSingleUse('remembers to the end of the token', kept(0)),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('reports a larger margin than it was given', sound, false, 86_400),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('remembers a minute longer', kept(60_000)),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('grants ended tokens, and forgets them at once', async (used, id, endMs) => {
      if (endMs <= Date.now()) return true;
      return sound(used, id, endMs);
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('knows no end', async (used, id) => !used.has(id) && used.set(id, 0) === used),
    caughtBy: 'USE-PAST-END',
  },
  { target: zooSingleUse('accepts what it cannot check', sound, true), caughtBy: 'USE-UNREACHABLE' },
  {
    target: {
      name: 'never closes',
      create: () => ({ store: { claim: async () => true, close: () => new Promise<void>(() => undefined) } }),
    },
    caughtBy: 'USE-INSTANCE-CLOSES',
  },
];
