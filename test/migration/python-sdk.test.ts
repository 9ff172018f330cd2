import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { pythonWithPackage } from '../python/python-package.ts';
import { type Fleet, type Step, withFleet } from './fleet.ts';
import { Flows } from './flows.ts';
import { type Change, Guide } from './guide.ts';
import { withServices } from './services.ts';

const TTL_SECONDS = 10;
const guide = new Guide('migrate-from-the-python-sdk');
let python = '';

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterAll(() => guide.remove());

/** A fleet, and the two processes that keep its ring. */
function onFleet(run: (fleet: Fleet) => Promise<void>): Promise<void> {
  const secret = randomBytes(32).toString('base64');
  return withServices(inject('moto'), secret, async (environment) => {
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const module = guide.module('Before you begin', 'codec.ts');
    const keepers = [1, 2].map(() =>
      spawn(process.execPath, [module], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...inherited, ...environment },
      }),
    );
    const ended = keepers.map((keeper) => once(keeper, 'exit'));
    try {
      await withFleet({ environment, python }, run);
      expect(keepers.map(({ exitCode }) => exitCode)).toEqual([null, null]);
    } finally {
      for (const keeper of keepers) keeper.kill('SIGKILL');
      await Promise.all(ended);
    }
  });
}

/** The guide's code, with a shorter time to live. */
function steps() {
  guide.module('Before you begin', 'codecs_in_use.py');
  const inPython = (section: string, file: string): Step => ({
    label: section,
    module: guide.module(section, file, [['ttl=600', `ttl=${TTL_SECONDS}`]]),
  });
  const ttl = ['ttlSeconds: 600', `ttlSeconds: ${TTL_SECONDS}`] as const;
  // The changes that the guide describes for a server that joins in step 1.
  const sealsOld = ['codec.seal(payload)', 'fixed.seal(payload)'] as const;
  const inTypeScript = (label: string, file: string, changes: readonly Change[]): Step => ({
    label,
    module: guide.module('A TypeScript server in the same fleet', file, [ttl, ...changes]),
  });
  return {
    before: { ...inPython('What you have', 'before.py'), label: 'before' },
    first: inPython('Step 1', 'first.py'),
    second: inPython('Step 2', 'second.py'),
    last: inPython('Step 3', 'last.py'),
    early: inTypeScript('early TypeScript', 'early.ts', [sealsOld]),
    joining: inTypeScript('TypeScript', 'joining.ts', []),
  };
}

describe.concurrent('a migration from keys of the Python SDK to a KMS, as in the guide', () => {
  test('no token fails, even after a step back and with TypeScript servers in the fleet', () =>
    onFleet(async (fleet) => {
      const { before, first, second, last, early, joining } = steps();
      for (let member = 0; member < 2; member++) await fleet.add(before);
      const flows = new Flows(fleet, TTL_SECONDS);
      const beside = await fleet.add(early);
      for (const step of [first, second, first]) await fleet.roll(step, beside);
      const typescript = await fleet.add(joining);
      await fleet.settle();
      // The early one goes too, and a Python server replaces it.
      await fleet.roll(second, typescript);
      await pause(TTL_SECONDS * 1_000);
      await fleet.roll(last, typescript);
      await flows.end();

      expect(flows.failures).toEqual([]);
      expect([...flows.pairs.keys()]).toEqual(
        expect.arrayContaining([
          'before → before',
          'before → early TypeScript',
          'early TypeScript → before',
          'before → Step 1',
          'Step 1 → before',
          'Step 1 → Step 2',
          'Step 2 → Step 1',
          'Step 1 → TypeScript',
          'TypeScript → Step 1',
          'TypeScript → TypeScript',
          'Step 2 → Step 3',
          'Step 3 → Step 2',
          'Step 3 → TypeScript',
          'TypeScript → Step 3',
        ]),
      );
      expect(flows.wentWell).toBeGreaterThan(300);
    }));

  test('tokens fail if step 1 is missing, or if step 3 comes too early', () =>
    onFleet(async (fleet) => {
      const { before, first, second, last } = steps();
      for (let member = 0; member < 2; member++) await fleet.add(before);
      const flows = new Flows(fleet, TTL_SECONDS);
      for (const step of [second, first, last]) await fleet.roll(step);
      await flows.end();
      const failed = new Set(flows.failures.map((failure) => failure.split(': ')[0]));
      expect(failed).toEqual(new Set(['Step 2 → before', 'Step 1 → Step 3']));
    }));
});
