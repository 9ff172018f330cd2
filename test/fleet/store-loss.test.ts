import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';
import { afterAll, describe, expect, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { Fleet } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';

const MEMBERS = 20;
const RESTARTED = 5;
const FLUSHES = 30;
const key = 'sealring:fleet';

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
const url = redis?.address ?? 'redis://127.0.0.1:1';
const fleet = new Fleet({
  ring: { redis: url, key },
  masterKey: randomBytes(32).toString('hex'),
  // Longer than the flushes below, and than running members then take to heal: refreshEvery and a wait of up to 5 s.
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

async function storedKeyIds(): Promise<string[] | undefined> {
  const document = await command('HGET', key, 'document');
  if (typeof document !== 'string') return undefined;
  const { keys } = JSON.parse(document.split('\n')[0] ?? '') as { keys: { id: string }[] };
  return keys.map(({ id }) => id);
}

describe.skipIf(redis === undefined)(`${MEMBERS} processes on Redis`, { timeout: 180_000 }, () => {
  test('F8, F31: started at once on an empty store they found one ring with one key, and open what any of them seals', async () => {
    await fleet.start(await fleet.fork(MEMBERS));
    expect(await storedKeyIds()).toHaveLength(1);
    await fleet.round();
    expect(fleet.failures).toEqual([]);
    expect(fleet.opened).toBeGreaterThanOrEqual(MEMBERS ** 2);
  });

  test('F31: a store that is flushed for seconds under load, with members that start into it, loses no token and leaves one lineage', async () => {
    await fleet.members[0]?.tell('rotate', { emergency: false });
    const before = await storedKeyIds();
    expect(before).toHaveLength(2);
    await fleet.underLoad(async () => {
      const fresh = await fleet.fork(RESTARTED);
      // Everybody is to have read the new key: what only the store knew, nobody can write back.
      await pause(3_000);
      await command('FLUSHALL');
      const starting = fleet.start(fresh);
      // Again and again, against the running members' healing: who starts finds nothing for some seconds.
      for (let flush = 0; flush < FLUSHES; flush++) {
        await command('FLUSHALL');
        await pause(100);
      }
      await fleet.stop(fleet.members.slice(0, RESTARTED));
      const calls = await starting;
      expect(calls.map(({ generate, wrap }) => generate + wrap)).toEqual(Array.from(fresh, () => 0));
    });
    expect(await storedKeyIds()).toEqual(before);
    await fleet.openAllKept();
    expect(fleet.failures).toEqual([]);
    expect(fleet.members).toHaveLength(MEMBERS);
  });
});
