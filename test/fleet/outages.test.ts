import { setTimeout as pause } from 'node:timers/promises';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

/** Number of members. Use SEALRING_MEMBERS=50 only on a machine with enough cores: each call has one second. */
const MEMBERS = Number(process.env['SEALRING_MEMBERS'] ?? 20);
const AT_A_TIME = 5;
const KEY = 'sealring:outages';

/**
 * The defaults divided by about 225: an outage of half of sealOutage represents 30 minutes. A machine with fifty
 * processes on it is slow, so the calls and the backoff are not scaled.
 */
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 2,
  sealOutageSeconds: 16,
  storeOutageSeconds: 60,
  propagationSeconds: 19,
  rotateEverySeconds: 80,
  tokenLifetimeSeconds: 120,
  kmsTimeoutSeconds: 1,
  // A restarted store is not an empty one; nor is a store that reports itself empty for a moment.
  createAfterSeconds: 5,
};
const OUTAGE_SECONDS = policy.sealOutageSeconds / 2;
/** The time from a key's activation to the publication of its successor. */
const ROTATE_AFTER_SECONDS = policy.rotateEverySeconds - policy.propagationSeconds;

let redis: TestServer | undefined;
await startOrSkip(async () => {
  // Keeps every acknowledged write through any restart.
  redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
  return redis;
});
const moto = inject('moto');

let kms: TcpProxy;
let fleet: Fleet;
beforeAll(async () => {
  if (redis === undefined || moto === '') return;
  kms = await startTcpProxy(Number(new URL(moto).port));
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const admin = new KMSClient({ endpoint: moto, region: 'us-east-1', credentials });
  const { KeyMetadata } = await admin.send(new CreateKeyCommand({}));
  admin.destroy();
  fleet = new Fleet({
    ring: { redis: redis.address, key: KEY },
    kms: { endpoint: `http://${kms.host}:${kms.port}`, keyId: KeyMetadata?.Arn ?? '' },
    policy,
  });
});
afterAll(async () => {
  fleet?.end();
  await kms?.close();
  await redis?.stop();
});

interface StoredKey {
  readonly id: string;
  readonly activates: string;
  readonly revoked?: string;
}

async function storedKeys(): Promise<readonly StoredKey[]> {
  const client = await createClient({ url: redis?.address ?? '' }).connect();
  try {
    const document: unknown = await client.sendCommand(['HGET', KEY, 'document']);
    if (typeof document !== 'string') return [];
    const { keys } = JSON.parse(document) as { keys: StoredKey[] };
    return keys;
  } finally {
    client.destroy();
  }
}

/** Seconds until the successor of the newest key is due. */
async function secondsUntilRotation(): Promise<number> {
  const activations = (await storedKeys()).map(({ activates }) => Date.parse(activates));
  return (Math.max(...activations) - Date.now()) / 1_000 + ROTATE_AFTER_SECONDS;
}

function healthOfAll() {
  return Promise.all(fleet.members.map((member) => member.tell('health', undefined)));
}

/** Replaces every member by a new process, some at a time. */
async function rollingDeploy(): Promise<void> {
  const old = [...fleet.members];
  for (let i = 0; i < old.length; i += AT_A_TIME) {
    const fresh = await fleet.fork(AT_A_TIME);
    await fleet.stop(old.slice(i, i + AT_A_TIME));
    await fleet.start(fresh);
  }
}

describe.skipIf(redis === undefined || moto === '')(
  `${MEMBERS} processes on Redis, with an AWS KMS behind a separate network`,
  () => {
    test('no token fails through three rotations, a rolling deploy, a restart of the store during it, and a KMS outage at the time of a rotation (F7, F8, F31)', async () => {
      await fleet.start(await fleet.fork(MEMBERS));
      expect(await storedKeys()).toHaveLength(1);
      await fleet.underLoad(async () => {
        // The first rotation, which is requested, propagates during the deploy.
        await fleet.members[0]?.tell('rotate', { emergency: false });
        expect(await storedKeys()).toHaveLength(2);
        const deploying = rollingDeploy();
        await pause(4_000);
        await redis?.kill();
        await pause(2_000);
        const without = await healthOfAll();
        await redis?.start();
        await deploying;
        // The running members report it, and continue.
        expect(without.map(({ status, ready }) => `${status} ${ready}`)).toContain('degraded true');
        expect(without.filter(({ ready }) => !ready)).toEqual([]);
        expect(await storedKeys()).toHaveLength(2);

        // The second rotation, on schedule, falls due in the middle of the outage.
        const quiet = (await secondsUntilRotation()) - OUTAGE_SECONDS / 2;
        // Otherwise this machine was too slow for the deploy, and this test would show nothing.
        expect(quiet).toBeGreaterThan(0);
        await pause(1_000 * quiet);
        kms.hang();
        await pause(500 * OUTAGE_SECONDS);
        kms.cut();
        await pause(500 * OUTAGE_SECONDS);
        expect(await secondsUntilRotation()).toBeLessThan(0);
        expect(await storedKeys()).toHaveLength(2);
        const cutOff = await healthOfAll();
        kms.mend();
        for (const health of cutOff) {
          expect(health).toMatchObject({ status: 'degraded', ready: true, lastError: 'kms unavailable' });
        }
        await until(async () => (await storedKeys()).length === 3, 30);
        // The third rotation is requested while the second propagates.
        await fleet.members[1]?.tell('rotate', { emergency: false });
        const [newest] = (await storedKeys()).toReversed();
        await until(() => fleet.sealingKeys.has(newest?.id ?? ''), 60);
        // Wait until the last member has changed keys.
        await pause(2_000);
      });
      expect(fleet.failures).toEqual([]);
      expect(fleet.members).toHaveLength(MEMBERS);
      expect(fleet.sealed).toBeGreaterThan(20 * MEMBERS);
      expect(fleet.opened).toBeGreaterThan(20 * MEMBERS ** 2);
      const stored = await storedKeys();
      expect(stored).toHaveLength(4);
      await until(async () => (await healthOfAll()).every(({ status }) => status === 'ok'), 60);
      for (const health of await healthOfAll()) {
        expect(health).toMatchObject({ status: 'ok', sealingKey: newestOf(stored) });
        expect(health.keys.map(({ id }) => id).toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
      }
      // One token for each member, past or present, and key; every member must unseal those that are still valid.
      await fleet.openAllKept();
      expect(fleet.failures).toEqual([]);
    });
  },
);

function newestOf(keys: readonly StoredKey[]): string | undefined {
  return keys.toSorted((a, b) => Date.parse(a.activates) - Date.parse(b.activates) || (a.id < b.id ? -1 : 1)).at(-1)
    ?.id;
}
