import { setTimeout as pause } from 'node:timers/promises';
import { CreateKeyCommand } from '@aws-sdk/client-kms';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emulatorClient } from '../fleet/kms-fleet.ts';
import { startMoto } from '../support/moto.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import type { RunningServer } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { keyIdOf, MixedFleet, type MixedMember, pythonMember, typescriptMember } from './mixed-fleet.ts';
import { pythonWithPackage } from './python-package.ts';

/** Eight with SEALRING_MIXED=8, on a machine that has cores for sixteen processes. */
const EACH = Number(process.env['SEALRING_MIXED'] ?? 3);

/** The calls and the backoff are not scaled: a machine with sixteen processes on it is slow. */
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 2,
  kmsTimeoutSeconds: 2,
  sealOutageSeconds: 20,
  storeOutageSeconds: 60,
  propagationSeconds: 23,
  rotateEverySeconds: 900,
  tokenLifetimeSeconds: 300,
  // Longer than the flushes, and than running members then take to restore the ring.
  createAfterSeconds: 15,
};
/** refreshEvery + backoffCap + clockSkew: an emergency key seals after it. */
const EMERGENCY_MS = 3_000;
const OUTAGE_MS = (policy.sealOutageSeconds / 2) * 1_000;
const FLUSHES = 60;

let python = '';
let redis: TestServer;
let moto: RunningServer;
let kms: TcpProxy;
let kmsKey = '';

beforeAll(async () => {
  python = await pythonWithPackage();
  [redis, moto] = await Promise.all([startRedis(), startMoto()]);
  kms = await startTcpProxy(Number(new URL(moto.address).port));
  const admin = emulatorClient(moto.address);
  const { KeyMetadata } = await admin.send(new CreateKeyCommand({}));
  admin.destroy();
  kmsKey = KeyMetadata?.Arn ?? '';
}, 600_000);
afterAll(async () => {
  await kms?.close();
  await Promise.all([redis?.stop(), moto?.stop()]);
});

async function storedKeyIds(key: string): Promise<readonly string[]> {
  const document = await command('HGET', key, 'document');
  if (typeof document !== 'string') return [];
  const { keys } = JSON.parse(document) as { readonly keys: readonly { readonly id: string }[] };
  return keys.map(({ id }) => id).toSorted();
}

async function command(...words: readonly string[]): Promise<unknown> {
  const client = await createClient({ url: redis.address }).connect();
  try {
    return await client.sendCommand(words);
  } finally {
    client.destroy();
  }
}

function statusesOf({ members }: MixedFleet): Promise<string[]> {
  return Promise.all(members.map(async (member) => (await member.health()).status));
}

describe.each([
  [2 * EACH, 0],
  [EACH, EACH],
])('%i Python and %i TypeScript processes on Redis, with an AWS KMS', { timeout: 600_000 }, (pythons, typescripts) => {
  test('no valid token fails through rotations, kill -9, the loss of the store, a KMS outage and a revocation (F7, F8, F31)', async () => {
    const key = `ring of ${pythons} and ${typescripts}`;
    const place = {
      typescript: { redis: redis.address, key },
      python: { url: redis.address, key },
      kms: { endpoint: `http://${kms.host}:${kms.port}`, keyId: kmsKey },
      policy,
    };
    const fleet = new MixedFleet();
    const forked: MixedMember[] = [];
    const make = async (language: string): Promise<MixedMember> => {
      const name = `${language} ${forked.length}`;
      const member = language === 'Python' ? pythonMember(name, place, python) : await typescriptMember(name, place);
      forked.push(member);
      return member;
    };
    const languages = [
      ...Array.from({ length: pythons }, () => 'Python'),
      ...Array.from({ length: typescripts }, () => 'TypeScript'),
    ];
    /** The first and the last: one of each language where there are two. */
    const ends = (): readonly MixedMember[] =>
      [fleet.members.at(0), fleet.members.at(-1)].filter((one) => one !== undefined);
    try {
      await fleet.start(await Promise.all(languages.map(make)));
      await fleet.round();
      expect(await storedKeyIds(key)).toHaveLength(1);

      await fleet.underLoad(async (betweenRounds) => {
        for (const member of ends()) {
          const before = fleet.sealingKeys.size;
          await member.rotate(true);
          await pause(EMERGENCY_MS);
          await until(() => fleet.sealingKeys.size > before, 60);
        }
        const keys = await storedKeyIds(key);
        expect(keys).toHaveLength(3);

        // Two are killed, and their successors start while the store holds nothing.
        const killed = ends();
        await betweenRounds(async () => {
          for (const member of killed) await fleet.kill(member);
        });
        const fresh = await Promise.all(killed.map((member) => make(member.name.split(' ')[0] ?? '')));
        await command('FLUSHALL');
        const starting = Promise.all(fresh.map((member) => member.start()));
        for (let flush = 0; flush < FLUSHES; flush++) {
          await command('FLUSHALL');
          await pause(50);
        }
        await starting;
        await betweenRounds(async () => void fleet.members.push(...fresh));
        expect(await storedKeyIds(key)).toEqual(keys);

        // Redis itself is gone, and comes back empty.
        await redis.kill();
        await until(async () => (await statusesOf(fleet)).every((status) => status === 'degraded'), 30);
        await redis.start();
        await until(async () => (await storedKeyIds(key)).length === keys.length, 30);
        expect(await storedKeyIds(key)).toEqual(keys);
        await until(async () => (await statusesOf(fleet)).every((status) => status === 'ok'), 60);

        kms.hang();
        await pause(OUTAGE_MS / 2);
        kms.cut();
        await pause(OUTAGE_MS / 2);
        const cutOff = await statusesOf(fleet);
        kms.mend();
        expect(new Set(cutOff)).toEqual(new Set(['degraded']));
        await until(async () => (await statusesOf(fleet)).every((status) => status === 'ok'), 60);
      });
      expect(fleet.failures).toEqual([]);
      expect(fleet.members).toHaveLength(languages.length);
      expect(fleet.sealingKeys.size).toBe(3);

      for (const member of ends()) {
        const revoked = keyIdOf(await member.seal('to be revoked'));
        fleet.revoked.add(revoked);
        await member.revoke(revoked);
        await until(async () => {
          const healths = await Promise.all(fleet.members.map((each) => each.health()));
          return healths.every(({ keys }) => keys[revoked] === 'revoked');
        }, 30);
        await fleet.round();
      }
      await fleet.openAllKept();
      expect(fleet.failures).toEqual([]);
      expect(await fleet.openedThoughRevoked()).toEqual([]);
      expect(fleet.opened).toBeGreaterThan(10 * languages.length ** 2);
      process.stdout.write(`${pythons} + ${typescripts}: ${fleet.opened} tokens opened\n`);
    } finally {
      await Promise.all(forked.map((each) => each.kill()));
    }
  });
});
