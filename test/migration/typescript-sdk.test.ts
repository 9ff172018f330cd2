import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { type Fleet, type Step, withFleet } from './fleet.ts';
import { Flows } from './flows.ts';
import { Guide } from './guide.ts';
import { withServices } from './services.ts';

const TTL_SECONDS = 9;
const guide = new Guide('migrate-from-the-typescript-sdk');
afterAll(() => guide.remove());

function onFleet(run: (fleet: Fleet) => Promise<void>): Promise<void> {
  const secret = randomBytes(32).toString('base64');
  return withServices(inject('moto'), secret, (environment) => withFleet({ environment }, run));
}

/** The guide's code, with a shorter time to live, and the other wire that it names. */
function steps(wire: 'sealed' | 'signed') {
  guide.module('Before you begin', 'codec.ts');
  const ttl = ['ttlSeconds: 600', `ttlSeconds: ${TTL_SECONDS}`] as const;
  const looks = ["wire: 'sealed'", `wire: '${wire}'`] as const;
  const step = (section: string, file: string): Step => ({
    label: section,
    module: guide.module(section, `${wire}-${file}`, section.startsWith('Step') ? [ttl, looks] : [ttl]),
  });
  return {
    before: { ...step('What you have', 'before.ts'), label: 'before' },
    first: step('Step 1', 'first.ts'),
    second: step('Step 2', 'second.ts'),
    last: step('Step 3', 'last.ts'),
  };
}

describe.concurrent('a migration from a secret of the TypeScript SDK to a KMS, as in the guide', () => {
  test.each(['sealed', 'signed'] as const)('no token fails, even after a step back: wire %s', (wire) =>
    onFleet(async (fleet) => {
      const { before, first, second, last } = steps(wire);
      for (let member = 0; member < 2; member++) await fleet.add(before);
      const flows = new Flows(fleet, TTL_SECONDS);
      // Go forward, back to step 1, and forward again.
      for (const step of [first, second, first, second]) await fleet.roll(step);
      await pause(TTL_SECONDS * 1_000);
      await fleet.roll(last);
      await flows.end();

      expect(flows.failures).toEqual([]);
      expect([...flows.pairs.keys()]).toEqual(
        expect.arrayContaining([
          'before → before',
          'before → Step 1',
          'Step 1 → before',
          'Step 1 → Step 2',
          'Step 2 → Step 1',
          'Step 2 → Step 3',
          'Step 3 → Step 2',
          'Step 3 → Step 3',
        ]),
      );
      expect(flows.wentWell).toBeGreaterThan(300);
    }),
  );
});

test('tokens fail if step 1 is missing, or if step 3 comes too early', () =>
  onFleet(async (fleet) => {
    const { before, first, second, last } = steps('sealed');
    for (let member = 0; member < 2; member++) await fleet.add(before);
    const flows = new Flows(fleet, TTL_SECONDS);
    for (const step of [second, first, last]) await fleet.roll(step);
    await flows.end();
    const failed = new Set(flows.failures.map((failure) => failure.split(': ')[0]));
    expect(failed).toEqual(new Set(['Step 2 → before', 'Step 1 → Step 3']));
  }));
