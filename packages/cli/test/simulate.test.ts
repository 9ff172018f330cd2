import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { POLICY_DEFAULTS } from '../src/policy-times.ts';
import { type FleetOptions, runFleet } from '../src/simulation/fleet.ts';
import { lawsOf } from '../src/simulation/laws.ts';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
beforeEach(() => {
  project = newProject();
});
afterEach(() => project.remove());

const QUIET: FleetOptions = { policy: {}, servers: 3, days: 1, seed: 1, kmsOutageSeconds: 0, storeOutageSeconds: 0 };
const ALWAYS = (): boolean => true;

test('the formulas give the numbers of the documentation', () => {
  expect(lawsOf({})).toMatchObject({
    propagation: 4_500,
    kmsOutage: 2_620,
    storeOutage: POLICY_DEFAULTS.storeOutageSeconds,
    refusedSeal: 980,
    refusedOpen: 1_580,
    revoked: 380,
  });
});

test('looks for a new version of the KMS key are as many as the formula says, and none where nobody looks', async () => {
  for (const keyVersionEverySeconds of [3_600, 900, 300, 0]) {
    const policy = { keyVersionEverySeconds };
    const { versionLooksPerServerDay: counted } = await runFleet({ ...QUIET, policy, days: 2 }, ALWAYS);
    const { versionLooksPerServerDay: expected } = lawsOf(policy);
    expect(Math.abs(counted - expected), `every ${keyVersionEverySeconds} s`).toBeLessThanOrEqual(0.1 * expected);
  }
  expect(lawsOf({}).versionLooksPerServerDay).toBeCloseTo(23.7, 1);
});

describe('a fleet on a virtual clock', () => {
  test('equal options give equal runs, and another seed another one', async () => {
    const first = await runFleet(QUIET, ALWAYS);
    expect(await runFleet(QUIET, ALWAYS)).toEqual(first);
    expect(await runFleet({ ...QUIET, seed: 2 }, ALWAYS)).not.toEqual(first);
  });

  test('rotates, and loses nothing in an outage that is tolerated', async () => {
    const report = await runFleet({ ...QUIET, days: 3, kmsOutageSeconds: 2_600, storeOutageSeconds: 2_600 }, ALWAYS);
    expect(report).toMatchObject({ refusedTokens: 0, refusedSeals: {}, firstRefusalSeconds: undefined });
    expect(report.keysMade).toBeGreaterThanOrEqual(3);
  });

  test('F10: an outage of the KMS over its bound stops sealing within the bounds, and opening goes on', async () => {
    const report = await runFleet({ ...QUIET, days: 2, kmsOutageSeconds: 7_000 }, ALWAYS);
    expect(Object.keys(report.refusedSeals)).toEqual(['key proof too old']);
    expect(report.firstRefusalSeconds).toBeGreaterThan(2_620);
    expect(report.firstRefusalSeconds).toBeLessThanOrEqual(3_600 + 120);
    expect(report.refusedTokens).toBe(0);
  });

  test('an outage of the store over its bound stops sealing too', async () => {
    const report = await runFleet({ ...QUIET, days: 2, storeOutageSeconds: 25_000 }, ALWAYS);
    expect(Object.keys(report.refusedSeals)).toEqual(['ring read too old']);
  });

  test('ends when nobody wants more', async () => {
    const hours: number[] = [];
    await runFleet(QUIET, (hour) => {
      hours.push(hour);
      return hour < 3;
    });
    expect(hours).toEqual([0, 1, 2, 3]);
  });
});

describe('the command', () => {
  const run = (args: readonly string[]) => runCli(['simulate', '--days', '1', ...args], { cwd: project.cwd });

  test('prints formulas and what was counted, and exits with 0 where they agree', async () => {
    // Progress is told on stderr where it takes longer than two seconds.
    const { code, stdout } = await run(['--servers', '3']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/nobody notices +2620 s/);
    expect(stdout).toMatch(/as the formulas say\n$/);
  });

  test('takes the policy of the configuration, changed by --set', async () => {
    writeFileSync(
      join(project.cwd, 'sealring.config.mjs'),
      `import { localKeyWrapper, memoryRing } from '@sealring/core';
export default {
  ring: memoryRing(), keyWrapper: localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') }),
  policy: { proveEverySeconds: 600, clockSkewSeconds: 60 },
};`,
    );
    const { stdout } = await run(['--json', '--set', 'clockSkewSeconds=30', '--set', 'refreshEverySeconds=120']);
    expect(JSON.parse(stdout).options.policy).toEqual({
      proveEverySeconds: 600,
      clockSkewSeconds: 30,
      refreshEverySeconds: 120,
    });
    expect(JSON.parse(stdout).laws.propagation).toBe(3_600 + 240 + 30);
  });

  test.each([
    [['--set', 'proveEverySeconds=3000'], /proveEverySeconds \(3000\)/],
    [['--set', 'proveEvery=3'], /proveEverySeconds/],
    [['--servers', '0'], /1 to 100/],
    [['--servers', '1.5'], /whole number/],
    [['--kms-outage', '-1'], /kms-outage/],
  ])('%j is a mistake that is named', async (args, message) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('bench', () => {
  test('says ratios, of either format', async () => {
    const args = ['bench', '--rounds', '5', '--bytes', '100', '--format', 'python', '--json'];
    const { code, stdout } = await runCli(args, { cwd: project.cwd });
    expect(code).toBe(0);
    const { format, results } = JSON.parse(stdout);
    expect(format).toBe('python');
    expect(results.map(({ operation }: { operation: string }) => operation)).toEqual(['seal', 'unseal']);
    for (const { times } of results) expect(times.median).toBeGreaterThan(0);
    const text = await runCli(['bench', '--rounds', '5'], { cwd: project.cwd });
    expect(text.stdout).toMatch(/^seal +\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)/m);
  });
});
