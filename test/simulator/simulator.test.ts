import { readFileSync } from 'node:fs';
import { InvalidRequestState, SealUnavailableError } from '@sealring/core';
import { assert, asyncProperty, integer, subarray } from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FAULT_CLASSES } from './faults.ts';
import { callsPerMemberDay } from './formula.ts';
import { picture } from './picture.ts';
import { simulate } from './simulate.ts';
import { HOUR, World, type WorldOptions } from './world.ts';

// A matter of computing alone, on machines that may have much else to do.
vi.setConfig({ testTimeout: 900_000 });

const CLASSES = Object.keys(FAULT_CLASSES);

function world(seed: number, days: number, members = 8): WorldOptions {
  return { seed, members, days, loss: 0.02, clockSkewSeconds: 600, quantumMs: 20 };
}

describe('a fleet with one class of faults', () => {
  for (const faults of CLASSES) {
    test(`loses no valid token and keeps one ring: ${faults} (F7, F8, F10, F13, F28, F31)`, async () => {
      const report = await simulate(world(1, 3), [faults]);
      expect(report.violations).toEqual([]);
      expect(report.tokens.opened).toBeGreaterThan(40_000);
      // A document has 64 keys; a member remembers revoked ones that have left it.
      expect(report.ring.mostKeys).toBeLessThanOrEqual(faults === 'full-ring' ? 80 : 64);
    });
  }
});

test('a fleet with all faults at once loses no valid token and keeps one ring', async () => {
  const { violations, tokens } = await simulate(world(8, 4, 12), CLASSES);
  expect(violations).toEqual([]);
  expect(tokens.opened).toBeGreaterThan(5_000);
});

// Where each member tried again by itself, thirty days of ten thousand members made 374 keys for 31 rotations, and 164
// where it also came to the end of its only wait as the outage ended.
test.each([
  ['ends long after', 'kms-outage-at-rotation'],
  ['ends while members wait their turn for', 'kms-outage-until-rotation'],
])('a large fleet whose KMS outage %s a rotation makes few keys for it (F7)', async (_, faults) => {
  // What is under way for half a second at a time stands for a larger fleet.
  const report = await simulate({ ...world(1, 1.1, 1_000), quantumMs: 500 }, [faults]);
  expect(report.violations).toEqual([]);
  expect(report.ring.published).toBe(2);
  expect(report.calls.generated).toBeLessThanOrEqual(4);
});

describe('the documented bounds hold (F10)', () => {
  test('a key disabled at a KMS that answers: last seal within 980 s, last unseal within 1 580 s', async () => {
    const { bounds } = await simulate(world(3, 8, 20), ['key-disabled']);
    expect(bounds.lastSealAfterRefusalSeconds).toBeGreaterThan(300);
    expect(bounds.lastSealAfterRefusalSeconds).toBeLessThanOrEqual(980);
    // S + R after sealing stopped; with the skew of 600 s of this world, 980 + 600 + 300.
    expect(bounds.lastOpenAfterRefusalSeconds).toBeLessThanOrEqual(980 + 600 + 300);
  });

  test('a key disabled while members are cut off from the KMS: last seal within 3 600 s', async () => {
    const { bounds } = await simulate(world(5, 8, 20), ['key-disabled-at-partition']);
    expect(bounds.lastSealAfterRefusalSeconds).toBeGreaterThan(980);
    expect(bounds.lastSealAfterRefusalSeconds).toBeLessThanOrEqual(3_600);
    expect(bounds.lastOpenAfterRefusalSeconds).toBeLessThanOrEqual(3_600 + 3_600 + 2 * 600);
  });

  test('a revoked key seals nothing 380 s after its revocation at members that read the ring', async () => {
    const { bounds } = await simulate(world(5, 8, 20), ['revocation']);
    expect(bounds.lastSealWithRevokedSeconds).toBeGreaterThan(60);
    expect(bounds.lastSealWithRevokedSeconds).toBeLessThanOrEqual(380);
  });
});

test('any few classes of faults together, from any seed, lose no valid token', async () => {
  await assert(
    asyncProperty(
      integer({ min: 1, max: 2 ** 31 - 1 }),
      subarray(CLASSES, { minLength: 2, maxLength: 6 }),
      async (seed, faults) => {
        const { violations } = await simulate(world(seed, 2), faults);
        const repeat = `npm run simulate -- --members 8 --days 2 --seed ${seed} --faults ${faults.join(',')} --trace`;
        expect(violations, repeat).toEqual([]);
      },
    ),
    // A fixed budget: about twenty seconds. Shrinking would cost more than the one-line repeat saves. Another seed
    // searches elsewhere; the default one keeps a build repeatable.
    { numRuns: 20, endOnFailure: true, seed: Number(process.env['SEALRING_SEARCH_SEED'] ?? 1) },
  );
});

describe('calls are within a tenth of the formula in the guide', () => {
  for (const faults of ['quiet', 'kms-outage-hourly-10']) {
    test(`calls with ${faults}`, async () => {
      const { calls } = await simulate(world(1, 10, 20), [faults]);
      expect(Math.abs(calls.kmsPerMemberDay / (calls.expected?.kms ?? 0) - 1)).toBeLessThan(0.1);
      expect(Math.abs(calls.storePerMemberDay / (calls.expected?.store ?? 0) - 1)).toBeLessThan(0.1);
    });
  }

  test('the table of the guide matches the formula', () => {
    const guide = readFileSync(new URL('../../docs/guides/fleet-under-fault.md', import.meta.url), 'utf8');
    const [, table = ''] = /^## Calls$(.*?)^## /ms.exec(guide) ?? [];
    const told = [...table.matchAll(/^\|.* \| (\d+\.\d) \|$/gm)].map(([, value]) => Number(value));
    const { policy } = new World(world(1, 1));
    const quiet = callsPerMemberDay(policy, 0.02);
    const troubled = callsPerMemberDay(policy, 0.02, { everySeconds: 3_600, lengthSeconds: 600 });
    expect(told).toEqual([quiet.kms, quiet.store, troubled.kms].map((calls) => Number(calls.toFixed(1))));
  });

  for (const hours of [3, 12, 24]) {
    test(`calls of ${hours} quiet hours, with the start of the fleet`, async () => {
      for (const [members, seed] of [
        [5, 1],
        [12, 2],
        [20, 3],
      ] as const) {
        const { calls } = await simulate(world(seed, hours / 24, members), ['quiet']);
        expect(Math.abs(calls.kmsPerMemberDay / (calls.expected?.kms ?? 0) - 1)).toBeLessThan(0.1);
        expect(Math.abs(calls.storePerMemberDay / (calls.expected?.store ?? 0) - 1)).toBeLessThan(0.1);
      }
    });
  }

  test('calls of half a day with outages are fewer than by the formula, by less than a fifth', async () => {
    const { calls } = await simulate(world(1, 0.5, 20), ['kms-outage-hourly-10']);
    const share = calls.kmsPerMemberDay / (calls.expected?.kms ?? 0);
    expect(share).toBeGreaterThan(0.8);
    expect(share).toBeLessThan(1);
  });
});

// The numbers are rounded in the guide, and so are those here: another draw in core makes another week.
test('the week in the guide loses no token', async () => {
  const classes = ['kms-outage-hourly-10', 'crash', 'store-failover', 'revocation'];
  const { violations, tokens } = await simulate(world(3, 7, 20), classes);
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

test('equal options give equal runs', async () => {
  const [first, second] = [await simulate(world(5, 1), ['crash']), await simulate(world(5, 1), ['crash'])];
  expect(second.calls).toEqual(first.calls);
  expect(second.tokens).toEqual(first.tokens);
});

test('the oracle can fail: it catches a member that refuses a valid token', async () => {
  const { violations } = await simulate(world(1, 1), ['quiet'], {
    onBegin: ({ members, timeline }) => {
      const failing = (error: Error) => (): never => {
        throw error;
      };
      const sabotage = (member: number, method: 'seal' | 'unseal', error: Error): unknown =>
        Object.defineProperty(members[member]?.codec, method, { value: failing(error) });
      // Close together: of many violations only the first are told.
      timeline.after(HOUR, () => sabotage(0, 'unseal', new InvalidRequestState('unknown key')));
      timeline.after(HOUR, () => sabotage(1, 'seal', new SealUnavailableError('no active key')));
      timeline.after(HOUR, () => sabotage(2, 'unseal', new Error('sabotaged')));
    },
  });
  expect(new Set(violations.map(({ law }) => law))).toEqual(
    new Set(['every token opens', 'nobody refuses to seal', 'no exception but those of the closed set']),
  );
});

test('overlapping faults each last until their own end', async () => {
  const troubled = new World(world(1, 1));
  const { kms, store, timeline } = troubled;
  const state = (): readonly unknown[] => [store.down, kms.wrapFailing, kms.weather.slowMs, kms.dates.aheadMs];
  const begin = (aheadMs: number): void => {
    troubled.storeFails(2 * HOUR);
    troubled.wrapsFail(2 * HOUR);
    troubled.kmsIsSlow(100, 2 * HOUR);
    troubled.dateIsWrong('kms', aheadMs, 2 * HOUR);
  };
  begin(HOUR);
  await timeline.advance(HOUR, 20);
  begin(2 * HOUR);
  await timeline.advance(2.5 * HOUR, 20);
  expect(state()).toEqual([true, 'denied', 100, 2 * HOUR]);
  await timeline.advance(3.5 * HOUR, 20);
  expect(state()).toEqual([false, undefined, 0, 0]);
});

test('the picture is one SVG without scripts that names the run', async () => {
  const svg = picture(await simulate(world(1, 1, 3), ['quiet']));
  expect(svg).toMatch(/^<svg [^]*<\/svg>\n$/);
  expect(svg).toContain('3 members, 1 days, seed 1, faults: quiet');
  expect(svg).not.toContain('<script');
});
