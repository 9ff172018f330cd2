import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';
import { afterAll, describe, expect, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { until } from '../support/until.ts';
import { Fleet, type Member } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';
import type { Calls } from './member-process.ts';

const MEMBERS = 20;
const RESTARTED = 5;
const FLUSHES = 100;
/** Well below createAfter: later, a starting member would be right to create a ring. */
const MOST_FLUSHING_MS = 10_000;
const key = 'sealring:fleet';

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
const url = redis?.address ?? 'redis://127.0.0.1:1';
const fleet = new Fleet({
  ring: { redis: url, key },
  kms: { masterKey: randomBytes(32).toString('hex') },
  // This is longer than the flushes below plus the time in which running members restore the ring: refreshEvery and up
  // to 5 s.
  policy: { ...fleetPolicy, createAfterSeconds: 20 },
});
afterAll(async () => {
  fleet.end();
  await redis?.stop();
});

async function command(...words: string[]): Promise<unknown> {
  const client = await createClient({ url }).connect();
  try {
    return await client.sendCommand(words);
  } finally {
    client.destroy();
  }
}

interface StoredKey {
  readonly id: string;
  readonly revoked?: string;
}

async function storedKeys(): Promise<readonly StoredKey[] | undefined> {
  const document = await command('HGET', key, 'document');
  if (typeof document !== 'string') return undefined;
  const { keys } = JSON.parse(document) as { keys: StoredKey[] };
  return keys;
}

async function storedKeyIds(): Promise<string[] | undefined> {
  return (await storedKeys())?.map(({ id }) => id);
}

/** Whether every member has these keys. */
async function haveAll(ids: readonly string[] | undefined): Promise<boolean> {
  const healths = await Promise.all(fleet.members.map((member) => member.tell('health', undefined)));
  return healths.every(({ keys }) => ids?.every((id) => keys.some((one) => one.id === id && one.held)));
}

type Statuses = ReadonlyMap<Member, Set<string>>;

/** Polls the health of all members while `run` takes; returns the members that reported a problem. */
async function statusesDuring(run: (said: Statuses) => Promise<void>): Promise<Statuses> {
  const said: Statuses = new Map(fleet.members.map((member) => [member, new Set()]));
  const done = new AbortController();
  const asking = (async (): Promise<void> => {
    while (!done.signal.aborted) {
      const asked = fleet.members.filter((member) => said.has(member));
      await Promise.all(
        asked.map(async (member) => said.get(member)?.add((await member.tell('health', undefined)).status)),
      );
      await pause(100);
    }
  })();
  try {
    await run(said);
  } finally {
    done.abort();
    await asking;
  }
  return said;
}

describe.skipIf(redis === undefined)(`${MEMBERS} processes on Redis`, () => {
  test('processes that start at the same time on an empty store create one ring with one key, and unseal every token that any of them seals (F8, F31)', async () => {
    await fleet.start(await fleet.fork(MEMBERS));
    expect(await storedKeyIds()).toHaveLength(1);
    await fleet.round();
    expect(fleet.failures).toEqual([]);
    expect(fleet.opened).toBeGreaterThanOrEqual(MEMBERS ** 2);
  });

  test('a store that is flushed for seconds under load, while members start, loses no token and keeps one ring (F31)', async () => {
    await fleet.members[0]?.tell('rotate', { emergency: false });
    const before = await storedKeyIds();
    expect(before).toHaveLength(2);
    await fleet.underLoad(async () => {
      const fresh = await fleet.fork(RESTARTED);
      // Every member must have read the new key: no member could write back a key that only the store had.
      await until(() => haveAll(before), 60);
      const starting: Promise<Calls[]>[] = [];
      const said = await statusesDuring(async (soFar) => {
        await command('FLUSHALL');
        starting.push(fleet.start(fresh));
        // Flush repeatedly, against the running members' repair: a starting member finds nothing for some seconds, and
        // each running one has read the store while it was empty.
        const end = performance.now() + MOST_FLUSHING_MS;
        const isNoticed = () => Array.from(soFar.values()).every((statuses) => statuses.has('degraded'));
        for (let flush = 0; flush < FLUSHES || (!isNoticed() && performance.now() < end); flush++) {
          await command('FLUSHALL');
          await pause(20);
        }
      });
      // Every running member noticed, reported it, and stayed ready for requests.
      expect(said.size).toBe(MEMBERS);
      for (const statuses of said.values()) {
        expect(statuses).toContain('degraded');
        expect(statuses).not.toContain('failing');
      }
      await fleet.stop(fleet.members.slice(0, RESTARTED));
      const calls = (await Promise.all(starting)).flat();
      expect(calls.map(({ generate, wrap }) => generate + wrap)).toEqual(Array.from(fresh, () => 0));
      // The test may have ended with a flush.
      await until(async () => (await storedKeyIds()) !== undefined, 30);
    });
    expect(await storedKeyIds()).toEqual(before);
    await fleet.openAllKept();
    expect(fleet.failures).toEqual([]);
    expect(fleet.members).toHaveLength(MEMBERS);
  });

  test('a store that falls back to a copy without the newest key, under load and with restarts, loses no token and gets the key back (F31)', async () => {
    const copy = await command('HMGET', key, 'document', 'revision');
    await fleet.members[0]?.tell('rotate', { emergency: false });
    const before = await storedKeyIds();
    expect(before).toHaveLength(3);
    await fleet.underLoad(async () => {
      await until(() => haveAll(before), 60);
      const fresh = await fleet.fork(RESTARTED);
      for (let failover = 0; failover < 3; failover++) {
        await fallBackTo(copy);
        if (failover === 1) await fleet.start(fresh);
        await until(async () => (await storedKeyIds())?.length === 3, 30);
        expect((await storedKeyIds())?.toSorted()).toEqual(before?.toSorted());
      }
      await fleet.stop(fleet.members.slice(0, RESTARTED));
      // Wait until the newest key seals, also at members that started from the copy.
      await until(() => before?.every((id) => fleet.sealingKeys.has(id)) === true, 60);
    });
    await fleet.openAllKept();
    expect(fleet.failures).toEqual([]);
    expect(fleet.sealingKeys).toEqual(new Set(before));
    expect(fleet.members).toHaveLength(MEMBERS);
  });

  test('a revocation survives a fallback of the store to an older copy, and the loss of everything in it (F31)', async () => {
    const copy = await command('HMGET', key, 'document', 'revision');
    const [revoker] = fleet.members;
    const sealed = await revoker?.tell('seal', ['revoked']);
    const token = sealed?.sealed[0]?.token ?? '';
    const revoked = token.slice(4, 16);
    await revoker?.tell('revoke', { keyId: revoked });
    const isRevoked = async () =>
      (await storedKeys())?.some((each) => each.id === revoked && each.revoked !== undefined);
    expect(await isRevoked()).toBe(true);
    const isKnownTo = async (member: Member) => {
      const { keys } = await member.tell('health', undefined);
      return keys.some(({ id, state }) => id === revoked && state === 'revoked');
    };
    await until(async () => (await Promise.all(fleet.members.map(isKnownTo))).every(Boolean), 30);
    for (const lose of [() => fallBackTo(copy), () => command('FLUSHALL')]) {
      await lose();
      expect(await isRevoked()).not.toBe(true);
      await until(async () => (await isRevoked()) === true, 30);
      expect(await isRevoked()).toBe(true);
      for (const member of fleet.members) {
        const outcome = await member.tell('open', [{ token, payload: 'revoked' }]);
        expect(outcome).toEqual([expect.stringContaining('unknown key')]);
      }
    }
    // A member that starts now reads the revocation.
    const [late] = await fleet.fork(1);
    await fleet.start(late === undefined ? [] : [late]);
    expect(await late?.tell('open', [{ token, payload: 'revoked' }])).toEqual([expect.stringContaining('unknown key')]);
    // Every member unseals new tokens.
    const fresh = await Promise.all(fleet.members.map((member, i) => member.tell('seal', [`after ${i}`])));
    expect(fresh.flatMap(({ failures }) => failures)).toEqual([]);
    const opened = fleet.members.map((member) =>
      member.tell(
        'open',
        fresh.flatMap((each) => each.sealed),
      ),
    );
    expect((await Promise.all(opened)).flat()).toEqual([]);
  });
});

/** Writes an older copy, as after a failover to a replica that lagged behind. */
async function fallBackTo(copy: unknown): Promise<void> {
  const [document, revision] = copy as readonly [string, string];
  await command('HSET', key, 'document', document, 'revision', revision);
}
