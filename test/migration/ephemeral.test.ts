import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { pythonWithPackage } from '../python/python-package.ts';
import { until } from '../support/until.ts';
import { type Fleet, type Step, withFleet } from './fleet.ts';
import { Flows } from './flows.ts';
import { type Change, Guide } from './guide.ts';
import { withServices } from './services.ts';

const TTL_SECONDS = 9;
const ttl = (from: string): Change => [from, from.replace(/\d+$/, String(TTL_SECONDS))];
const guide = new Guide('migrate-from-ephemeral');
const fromSdk = new Guide('migrate-from-the-typescript-sdk');
const fromMcpd = new Guide('migrate-from-mcpd');
let python = '';

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterAll(() => {
  for (const each of [guide, fromSdk, fromMcpd]) each.remove();
});

/** Old servers, as the guides show them. */
const EPHEMERAL = {
  'an ephemeral key of this SDK': () => guide.module('What you have', 'old.ts', [ttl('ttlSeconds: 600')]),
  'an ephemeral key of the Python SDK': () => guide.module('What you have', 'old.py', [ttl('ttl=600')]),
};
const SHARED = {
  'a secret of the TypeScript SDK': () => fromSdk.module('What you have', 'old.ts', [ttl('ttlSeconds: 600')]),
  "mcp.d's wire": () => fromMcpd.module('What you have', 'old.ts', [ttl('ttlSeconds: 300')]),
};

/** The guide's code, with a shorter time to live. */
function steps() {
  guide.module('Before you begin', 'codec.ts');
  guide.module('The handler in front of the old server', 'draining.ts');
  const step = (label: string, file: string): Step => ({
    label,
    module: guide.module(label, file, [ttl('ttlSeconds: 600')]),
  });
  return { first: step('Step 1', 'first.ts'), second: step('Step 2', 'second.ts'), last: step('Step 3', 'last.ts') };
}

function onFleet(run: (fleet: Fleet) => Promise<void>): Promise<void> {
  const secret = randomBytes(32).toString('hex');
  return withServices(inject('moto'), secret, (environment) => withFleet({ environment, python }, run));
}

/** The whole migration; `between` are the steps between the first step 1 and step 3. */
async function drain(fleet: Fleet, module: string, between: readonly Step[]): Promise<Flows> {
  const { first, last } = steps();
  const old = await fleet.add({ label: 'old', module });
  const flows = new Flows(fleet, TTL_SECONDS);
  fleet.tell({ OLD_SERVER: old.url });
  for (let member = 0; member < 2; member++) await fleet.add(first);
  await fleet.settle();
  fleet.withdraw(old);
  for (const step of between) await fleet.roll(step);
  await pause(TTL_SECONDS * 1_000);
  await old.stop();
  await fleet.roll(last);
  await flows.end();

  expect([...flows.pairs.keys()]).toEqual(
    expect.arrayContaining(['old → old', 'Step 2 → Step 1', 'Step 2 → Step 3', 'Step 3 → Step 2', 'Step 3 → Step 3']),
  );
  expect(flows.wentWell).toBeGreaterThan(300);
  return flows;
}

describe.concurrent('a migration from an ephemeral key to a KMS with a drain, as in the guide', () => {
  test.each(Object.entries(EPHEMERAL))('no token fails, even after a step back: from %s', (_, module) =>
    onFleet(async (fleet) => {
      const { first, second } = steps();
      const { failures } = await drain(fleet, module(), [second, first, second]);
      expect(failures).toEqual([]);
    }),
  );
});

describe('a migration from another codec to a KMS, with the same drain', () => {
  test.each(Object.entries(SHARED))('no token fails: from %s', (_, module) =>
    onFleet(async (fleet) => {
      const { failures } = await drain(fleet, module(), [steps().second]);
      expect(failures).toEqual([]);
    }),
  );
});

describe.concurrent('the same migration with a mistake', () => {
  test('tokens fail without a drain', () =>
    onFleet(async (fleet) => {
      await fleet.add({ label: 'old', module: EPHEMERAL['an ephemeral key of this SDK']() });
      const flows = new Flows(fleet, TTL_SECONDS);
      await fleet.add(steps().last);
      const failed = () => new Set(flows.failures.map((failure) => failure.split(': ')[0]));
      await until(() => failed().size > 1);
      await flows.end();
      expect(failed()).toEqual(new Set(['old → Step 3', 'Step 3 → old']));
    }));

  test('tokens fail if the drain is too short', () =>
    onFleet(async (fleet) => {
      const { first, second } = steps();
      const old = await fleet.add({ label: 'old', module: EPHEMERAL['an ephemeral key of this SDK']() });
      fleet.tell({ OLD_SERVER: old.url });
      await fleet.add(first);
      fleet.withdraw(old);
      const flows = new Flows(fleet, TTL_SECONDS);
      await fleet.settle();
      await fleet.roll(second);
      await old.stop();
      await flows.end();
      expect(flows.failures.length).toBeGreaterThan(0);
      expect(flows.pairs.get('old → old')).toBeGreaterThan(0);
    }));
});
