import { InvalidRequestState, SealUnavailableError } from '@sealring/core';
import { assert, asyncProperty, integer, subarray } from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FAULT_CLASSES } from './faults.ts';
import { picture } from './picture.ts';
import { simulate } from './simulate.ts';
import { usualWorld } from './usual-world.ts';
import { HOUR, World } from './world.ts';

// Computation only, on machines that may be busy.
vi.setConfig({ testTimeout: 900_000 });

const CLASSES = Object.keys(FAULT_CLASSES);

test('a fleet with all faults at once loses no valid token and keeps one ring', async () => {
  const { violations, tokens } = await simulate(usualWorld(8, 2), CLASSES);
  expect(violations).toEqual([]);
  expect(tokens.opened).toBeGreaterThan(5_000);
});

// When each member retried by itself, thirty days of ten thousand members made 374 keys for 31 rotations; 164 when the
// end of the outage also ended each member's only wait.
test.each([
  ['ends long after', 'kms-outage-at-rotation'],
  ['ends while members wait for their turn for', 'kms-outage-until-rotation'],
])('a large fleet makes few keys for a rotation if a KMS outage %s that rotation (F7)', async (_, faults) => {
  // Calls of half a second represent a larger fleet. A key every 8 h, so that the rotation comes soon.
  const options = { ...usualWorld(1, 0.4, 1_000), quantumMs: 500, policy: { rotateEverySeconds: 28_800 } };
  const report = await simulate(options, [faults]);
  expect(report.violations).toEqual([]);
  expect(report.ring.published).toBe(2);
  expect(report.calls.generated).toBeLessThanOrEqual(4);
});

describe('the documented bounds (F10)', () => {
  test('a key that is disabled at a reachable KMS stops sealing within 980 s, and unsealing within 1 580 s', async () => {
    const { bounds } = await simulate(usualWorld(3, 8, 20), ['key-disabled']);
    expect(bounds.lastSealAfterRefusalSeconds).toBeGreaterThan(300);
    expect(bounds.lastSealAfterRefusalSeconds).toBeLessThanOrEqual(980);
    // S + R after sealing stopped; with the skew of 600 s of this world, 980 + 600 + 300.
    expect(bounds.lastOpenAfterRefusalSeconds).toBeLessThanOrEqual(980 + 600 + 300);
  });

  test('a key that is disabled while members are cut off from the KMS stops sealing within 3 600 s', async () => {
    const { bounds } = await simulate(usualWorld(5, 8, 20), ['key-disabled-at-partition']);
    expect(bounds.lastSealAfterRefusalSeconds).toBeGreaterThan(980);
    expect(bounds.lastSealAfterRefusalSeconds).toBeLessThanOrEqual(3_600);
    expect(bounds.lastOpenAfterRefusalSeconds).toBeLessThanOrEqual(3_600 + 3_600 + 2 * 600);
  });

  test('members that read the ring stop sealing with a key within 380 s of its revocation', async () => {
    const { bounds } = await simulate(usualWorld(5, 4, 20), ['revocation']);
    expect(bounds.lastSealWithRevokedSeconds).toBeGreaterThan(60);
    expect(bounds.lastSealWithRevokedSeconds).toBeLessThanOrEqual(380);
  });
});

test('a few classes of faults together lose no valid token, from any seed', async () => {
  await assert(
    asyncProperty(
      integer({ min: 1, max: 2 ** 31 - 1 }),
      subarray(CLASSES, { minLength: 2, maxLength: 6 }),
      async (seed, faults) => {
        const { violations } = await simulate(usualWorld(seed, 2), faults);
        const repeat = `npm run simulate -- --members 8 --days 2 --seed ${seed} --faults ${faults.join(',')} --trace`;
        expect(violations, repeat).toEqual([]);
      },
    ),
    // A fixed budget: about twenty seconds. Shrinking would cost more than the one-line repeat saves. Another seed
    // searches elsewhere; the default makes builds repeatable.
    { numRuns: 10, endOnFailure: true, seed: Number(process.env['SEALRING_SEARCH_SEED'] ?? 1) },
  );
});

test('equal options give equal runs', async () => {
  const [first, second] = [await simulate(usualWorld(5, 1), ['crash']), await simulate(usualWorld(5, 1), ['crash'])];
  expect(second.calls).toEqual(first.calls);
  expect(second.tokens).toEqual(first.tokens);
});

test('the oracle catches a member that refuses a valid token, refuses to seal or throws another error', async () => {
  const { violations } = await simulate(usualWorld(1, 1), ['quiet'], {
    onBegin: ({ members, timeline }) => {
      const failing = (error: Error) => (): never => {
        throw error;
      };
      const sabotage = (member: number, method: 'seal' | 'unseal', error: Error): unknown =>
        Object.defineProperty(members[member]?.codec, method, { value: failing(error) });
      // Close together: only the first of many violations are reported in full.
      timeline.after(HOUR, () => sabotage(0, 'unseal', new InvalidRequestState('unknown key')));
      timeline.after(HOUR, () => sabotage(1, 'seal', new SealUnavailableError('no active key')));
      timeline.after(HOUR, () => sabotage(2, 'unseal', new Error('sabotaged')));
    },
  });
  expect(new Set(violations.map(({ law }) => law))).toEqual(
    new Set(['every token unseals', 'no member refuses to seal', 'no exception but those of the closed set']),
  );
});

test('overlapping faults each last until their own end', async () => {
  const troubled = new World(usualWorld(1, 1));
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

test('the picture is one SVG that names the run and has no scripts', async () => {
  const svg = picture(await simulate(usualWorld(1, 1, 3), ['quiet']));
  expect(svg).toMatch(/^<svg [^]*<\/svg>\n$/);
  expect(svg).toContain('3 members, 1 days, seed 1, faults: quiet');
  expect(svg).not.toContain('<script');
});
