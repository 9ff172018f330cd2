import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startRedis, type TestServer } from '../support/redis.ts';
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

const folder = mkdtempSync(join(tmpdir(), 'sealring-mixed-'));
let python = '';
let redis: TestServer;
let postgres: PostgresServer;
let places = 0;

beforeAll(async () => {
  python = await pythonWithPackage();
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  const pool = new Pool({ connectionString: postgres.address });
  await migrate(pool);
  await pool.end();
});
afterAll(async () => {
  await Promise.all([redis.stop(), postgres.stop()]);
  rmSync(folder, { recursive: true });
});

const newMasterKey = () => ({ masterKey: randomBytes(32).toString('hex') });

const STORES: Readonly<Record<string, () => MixedPlace>> = {
  Redis: () => {
    const key = `ring-${++places}`;
    return {
      typescript: { redis: redis.address, key },
      python: { url: redis.address, key },
      kms: newMasterKey(),
    };
  },
  PostgreSQL: () => {
    const name = `ring-${++places}`;
    return {
      typescript: { postgres: postgres.address, name },
      python: { store: 'postgres', url: postgres.address, name },
      kms: newMasterKey(),
    };
  },
  'a file': () => {
    const path = join(folder, `${++places}.ring`);
    return { typescript: { file: path }, python: { path }, kms: newMasterKey() };
  },
};

type Make = (name: string, place: MixedPlace) => Promise<MixedMember>;
const newPython: Make = async (name, place) => pythonMember(`Python ${name}`, place, python);
const newTypescript: Make = (name, place) => typescriptMember(`TypeScript ${name}`, place);

describe.each([
  ['Redis', 'two Python and two TypeScript members', [newPython, newPython, newTypescript, newTypescript]],
  ['PostgreSQL', 'two Python and two TypeScript members', [newTypescript, newPython, newTypescript, newPython]],
  ['a file', 'two Python and two TypeScript members', [newPython, newTypescript, newPython, newTypescript]],
  ['Redis', 'three Python members', [newPython, newPython, newPython]],
] as const)('a fleet on %s, with %s', (store, _, makes) => {
  test('no valid token fails through a simultaneous start, rotations, kill -9 and a revocation (F8)', async () => {
    const place = (STORES[store] as () => MixedPlace)();
    const fleet = new MixedFleet();
    let names = 0;
    const make = (by: Make): Promise<MixedMember> => by(String(++names), place);
    const member = (at: number): MixedMember => fleet.members[at % fleet.members.length] as MixedMember;
    try {
      await fleet.start(await Promise.all(makes.map(make)));
      await fleet.round();
      expect(fleet.sealingKeys.size).toBe(1);

      await fleet.underLoad(async (betweenRounds) => {
        for (const [at] of makes.entries()) {
          const before = fleet.sealingKeys.size;
          await member(at).rotate(true);
          await until(() => fleet.sealingKeys.size > before, 60);
          await betweenRounds(async () => {
            await fleet.kill(member(0));
            await fleet.start([await make(makes[at] as Make)]);
          });
        }
      });
      expect(fleet.failures).toEqual([]);
      expect(fleet.sealingKeys.size).toBe(1 + makes.length);

      for (const [at] of makes.entries()) {
        const revoked = keyIdOf(await member(at).seal('to be revoked'));
        fleet.revoked.add(revoked);
        await member(at).revoke(revoked);
        const isKnown = async (): Promise<boolean> => {
          const healths = await Promise.all(fleet.members.map((each) => each.health()));
          return healths.every(({ keys }) => keys[revoked] === 'revoked');
        };
        await until(isKnown);
        expect(await isKnown()).toBe(true);
        await fleet.round();
      }
      await fleet.openAllKept();
      expect(fleet.failures).toEqual([]);
      expect(await fleet.openedThoughRevoked()).toEqual([]);
      expect(fleet.opened).toBeGreaterThan(100);
      const healths = await Promise.all(fleet.members.map((each) => each.health()));
      const rings = new Set(
        healths.map(({ keys }) =>
          Object.keys(keys)
            .toSorted((a, b) => (a < b ? -1 : 1))
            .join(),
        ),
      );
      expect([...rings]).toHaveLength(1);
    } finally {
      await Promise.all(fleet.members.map((each) => each.kill()));
    }
  });
});
