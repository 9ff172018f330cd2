import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { callsPerMemberDay } from './formula.ts';
import { simulate } from './simulate.ts';
import { usualWorld } from './usual-world.ts';
import { World } from './world.ts';

// Computation only, on machines that may be busy.
vi.setConfig({ testTimeout: 900_000 });

describe('the number of calls', () => {
  for (const faults of ['quiet', 'kms-outage-hourly-10']) {
    test(`calls with ${faults} are within a tenth of the formula in the guide`, async () => {
      const { calls } = await simulate(usualWorld(1, 10), [faults]);
      expect(Math.abs(calls.kmsPerMemberDay / (calls.expected?.kms ?? 0) - 1)).toBeLessThan(0.1);
      expect(Math.abs(calls.storePerMemberDay / (calls.expected?.store ?? 0) - 1)).toBeLessThan(0.1);
    });
  }

  test('the table of the guide matches the formula', () => {
    const guide = readFileSync(new URL('../../docs/guides/fleet-under-fault.md', import.meta.url), 'utf8');
    const [, table = ''] = /^## Calls$(.*?)^## /ms.exec(guide) ?? [];
    const told = [...table.matchAll(/^\|.* \| (\d+\.\d) \|$/gm)].map(([, value]) => Number(value));
    const { policy } = new World(usualWorld(1, 1));
    const quiet = callsPerMemberDay(policy, 0.02);
    const troubled = callsPerMemberDay(policy, 0.02, { everySeconds: 3_600, lengthSeconds: 600 });
    expect(told).toEqual([quiet.kms, quiet.store, troubled.kms].map((calls) => Number(calls.toFixed(1))));
  });

  for (const hours of [3, 12, 24]) {
    test(`the calls of a fleet in its first ${hours} quiet hours are within a tenth of the formula`, async () => {
      for (const [members, seed] of [
        [5, 1],
        [12, 2],
        [20, 3],
      ] as const) {
        const { calls } = await simulate(usualWorld(seed, hours / 24, members), ['quiet']);
        expect(Math.abs(calls.kmsPerMemberDay / (calls.expected?.kms ?? 0) - 1)).toBeLessThan(0.1);
        expect(Math.abs(calls.storePerMemberDay / (calls.expected?.store ?? 0) - 1)).toBeLessThan(0.1);
      }
    });
  }

  test('a fleet with outages makes fewer calls in half a day than the formula gives, but by less than a fifth', async () => {
    const { calls } = await simulate(usualWorld(1, 0.5, 20), ['kms-outage-hourly-10']);
    const share = calls.kmsPerMemberDay / (calls.expected?.kms ?? 0);
    expect(share).toBeGreaterThan(0.8);
    expect(share).toBeLessThan(1);
  });
});

// The guide rounds the numbers, and so does this test: other random numbers in core change the week.
test('the week in the guide loses no token', async () => {
  const classes = ['kms-outage-hourly-10', 'crash', 'store-failover', 'revocation'];
  const { violations, tokens } = await simulate(usualWorld(3, 7, 20), classes);
  expect(violations).toEqual([]);
  const { sealed, opened, excusedSeals, excusedOpens, excusedAtOnce } = tokens;
  for (const [counted, told] of [
    [sealed, 10_000],
    [opened, 120_000],
    [excusedSeals + excusedOpens + excusedAtOnce, 1_800],
  ] as const) {
    expect(Math.abs(counted / told - 1)).toBeLessThan(0.25);
  }
});
