import { setTimeout as pause } from 'node:timers/promises';
import { CreateKeyCommand } from '@aws-sdk/client-kms';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emulatorClient } from '../fleet/kms-fleet.ts';
import { startMoto } from '../support/moto.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
import type { RunningServer } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import {
  keyIdOf,
  MixedFleet,
  type MixedMember,
  type MixedPlace,
  pythonMember,
  typescriptMember,
} from './mixed-fleet.ts';
import { pythonWithPackage } from './python-package.ts';

/** Use SEALRING_MIXED=8 on a machine with enough cores to run every fleet with sixteen processes. */
const MIXED = process.env['SEALRING_MIXED'];
const EACH = Number(MIXED ?? 3);

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
  // Longer than the flushes, plus the time in which running members restore the ring.
  createAfterSeconds: 15,
};
const OUTAGE_MS = (policy.sealOutageSeconds / 2) * 1_000;
const FLUSHES = 60;

/** A store that can lose all its content. */
interface Store {
  readonly server: TestServer;
  place(ring: string): Pick<MixedPlace, 'typescript' | 'python'>;
  document(ring: string): Promise<string | undefined>;
  empty(): Promise<void>;
}

let python = '';
let moto: RunningServer;
let kms: TcpProxy;
let kmsKey = '';

beforeAll(async () => {
  python = await pythonWithPackage();
  moto = await startMoto();
  kms = await startTcpProxy(Number(new URL(moto.address).port));
  const admin = emulatorClient(moto.address);
  const { KeyMetadata } = await admin.send(new CreateKeyCommand({}));
  admin.destroy();
  kmsKey = KeyMetadata?.Arn ?? '';
});
afterAll(async () => {
  await kms?.close();
  await moto?.stop();
});

async function redisStore(): Promise<Store> {
  const server = await startRedis();
  const command = async (...words: readonly string[]): Promise<unknown> => {
    const client = await createClient({ url: server.address }).connect();
    try {
      return await client.sendCommand(words);
    } finally {
      client.destroy();
    }
  };
  return {
    server,
    place: (key) => ({ typescript: { redis: server.address, key }, python: { url: server.address, key } }),
    document: async (key) => (await command('HGET', key, 'document'))?.toString(),
    empty: async () => void (await command('FLUSHALL')),
  };
}

async function postgresStore(): Promise<Store> {
  const server = await startPostgres(['max_connections=300']);
  const query = async (text: string, values: readonly string[] = []): Promise<readonly { document: string }[]> => {
    const pool = new Pool({ connectionString: server.address, max: 1 });
    pool.on('error', () => undefined);
    try {
      return (await pool.query<{ document: string }>(text, [...values])).rows;
    } finally {
      await pool.end();
    }
  };
  const pool = new Pool({ connectionString: server.address });
  await migrate(pool);
  await pool.end();
  return {
    server,
    place: (name) => ({
      typescript: { postgres: server.address, name },
      python: { store: 'postgres', url: server.address, name },
    }),
    document: async (name) => (await query('SELECT document FROM sealring_ring WHERE name = $1', [name]))[0]?.document,
    empty: async () => void (await query('DELETE FROM sealring_ring')),
  };
}

async function storedKeyIds(store: Store, ring: string): Promise<readonly string[]> {
  const document = await store.document(ring);
  if (document === undefined) return [];
  const { keys } = JSON.parse(document) as { readonly keys: readonly { readonly id: string }[] };
  return keys.map(({ id }) => id).toSorted();
}

function statusesOf({ members }: MixedFleet): Promise<string[]> {
  return Promise.all(members.map(async (member) => (await member.health()).status));
}

const FLEETS = [
  ['Redis', EACH, EACH, redisStore],
  ['PostgreSQL', 2 * EACH, 0, postgresStore],
] as const;
const MORE_FLEETS = [
  ['Redis', 2 * EACH, 0, redisStore],
  ['PostgreSQL', EACH, EACH, postgresStore],
] as const;

describe.each(MIXED === undefined ? FLEETS : [...FLEETS, ...MORE_FLEETS])(
  'a fleet on %s, with %i Python and %i TypeScript processes and an AWS KMS',
  (engine, pythons, typescripts, start) => {
    test('no valid token fails through rotations, kill -9, the loss of the store, a KMS outage and a revocation (F7, F8, F31)', async () => {
      const store = await start();
      const key = `ring-of-${pythons}-and-${typescripts}`;
      const place = {
        ...store.place(key),
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
      /** The first and the last: one of each language if there are two. */
      const ends = (): readonly MixedMember[] =>
        [fleet.members.at(0), fleet.members.at(-1)].filter((one) => one !== undefined);
      try {
        await fleet.start(await Promise.all(languages.map(make)));
        await fleet.round();
        expect(await storedKeyIds(store, key)).toHaveLength(1);

        await fleet.underLoad(async (betweenRounds) => {
          for (const member of ends()) {
            const before = fleet.sealingKeys.size;
            await member.rotate(true);
            await until(() => fleet.sealingKeys.size > before, 60);
          }
          const keys = await storedKeyIds(store, key);
          expect(keys).toHaveLength(3);

          // Two are killed, and their successors start while the store is empty.
          const killed = ends();
          await betweenRounds(async () => {
            for (const member of killed) await fleet.kill(member);
          });
          const fresh = await Promise.all(killed.map((member) => make(member.name.split(' ')[0] ?? '')));
          await store.empty();
          const starting = Promise.all(fresh.map((member) => member.start()));
          for (let flush = 0; flush < FLUSHES; flush++) {
            await store.empty();
            await pause(50);
          }
          await starting;
          await betweenRounds(async () => void fleet.members.push(...fresh));
          expect(await storedKeyIds(store, key)).toEqual(keys);

          // The server itself is gone, and starts again empty.
          await store.server.kill();
          await until(async () => (await statusesOf(fleet)).every((status) => status === 'degraded'), 30);
          await store.server.start();
          await store.empty();
          await until(async () => (await storedKeyIds(store, key)).length === keys.length, 30);
          expect(await storedKeyIds(store, key)).toEqual(keys);
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
        process.stdout.write(`${engine}, ${pythons} + ${typescripts}: ${fleet.opened} tokens opened\n`);
      } finally {
        await Promise.all(forked.map((each) => each.kill()));
        await store.server.stop();
      }
    });
  },
);
