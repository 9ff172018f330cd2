import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';
import type { Calls } from './member-process.ts';

const MEMBERS = 50;
const AT_A_TIME = 5;
const ROTATIONS = 3;

const directory = mkdtempSync(join(tmpdir(), 'sealring-fleet-'));
const path = join(directory, 'payments.ring');
const fleet = new Fleet({
  ring: { file: path },
  kms: { masterKey: randomBytes(32).toString('hex') },
  policy: fleetPolicy,
});
afterAll(() => {
  fleet.end();
  rmSync(directory, { recursive: true, force: true });
});

/** The ids of the keys in the file, read as lines of JSON. */
function storedKeyIds(): string[] {
  const [body = ''] = readFileSync(path, 'utf8').split('\n');
  const { keys } = JSON.parse(body) as { keys: { id: string }[] };
  return keys.map(({ id }) => id);
}

function sum(calls: readonly Calls[]): Calls {
  const add = (pick: (each: Calls) => number): number => calls.reduce((total, each) => total + pick(each), 0);
  return { generate: add((each) => each.generate), wrap: add((each) => each.wrap), unwrap: add((each) => each.unwrap) };
}

describe(`${MEMBERS} processes on one file ring`, () => {
  test('processes that start at the same time on an empty store create one ring with one key, with one unwrap each (F6, F8)', async () => {
    const calls = await fleet.start(await fleet.fork(MEMBERS));
    expect(storedKeyIds()).toHaveLength(1);
    const { generate, wrap, unwrap } = sum(calls);
    expect(wrap).toBe(0);
    // Usually, there is one creator. On a busy machine, several members create a key at once and check one that loses.
    const losers = generate - 1;
    expect(losers).toBeLessThan(MEMBERS / 2);
    // The creator's KMS check, one unwrap by each other member, and the checks of the losers' keys: no other call.
    expect(unwrap).toBe(MEMBERS + losers);
  });

  test('each process unseals every token that any of them seals (F8)', async () => {
    await fleet.round(2);
    expect(fleet.failures).toEqual([]);
    expect([fleet.sealed, fleet.opened]).toEqual([2 * MEMBERS, expect.toSatisfy((n: number) => n >= 2 * MEMBERS ** 2)]);
  });

  test(`no token fails through ${ROTATIONS} rotations under load (F8)`, async () => {
    await fleet.underLoad(async () => {
      for (let rotation = 0; rotation < ROTATIONS; rotation++) {
        await fleet.members[rotation]?.tell('rotate', { emergency: false });
        // Wait until the last member has changed keys.
        await until(() => fleet.keptTokens === MEMBERS * (2 + rotation), 60);
      }
    });
    expect(fleet.failures).toEqual([]);
    expect(storedKeyIds()).toHaveLength(1 + ROTATIONS);
    expect(fleet.sealingKeys).toEqual(new Set(storedKeyIds()));
    // Each member and key has a token, so every member has sealed with every key.
    expect(await fleet.openAllKept()).toBe(MEMBERS * (1 + ROTATIONS));
    expect(fleet.failures).toEqual([]);
  });

  test(`a rolling restart under load, ${AT_A_TIME} processes at a time, loses no token and makes one unwrap per key (F6, F8)`, async () => {
    const before = readFileSync(path, 'utf8');
    const calls: Calls[] = [];
    await fleet.underLoad(async () => {
      const old = [...fleet.members];
      for (let i = 0; i < old.length; i += AT_A_TIME) {
        await fleet.stop(old.slice(i, i + AT_A_TIME));
        calls.push(...(await fleet.start(await fleet.fork(AT_A_TIME))));
      }
    });
    expect(fleet.failures).toEqual([]);
    expect(fleet.members).toHaveLength(MEMBERS);
    expect(sum(calls)).toEqual({ generate: 0, wrap: 0, unwrap: MEMBERS * (1 + ROTATIONS) });
    expect(readFileSync(path, 'utf8')).toBe(before);
    // The new processes unseal the tokens of those that ended before they started.
    await fleet.openAllKept();
    expect(fleet.failures).toEqual([]);
  });
});
