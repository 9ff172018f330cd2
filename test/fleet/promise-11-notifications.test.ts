import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { migrate } from '@sealring/postgres';
import { Client } from 'pg';
import { createClient } from 'redis';
import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { until } from '../support/until.ts';
import { Fleet, type Member } from './fleet.ts';
import type { RingPlace } from './member-ring.ts';

const MEMBERS = 3;
const NOTIFICATIONS = 100_000;

/** Rare reads, so that notifications cause any further read; KMS checks that are always due. */
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 60,
  backoffCapSeconds: 5,
  kmsCheckEverySeconds: 2,
  sealOutageSeconds: 8,
  storeOutageSeconds: 600,
  propagationSeconds: 129,
  rotateEverySeconds: 3_600,
  tokenLifetimeSeconds: 600,
  createAfterSeconds: 2,
  missRefreshSeconds: 1,
  kmsTimeoutSeconds: 2,
};
/** The time of a revocation that waits only for its own calls. */
const CALLS_SECONDS = 4 * policy.kmsTimeoutSeconds;
/** The time when no member seals with the key any longer. */
const LAST_SEAL_SECONDS = policy.refreshEverySeconds + policy.backoffCapSeconds + CALLS_SECONDS;

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
let postgres: TestServer | undefined;
await startOrSkip(async () => {
  postgres = await startPostgres();
  return postgres;
});
afterAll(async () => {
  await redis?.stop();
  await postgres?.stop();
});

/**
 * The effect of a flood of notifications on a fleet. `flood` resolves when the server has accepted them all; deliveries
 * and the members' reads may come later.
 */
async function judgeFlood(context: TestContext, ring: RingPlace, flood: () => Promise<void>): Promise<void> {
  const fleet = new Fleet({ ring, kms: { masterKey: randomBytes(32).toString('hex') }, policy });
  context.onTestFinished(() => fleet.end());
  await fleet.start(await fleet.fork(MEMBERS));
  const [revoker] = fleet.members as [Member];
  const reads = async (member: Member): Promise<number> => (await member.tell('storeCalls', undefined)).reads;
  const healths = () => Promise.all(fleet.members.map((member) => member.tell('health', undefined)));
  // Push works if every member has a key long before its next refresh.
  await revoker.tell('rotate', { emergency: false });
  await until(async () => (await healths()).every(({ keys }) => keys.length === 2), 20);

  // No token is unsealed: one with an unknown key causes a read too.
  const failures: string[] = [];
  const load = new AbortController();
  const sealing = Promise.all(
    fleet.members.map(async (member) => {
      while (!load.signal.aborted) {
        failures.push(...(await member.tell('seal', [member.name])).failures);
        await pause(20);
      }
    }),
  );

  const before = await Promise.all(fleet.members.map(reads));
  const began = performance.now();
  const flooding = flood();
  const revocationSeconds: number[] = [];
  // One revocation during the flood, and one after it.
  for (const wait of [pause(300), flooding]) {
    await wait;
    const keyId = (await revoker.tell('health', undefined)).sealingKey ?? '';
    const asked = performance.now();
    await revoker.tell('revoke', { keyId });
    revocationSeconds.push((performance.now() - asked) / 1_000);
    await until(async () => (await healths()).every(({ sealingKey }) => sealingKey !== keyId), LAST_SEAL_SECONDS);
  }
  // No member depends on a KMS check from before.
  const seconds = policy.sealOutageSeconds + policy.kmsCheckEverySeconds;
  await until(async () => performance.now() - began > 1_000 * seconds, 2 * seconds);
  const after = await Promise.all(fleet.members.map(reads));
  const elapsed = (performance.now() - began) / 1_000;
  const statuses = (await healths()).map(({ status }) => status);
  load.abort();
  await sealing;

  expect(revocationSeconds.filter((each) => each >= CALLS_SECONDS)).toEqual([]);
  expect(failures).toEqual([]);
  expect(statuses).toEqual(fleet.members.map(() => 'ok'));
  // Two reads by the timer, one for each new key, and two for each revocation by the member itself.
  const ownReads = 2 + 2 + 2 * 2;
  const most = Math.ceil(elapsed / policy.missRefreshSeconds) + 1 + ownReads;
  for (const [i, count] of after.entries()) {
    expect(count - (before[i] ?? 0)).toBeGreaterThan(0);
    expect(count - (before[i] ?? 0)).toBeLessThanOrEqual(most);
  }
}

describe(`${NOTIFICATIONS} notifications by a client with no other permission (F45)`, () => {
  const sentence = 'cause at most one read per missRefresh per member, and delay no revocation and no KMS check';

  test.skipIf(redis === undefined)(`${sentence}, in Redis, from a user with +publish only`, async (context) => {
    const url = redis?.address ?? '';
    const key = 'sealring:flood';
    const admin = await createClient({ url }).connect();
    context.onTestFinished(() => admin.destroy());
    await admin.sendCommand(['ACL', 'SETUSER', 'noisy', 'on', '>noisy', 'resetkeys', '&*', '-@all', '+publish']);
    const noisy = createClient({ url: url.replace('redis://', 'redis://noisy:noisy@'), disableClientInfo: true });
    await noisy.connect();
    context.onTestFinished(() => noisy.destroy());
    await expect(noisy.get(key)).rejects.toThrow('NOPERM');
    await judgeFlood(context, { redis: url, key }, async () => {
      for (let sent = 0; sent < NOTIFICATIONS; sent += 1_000) {
        await Promise.all(Array.from({ length: 1_000 }, (_, i) => noisy.publish(key, `${sent + i}`)));
      }
    });
  });

  test.skipIf(postgres === undefined)(
    `${sentence}, in PostgreSQL, from a role without permissions, in one statement`,
    async (context) => {
      const postgresUrl = postgres?.address ?? '';
      const name = 'flood';
      const admin = new Client({ connectionString: postgresUrl });
      await admin.connect();
      context.onTestFinished(() => admin.end());
      await migrate(admin);
      await admin.query('CREATE ROLE noisy LOGIN');
      await admin.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
      const noisy = new Client({ connectionString: postgresUrl.replace('app@', 'noisy@') });
      await noisy.connect();
      context.onTestFinished(() => noisy.end());
      await expect(noisy.query('SELECT document FROM sealring_ring')).rejects.toThrow('does not exist');
      const channel = `sealring_${createHash('sha256').update(`"sealring_ring"\0${name}`).digest('hex').slice(0, 32)}`;
      await judgeFlood(context, { postgres: postgresUrl, name }, async () => {
        // The texts differ, because PostgreSQL merges equal notifications of one transaction.
        await noisy.query('SELECT pg_notify($1, n::text) FROM generate_series(1, $2::int) AS n', [
          channel,
          NOTIFICATIONS,
        ]);
      });
    },
  );
});
