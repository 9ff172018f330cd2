import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { measure } from '../src/commands/measure.ts';
import { policyFigures } from '../src/index.ts';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
beforeEach(() => {
  project = newProject();
});
afterEach(() => project.remove());

test('policyFigures returns the numbers that the documentation gives', () => {
  expect(policyFigures({})).toMatchObject({
    propagation: 4_500,
    kmsOutage: 2_620,
    storeOutage: 21_600,
    refusedSeal: 980,
    refusedUnseal: 1_580,
    revoked: 380,
  });
  expect(policyFigures({}).versionChecksPerServerDay).toBeCloseTo(23.7, 1);
  expect(policyFigures({ keyVersionEverySeconds: 0 }).versionChecksPerServerDay).toBe(0);
});

describe('policy', () => {
  const run = (args: readonly string[]) => runCli(['policy', ...args], { cwd: project.cwd });

  test('policy prints the tolerated outages and the calls per day', async () => {
    const { code, stdout, stderr } = await run(['--servers', '5']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^KMS outage without effect +2620 s$/m);
    expect(stdout).toMatch(/^keys in the ring +up to 2 of 64$/m);
    expect(stdout).toMatch(/^KMS calls per day, 5 servers +538\.3$/m);
  });

  test('policy reads the policy from the configuration, with the changes given by --set', async () => {
    writeFileSync(
      join(project.cwd, 'sealring.config.mjs'),
      `import { localKeyWrapper, memoryRing } from '@sealring/core';
export default {
  ring: memoryRing(), keyWrapper: localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') }),
  policy: { kmsCheckEverySeconds: 600, clockSkewSeconds: 60 },
};`,
    );
    const { stdout } = await run(['--json', '--set', 'clockSkewSeconds=30', '--set', 'refreshEverySeconds=120']);
    const { policy, figures } = JSON.parse(stdout);
    expect(policy).toEqual({ kmsCheckEverySeconds: 600, clockSkewSeconds: 30, refreshEverySeconds: 120 });
    expect(figures.propagation).toBe(3_600 + 240 + 30);
  });

  test.each([
    [['--set', 'kmsCheckEverySeconds=3000'], /kmsCheckEverySeconds \(3000\)/],
    [['--set', 'kmsCheckEvery=3'], /unknown option "kmsCheckEvery".*kmsCheckEverySeconds/],
    [['--set', 'kmsCheckEverySeconds'], /<name>=<seconds>/],
    [['--servers', '0'], /1 to 100000/],
    [['--servers', '1.5'], /whole number/],
  ])('%j is rejected with a message that names the mistake', async (args, message) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

test('a measurement leaves the event loop free between batches of rounds', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  const turnsAt: number[] = [];
  const clock = vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => {
    turnsAt.push(turns);
    return BigInt(Math.round(performance.now() * 1_000_000));
  });
  await measure({ bytes: 1_000_000, format: 'sealring', hedge: false, rounds: 100 });
  clock.mockRestore();
  clearInterval(timer);
  expect(turnsAt.at(-1)).toBeGreaterThan(turnsAt[0] ?? 0);
});

test('bench measures seal and unseal in both formats', async () => {
  const args = ['bench', '--rounds', '100', '--bytes', '100', '--format', 'python', '--json'];
  const { code, stdout } = await runCli(args, { cwd: project.cwd });
  expect(code).toBe(0);
  const { format, seal, unseal } = JSON.parse(stdout);
  expect(format).toBe('python');
  for (const { median, p99 } of [seal, unseal]) {
    expect(median).toBeGreaterThan(0);
    expect(p99).toBeGreaterThanOrEqual(median);
  }
  const text = await runCli(['bench', '--rounds', '100'], { cwd: project.cwd });
  expect(text.stdout).toMatch(/^seal +\d+\.\d +\d+\.\d$/m);
});
