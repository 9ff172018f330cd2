import { setTimeout as pause } from 'node:timers/promises';
import { SingleUseStoreError } from '@sealring/core';
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
      if (typeof id !== 'string' || !(expiresAt instanceof Date)) throw new TypeError('id and expiresAt');
      if (id === '' || id.length > 256 || Number.isNaN(expiresAt.getTime())) throw new RangeError('id or expiresAt');
      const endMs = expiresAt.getTime();
      await pause(1);
      if (isDown && !answersWhenDown) throw new SingleUseStoreError('unavailable', 'no answer');
      return isDown || claim(used, id, endMs);
    },
  };
  const breakConnection = async () => {
    isDown = true;
    return () => void (isDown = false);
  };
  return { name, create: () => ({ store }), breakConnection };
}

type ClaimOf = SingleUseStoreLike['claim'];

/** A sound store whose claims go through something. */
function changed(
  name: string,
  caughtBy: string,
  change: (claim: ClaimOf, state: { isClosed: boolean; isLost: boolean; failures: number }) => ClaimOf,
): BrokenSingleUse {
  const target = zooSingleUse(name);
  const create = async () => {
    const { store } = await target.create();
    const state = { isClosed: false, isLost: false, failures: 0 };
    const claim = change((id, expiresAt) => store.claim(id, expiresAt), state);
    return { store: { claim, close: async () => void (state.isClosed = true) } };
  };
  return { target: { ...target, create }, caughtBy };
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
    target: zooSingleUse('remembers a thousand ids', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      const [oldest = ''] = used.keys();
      if (used.size > 1_000) used.delete(oldest);
      return won;
    }),
    caughtBy: 'USE-MANY',
  },
  {
    target: zooSingleUse('remembers whole seconds', async (used, id, endMs) => {
      const isOver = endMs + MARGIN_MS <= Date.now();
      return !isOver && sound(used, id, Math.max(Math.floor(endMs / 1_000) * 1_000, Date.now() - MARGIN_MS + 1));
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('remembers to the end that was claimed last', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      used.set(id, endMs + MARGIN_MS);
      return won;
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('finds ids in an object', async (used, id, endMs) => !(id in {}) && sound(used, id, endMs)),
    caughtBy: 'USE-SEPARATE',
  },
  {
    target: zooSingleUse('remembers a hundred ids', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      const [oldest = ''] = used.keys();
      if (used.size > 100) used.delete(oldest);
      return won;
    }),
    caughtBy: 'USE-MANY',
  },
  {
    target: zooSingleUse('sets a timer that is too long', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      if (endMs - Date.now() > 2 ** 31) used.delete(id);
      return won;
    }),
    caughtBy: 'USE-ONCE',
  },
  {
    target: zooSingleUse('removes everything with what has ended', async (used, id, endMs) => {
      if (endMs < Date.now()) used.clear();
      return sound(used, id, endMs);
    }),
    caughtBy: 'USE-PAST-END',
  },
  ...Object.entries({
    'takes a hyphen for an underscore': (id: string) => id.replaceAll('-', '_'),
    'takes 128 characters of an id': (id: string) => id.slice(0, 128),
    'takes 43 characters of an id': (id: string) => id.slice(0, 43),
    'takes an id to its colon': (id: string) => id.split(':')[0] ?? '',
    'trims an id': (id: string) => id.trim(),
    'decodes an id': (id: string) => id.replaceAll('%41', 'A'),
    'compares ids without accents': (id: string) => id.normalize('NFD').replaceAll(/\p{M}/gu, ''),
    'takes an id of digits for a number': (id: string) => (Number.isFinite(Number(id)) ? String(Number(id)) : id),
    'takes the last part of a path': (id: string) => id.split('/').at(-1) ?? '',
  }).map(([name, keyOf]) => ({
    target: zooSingleUse(name, (used, id, endMs) => sound(used, keyOf(id), endMs)),
    caughtBy: 'USE-SEPARATE',
  })),
  changed(
    'takes any text for an id',
    'USE-ARGUMENTS',
    (claim) => (id, expiresAt) => claim(id.slice(0, 256), expiresAt),
  ),
  changed('takes a number for a date', 'USE-ARGUMENTS', (claim) => (id, at) => claim(id, at && new Date(at))),
  changed(
    'keeps what it claimed in its connection',
    'USE-CLOSED',
    (claim, state) => async (id, expiresAt) => state.isClosed || claim(id, expiresAt),
  ),
  changed(
    'throws what the driver threw',
    'USE-ERROR',
    (claim) => (id, expiresAt) =>
      claim(id, expiresAt).catch((error: Error) => {
        throw error.name === 'SingleUseStoreError' ? new Error('ECONNREFUSED') : error;
      }),
  ),
  changed(
    'says which id it could not claim',
    'USE-ERROR',
    (claim) => (id, expiresAt) =>
      claim(id, expiresAt).catch((error: Error) => {
        throw error.name === 'SingleUseStoreError'
          ? new SingleUseStoreError('unavailable', `no answer for ${id}`)
          : error;
      }),
  ),
  changed('reads the date late', 'USE-CALLERS-DATE', (claim) => async (id, expiresAt) => {
    await pause(1);
    return claim(id, expiresAt);
  }),
  changed('throws what the driver throws after close', 'USE-ERROR', (claim, state) => async (id, expiresAt) => {
    if (state.isClosed) throw new Error('the client is closed');
    return claim(id, expiresAt);
  }),
  changed(
    'grants everything after three failures',
    'USE-UNREACHABLE',
    (claim, state) => async (id, expiresAt) =>
      claim(id, expiresAt).catch((error: Error) => {
        state.failures += 1;
        if (state.failures > 3 && error.name === 'SingleUseStoreError') return true;
        throw error;
      }),
  ),
  changed('stays out of reach', 'USE-RECOVERS', (claim, state) => async (id, expiresAt) => {
    if (state.isLost) throw new SingleUseStoreError('unavailable', 'no connection');
    return claim(id, expiresAt).catch((error: Error) => {
      state.isLost = error.name === 'SingleUseStoreError';
      throw error;
    });
  }),
  {
    target: {
      name: 'never closes',
      create: () => ({ store: { claim: async () => true, close: () => new Promise<void>(() => undefined) } }),
    },
    caughtBy: 'USE-INSTANCE-CLOSES',
  },
];
