import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { Fleet, type Member } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';

const OTHERS = 3;
const HOUR = 3_600;
const DAY = 24 * HOUR;

/** A key lives for about a day: some of the wrong times are within its life, some are beyond it. */
const policy = {
  ...fleetPolicy,
  sealOutageSeconds: 8,
  propagationSeconds: 11,
  rotateEverySeconds: DAY,
  createAfterSeconds: 2,
};

const directory = mkdtempSync(join(tmpdir(), 'sealring-clocks-'));
const path = join(directory, 'payments.ring');
let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
const url = redis?.address ?? '';
const key = 'sealring:clocks';
afterAll(async () => {
  await redis?.stop();
  rmSync(directory, { recursive: true, force: true });
});

interface StoredKey {
  readonly id: string;
  readonly created: string;
  readonly activates: string;
  readonly revoked?: unknown;
}

async function documentInRedis(): Promise<string> {
  const client = await createClient({ url }).connect();
  try {
    return (await client.hGet(key, 'document')) ?? '';
  } finally {
    client.destroy();
  }
}

const threeDays = { ahead: 'three days', seconds: 3 * DAY };
const fourteenHours = { ahead: '14 hours', seconds: 14 * HOUR };
const aYear = { ahead: 'a year', seconds: 365 * DAY };
const eightHours = { ahead: '8 hours', seconds: 8 * HOUR };

describe.each([
  {
    store: 'Redis, which has a clock',
    isThere: redis !== undefined,
    ring: { redis: url, key },
    document: documentInRedis,
    cases: [threeDays, fourteenHours, aYear, eightHours],
  },
  {
    store: 'a file, which has no clock',
    isThere: true,
    ring: { file: path },
    document: () => readFile(path, 'utf8'),
    cases: [threeDays, eightHours],
  },
])('four servers on $store, one of them with a wrong clock for two seconds', ({ isThere, ring, document, cases }) => {
  const order = { ring, kms: { masterKey: randomBytes(32).toString('hex') }, policy };
  const fleet = new Fleet(order);
  let culprit: Member;

  beforeAll(async () => {
    if (!isThere) return;
    await fleet.start(await fleet.fork(OTHERS));
    // The server with the wrong clock gets no requests: its own results in that time are not tested.
    const [forked] = await fleet.fork(1);
    if (forked === undefined) throw new Error('no member was started');
    culprit = forked;
    await culprit.tell('start', { ...order, hasOwnClock: true });
  });
  afterAll(() => fleet.end());

  async function storedKeys(): Promise<readonly StoredKey[]> {
    return (JSON.parse(await document()) as { keys: StoredKey[] }).keys;
  }

  async function storedKeyIds(): Promise<string[]> {
    return (await storedKeys()).map(({ id }) => id);
  }

  /** Repeats rounds of all other members until `condition` holds. */
  async function roundsUntil(condition: () => Promise<boolean>, seconds = 30): Promise<void> {
    const end = performance.now() + seconds * 1_000;
    for (;;) {
      await fleet.round();
      if (await condition()) return;
      if (performance.now() > end) throw new Error(`not within ${seconds} s: ${String(condition)}`);
    }
  }

  test.skipIf(!isThere).each(cases)(
    'a server $ahead ahead reports the problem and destroys nothing, and the others continue',
    async ({ seconds }) => {
      // A propagating key could be destroyed too.
      await fleet.members[0]?.tell('rotate', { emergency: false });
      const before = await storedKeyIds();
      await roundsUntil(async () => (await culprit.tell('health', undefined)).keys.length === before.length);

      const { reads } = await culprit.tell('storeCalls', undefined);
      const began = performance.now();
      await culprit.tell('setClock', { aheadSeconds: seconds });
      // Its requested operations fail, and its own, at every read, harm no other server.
      const asked = await Promise.allSettled([culprit.tell('rotate', { emergency: false })]);
      await roundsUntil(async () => {
        const { problems } = await culprit.tell('health', undefined);
        expect(problems).toContain('clock');
        const calls = await culprit.tell('storeCalls', undefined);
        return calls.reads >= reads + 4 && performance.now() - began >= 2_000;
      });
      await culprit.tell('setClock', { aheadSeconds: 0 });
      await roundsUntil(async () => (await culprit.tell('health', undefined)).status === 'ok');
      expect((await culprit.tell('health', undefined)).problems).toEqual([]);
      expect(asked).toMatchObject([
        { status: 'rejected', reason: { message: expect.stringContaining('nothing is published') } },
      ]);

      // The store holds what it held before, and nothing else.
      const after = await storedKeys();
      expect(after.map(({ id }) => id)).toEqual(before);
      const latestMs = Date.now() + policy.clockSkewSeconds * 1_000;
      for (const { created, activates, revoked } of after) {
        expect(revoked).toBeUndefined();
        expect(Date.parse(created)).toBeLessThanOrEqual(latestMs);
        expect(Date.parse(activates)).toBeLessThanOrEqual(latestMs + policy.propagationSeconds * 1_000);
      }
      for (const member of [...fleet.members, culprit]) {
        const { keys, ready } = await member.tell('health', undefined);
        expect(ready).toBe(true);
        expect(keys.map(({ id }) => id).toSorted()).toEqual(before.toSorted());
      }
      // No server refused a token of another at any time.
      expect(fleet.failures).toEqual([]);
    },
  );

  test.skipIf(!isThere)('all servers, and one that starts later, continue with one ring', async () => {
    await culprit.tell('rotate', { emergency: false });
    const ids = await storedKeyIds();
    await fleet.start(await fleet.fork(1));
    fleet.members.push(culprit);
    const newest = ids.at(-1) ?? '';
    await roundsUntil(async () => fleet.sealingKeys.has(newest), 60);
    await fleet.openAllKept();
    expect(fleet.failures).toEqual([]);
    expect(await storedKeyIds()).toEqual(ids);
  });
});
