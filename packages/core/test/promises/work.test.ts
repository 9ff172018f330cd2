import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Draws } from '../support/draws.ts';
import { FaultKms } from '../support/fault-kms.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const MISS_REFRESH = 10;

/** The calls to services during a run of a fleet. */
interface Work {
  readonly kmsCalls: number;
  readonly reads: number;
}

describe('notifications by an attacker who can send them (F45)', () => {
  /** A fleet of three for a while, with this many notifications in each second; returns the calls after each second. */
  async function notified(
    perSecond: number,
    seconds: number,
    everySecond: (members: readonly Member[], second: number) => Promise<void> = async () => undefined,
    trouble: (fleet: Fleet, members: readonly Member[]) => Promise<void> = async () => undefined,
  ): Promise<Work> {
    const fleet = new Fleet();
    const members = await fleet.startAll(3, { random: new Draws(0.5).random });
    await trouble(fleet, members);
    const { reads } = fleet.store;
    const { total } = fleet.kms;
    for (let second = 0; second < seconds; second++) {
      for (let i = 0; i < perSecond; i++) {
        fleet.store.notify();
        if (i % 25 === 0) await Promise.resolve();
      }
      await fleet.clock.advance(1);
      await everySecond(members, second);
    }
    const work = { kmsCalls: fleet.kms.total - total, reads: fleet.store.reads - reads };
    await fleet.close();
    return work;
  }

  test('200 000 notifications cause one read per missRefresh per member, no KMS call and no delayed seal', async () => {
    const seconds = 2_000;
    const calm = await notified(0, seconds);
    const flooded = await notified(100, seconds, async (members) => {
      for (const from of members) expect(open(from, seal(from))).toBe('state');
    });
    expect(flooded.kmsCalls).toBe(calm.kmsCalls);
    expect(flooded.reads).toBeLessThanOrEqual(3 * (seconds / MISS_REFRESH + 1));
  });

  test('an attacker’s notifications cause no extra calls to a failing KMS, whether a check or a key is pending', async () => {
    for (const kind of ['unavailable', 'denied'] as const) {
      const away = async (fleet: Fleet, [a]: readonly Member[]): Promise<void> => {
        await fleet.clock.advance(600);
        const rotated = a?.codec.rotate({ emergency: true });
        await fleet.clock.advance(1);
        await rotated;
        fleet.kms.failing = kind;
      };
      const calm = await notified(0, 1_500, undefined, away);
      const flooded = await notified(10, 1_500, undefined, away);
      expect(calm.kmsCalls).toBeGreaterThan(20);
      expect(flooded.kmsCalls).toBeLessThanOrEqual(1.05 * calm.kmsCalls);
    }
  });

  test('an attacker’s notifications do not prevent a member from making its KMS check when the check is due', async () => {
    await notified(100, 4_000, async (members, second) => {
      if (second % 100 > 0) return;
      for (const { codec } of members) {
        const { lastKmsCheck, ready } = codec.health();
        expect(ready).toBe(true);
        expect(lastKmsCheck?.getTime()).toBeGreaterThan(0);
      }
    });
    const fleet = new Fleet();
    const a = await fleet.start();
    for (let second = 0; second < 4_000; second++) {
      fleet.store.notify();
      await fleet.clock.advance(1);
      const age = fleet.clock.wallMs() - (a.codec.health().lastKmsCheck?.getTime() ?? 0);
      expect(age).toBeLessThanOrEqual(901_000);
    }
    await fleet.close();
  });

  test('an attacker’s notifications do not delay a revocation, at a store that takes three seconds for each read', async () => {
    const fleet = new Fleet();
    const inner = fleet.store.connect();
    const slow = {
      ...inner,
      read: async (options?: Parameters<typeof inner.read>[0]) => {
        await pause(fleet.clock, 3_000);
        return inner.read(options);
      },
    };
    const a = await fleet.start({ ring: slow, random: new Draws(0.5).random });
    const notifiedFor = async (seconds: number): Promise<void> => {
      for (let i = 0; i < 1_000; i++) fleet.store.notify();
      await fleet.clock.advance(seconds);
    };
    // Any pass in progress, and the waiting one: a notification causes one every ten seconds.
    for (let phase = 0; phase < 12; phase++) {
      for (let second = 0; second < 10 + phase; second++) await notifiedFor(1);
      const token = seal(a);
      const reading = a.codec.refresh();
      for (let i = 0; i < 5; i++) await notifiedFor(0.5);
      const progress = { isDone: false };
      const revoked = a.codec.revoke(token.slice(4, 16)).then(() => {
        progress.isDone = true;
      });
      let seconds = 0;
      for (; !progress.isDone && seconds < 60; seconds += 0.5) await notifiedFor(0.5);
      await Promise.all([revoked, reading]);
      // The rest of two reads that were in progress before it, and its own.
      expect(seconds).toBeLessThanOrEqual(6.5);
      expect(open(a, token)).toBe('InvalidRequestState: unknown key');
    }
    await fleet.close();
  });
});

describe('forged tokens (F46)', () => {
  interface Services {
    readonly fleet: Fleet;
    readonly clouds: readonly FaultKms[];
    readonly other: Member;
  }
  /** The state of the services during the tokens, and the number of clouds. */
  interface State {
    readonly clouds: number;
    readonly before?: (services: Omit<Services, 'other'>) => void;
    readonly begin?: (services: Services) => void | Promise<void>;
  }
  const all =
    (failing: FaultKms['failing']): Exclude<State['begin'], undefined> =>
    ({ clouds }) => {
      for (const kms of clouds) kms.failing = failing;
    };
  const first = ({ clouds }: Pick<Services, 'clouds'>): FaultKms => clouds[0] as FaultKms;
  const second = ({ clouds }: Pick<Services, 'clouds'>): FaultKms => clouds[1] as FaultKms;

  const states: Record<string, State> = {
    works: { clouds: 1 },
    throttles: { clouds: 1, begin: all('throttled') },
    'is out of reach': { clouds: 1, begin: all('unavailable') },
    hangs: { clouds: 1, begin: (services) => void (first(services).hanging = true) },
    refuses: { clouds: 1, begin: all('denied') },
    'has the key disabled': { clouds: 1, begin: all('disabled') },
    'throttles, and a new key has appeared': {
      clouds: 1,
      begin: async (services) => {
        await services.other.codec.rotate();
        await all('throttled')(services);
      },
    },
    'refuses only a new key': {
      clouds: 1,
      begin: async (services) => {
        await services.other.codec.rotate();
        const document = (await services.fleet.store.document()) ?? '';
        const [, added] = parseDocument(document, 'default').entries;
        first(services).refused = added?.wraps[0]?.wrapped;
      },
    },
    'is down, and all keys are revoked': {
      clouds: 1,
      begin: async (services) => {
        await services.other.codec.revokeAllBefore(new Date(services.fleet.clock.wallMs()));
        await all('unavailable')(services);
      },
    },
    'works, and the store is down': { clouds: 1, begin: ({ fleet }) => void (fleet.store.down = true) },
    'consists of two clouds, one of which is down': {
      clouds: 2,
      begin: (services) => void (second(services).failing = 'unavailable'),
    },
    'consists of two clouds, one of which refuses': {
      clouds: 2,
      begin: (services) => void (second(services).failing = 'denied'),
    },
    'consists of two clouds, one of which was down when the key was made': {
      clouds: 2,
      before: (services) => void (second(services).failing = 'unavailable'),
    },
    'consists of two clouds, and both are down': { clouds: 2, begin: all('unavailable') },
  };

  /** The calls of one member in 40 minutes, with this many tokens in each second. */
  async function worked({ clouds: count, before, begin }: State, perSecond: number): Promise<Work> {
    const fleet = new Fleet();
    const clouds = [new FaultKms(), new FaultKms()].slice(0, count);
    const calls = { made: 0 };
    const wrappers = (counted: { made: number }): KeyWrapper[] =>
      clouds.map((kms, i) => {
        const inner = kms.connect(`cloud-${i}`);
        return {
          ...inner,
          generate: async (options) => {
            counted.made += 1;
            const made = await inner.generate?.(options);
            if (made === undefined) throw new Error('this key wrapper generates nothing');
            return made;
          },
          unwrap: (...given) => {
            counted.made += 1;
            return inner.unwrap(...given);
          },
          wrap: (...given) => {
            counted.made += 1;
            return inner.wrap(...given);
          },
        };
      });
    before?.({ fleet, clouds });
    const ring = fleet.store.connectUnwatched();
    const random = new Draws(0.5).random;
    const member = await fleet.start({ keyWrapper: wrappers(calls), wrapQuorum: 1, random, ring });
    const other = await fleet.start({ keyWrapper: wrappers({ made: 0 }), wrapQuorum: 1 });
    const valid = seal(member);
    await begin?.({ fleet, clouds, other });
    await other.codec.close();
    // It reads once more by itself, and then knows all facts: only calls by the tokens are counted.
    await fleet.clock.advance(400);
    const since = { calls: calls.made, reads: fleet.store.reads };
    for (let i = 0; i < 2_400; i++) {
      for (let n = 0; n < perSecond; n++) {
        const token = `sr1.${randomBytes(9).toString('base64url')}${valid.slice(16)}`;
        if (n === 0) member.codec.prepare(token)?.catch(() => undefined);
        expect(open(member, token)).toBe('InvalidRequestState: unknown key');
      }
      await fleet.clock.advance(1);
    }
    const work = { kmsCalls: calls.made - since.calls, reads: fleet.store.reads - since.reads };
    await fleet.close();
    return work;
  }

  for (const [title, state] of Object.entries(states)) {
    test(`forged tokens cause no KMS call and few reads while the KMS ${title}`, async () => {
      const without = await worked(state, 0);
      const hostile = await worked(state, 5);
      expect(hostile.kmsCalls).toBe(without.kmsCalls);
      expect(hostile.reads).toBeLessThanOrEqual(without.reads + 2_400 / MISS_REFRESH + 1);
    });
  }
});
