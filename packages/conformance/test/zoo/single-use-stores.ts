import { setTimeout as pause } from 'node:timers/promises';
import { SingleUseStoreError } from '@sealring/core';
import type { SingleUseStoreLike, SingleUseTarget } from '../../src/index.ts';

/** A store with one fault, and the requirement that must catch it. */
export interface BrokenSingleUse {
  readonly target: SingleUseTarget;
  readonly caughtBy: string;
}

type Claim = (used: Map<string, number>, id: string, endMs: number) => Promise<boolean>;

const MARGIN_MS = 300_000;

/** A database in this process that remembers ids until `endMs` plus a margin. */
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

/** A sound store whose claims pass through a broken function. */
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
    target: zooSingleUse('returns the answer of SET', async (used, id, endMs) =>
      (await sound(used, id, endMs)) ? ('OK' as unknown as boolean) : false,
    ),
    caughtBy: 'USE-ANSWER',
  },
  {
    target: zooSingleUse('checks, then writes', async (used, id, endMs) => {
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
    target: zooSingleUse('treats a token with another end as another token', (used, id, endMs) =>
      sound(used, `${id} ${Math.round(endMs / 1_000)}`, endMs),
    ),
    caughtBy: 'USE-ONCE',
  },
  {
    target: zooSingleUse('compares ids without case', (used, id, endMs) => sound(used, id.toLowerCase(), endMs)),
    caughtBy: 'USE-SEPARATE',
  },
  {
    target: zooSingleUse('forgets ids at the end of the token', kept(0)),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('reports a larger margin than configured', sound, false, 86_400),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('remembers ids for only a minute more', kept(60_000)),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('grants ended tokens and forgets them at once', async (used, id, endMs) => {
      if (endMs <= Date.now()) return true;
      return sound(used, id, endMs);
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('ignores the end', async (used, id) => !used.has(id) && used.set(id, 0) === used),
    caughtBy: 'USE-PAST-END',
  },
  { target: zooSingleUse('grants claims in an outage', sound, true), caughtBy: 'USE-UNREACHABLE' },
  {
    target: zooSingleUse('remembers only a thousand ids', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      const [oldest = ''] = used.keys();
      if (used.size > 1_000) used.delete(oldest);
      return won;
    }),
    caughtBy: 'USE-MANY',
  },
  {
    target: zooSingleUse('rounds ends to whole seconds', async (used, id, endMs) => {
      const isOver = endMs + MARGIN_MS <= Date.now();
      return !isOver && sound(used, id, Math.max(Math.floor(endMs / 1_000) * 1_000, Date.now() - MARGIN_MS + 1));
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('replaces the end with that of the last claim', async (used, id, endMs) => {
      const won = await sound(used, id, endMs);
      used.set(id, endMs + MARGIN_MS);
      return won;
    }),
    caughtBy: 'USE-CLOCK-SKEW',
  },
  {
    target: zooSingleUse('looks up ids in an object', async (used, id, endMs) => !(id in {}) && sound(used, id, endMs)),
    caughtBy: 'USE-SEPARATE',
  },
  {
    target: zooSingleUse('remembers only a hundred ids', async (used, id, endMs) => {
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
    target: zooSingleUse('removes all ids with an expired one', async (used, id, endMs) => {
      if (endMs < Date.now()) used.clear();
      return sound(used, id, endMs);
    }),
    caughtBy: 'USE-PAST-END',
  },
  ...Object.entries({
    'confuses hyphens with underscores': (id: string) => id.replaceAll('-', '_'),
    'truncates ids to 128 characters': (id: string) => id.slice(0, 128),
    'truncates ids to 43 characters': (id: string) => id.slice(0, 43),
    'truncates ids at a colon': (id: string) => id.split(':')[0] ?? '',
    'trims an id': (id: string) => id.trim(),
    'decodes an id': (id: string) => id.replaceAll('%41', 'A'),
    'compares ids without accents': (id: string) => id.normalize('NFD').replaceAll(/\p{M}/gu, ''),
    'compares ids of digits as numbers': (id: string) => (Number.isFinite(Number(id)) ? String(Number(id)) : id),
    'uses only the last part of a path': (id: string) => id.split('/').at(-1) ?? '',
  }).map(([name, keyOf]) => ({
    target: zooSingleUse(name, (used, id, endMs) => sound(used, keyOf(id), endMs)),
    caughtBy: 'USE-SEPARATE',
  })),
  changed(
    'accepts any text as an id',
    'USE-ARGUMENTS',
    (claim) => (id, expiresAt) => claim(id.slice(0, 256), expiresAt),
  ),
  changed('accepts a number as a date', 'USE-ARGUMENTS', (claim) => (id, at) => claim(id, at && new Date(at))),
  changed(
    'stores claims in its connection',
    'USE-CLOSED',
    (claim, state) => async (id, expiresAt) => state.isClosed || claim(id, expiresAt),
  ),
  changed(
    'rejects with the driver’s error',
    'USE-ERROR',
    (claim) => (id, expiresAt) =>
      claim(id, expiresAt).catch((error: Error) => {
        throw error.name === 'SingleUseStoreError' ? new Error('ECONNREFUSED') : error;
      }),
  ),
  changed(
    'shows the id in an error',
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
  changed('rejects with the driver’s error after close', 'USE-ERROR', (claim, state) => async (id, expiresAt) => {
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
  changed('never recovers from an outage', 'USE-RECOVERS', (claim, state) => async (id, expiresAt) => {
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
