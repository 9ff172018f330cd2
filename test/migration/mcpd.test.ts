import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { type Fleet, type Step, withFleet } from './fleet.ts';
import { Flows } from './flows.ts';
import { type Change, Guide } from './guide.ts';
import { withServices } from './services.ts';

const TTL_SECONDS = 9;
const MODES = ['encrypted', 'signed'] as const;
const guide = new Guide('migrate-from-mcpd');
afterAll(() => guide.remove());

function onFleet(secret: string, run: (fleet: Fleet) => Promise<void>): Promise<void> {
  return withServices(inject('moto'), secret, (environment) => withFleet({ environment }, run));
}

/**
 * The guide's code for this mode, with a shorter time to live. Signed tokens are as mcp.d made them until June 2026.
 */
function steps(mode: (typeof MODES)[number]) {
  guide.module('Before you begin', 'codec.ts');
  const ttl = ['ttlSeconds: 300', `ttlSeconds: ${TTL_SECONDS}`] as const;
  const step = (section: string, file: string): Step => {
    const revision = section === 'Step 3' ? '' : ", revision: '2026-06'";
    const signed: Change = ["mode: 'encrypted'", `mode: 'signed'${revision}`];
    return {
      label: section,
      module: guide.module(section, `${mode}-${file}`, mode === 'signed' ? [ttl, signed] : [ttl]),
    };
  };
  return {
    before: { ...step('What you have', 'before.ts'), label: 'mcp.d' },
    first: step('Step 1', 'first.ts'),
    second: step('Step 2', 'second.ts'),
    last: step('Step 3', 'last.ts'),
  };
}

describe.concurrent('a migration from a secret of mcp.d to a KMS, as in the guide', () => {
  test.each(MODES)('no user is asked again, even after a step back: %s', (mode) =>
    onFleet(randomBytes(32).toString('hex'), async (fleet) => {
      const { before, first, second, last } = steps(mode);
      for (let member = 0; member < 2; member++) await fleet.add(before);
      const flows = new Flows(fleet, TTL_SECONDS);
      for (const step of [first, second, first, second]) await fleet.roll(step);
      await pause(TTL_SECONDS * 1_000);
      await fleet.roll(last);
      await flows.end();

      expect(flows.failures).toEqual([]);
      expect([...flows.pairs.keys()]).toEqual(
        expect.arrayContaining([
          'mcp.d → mcp.d',
          'mcp.d → Step 1',
          'Step 1 → mcp.d',
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

test('users must answer again if step 1 is skipped or step 3 comes too early', () =>
  onFleet(randomBytes(32).toString('hex'), async (fleet) => {
    const { before, first, second, last } = steps('encrypted');
    for (let member = 0; member < 2; member++) await fleet.add(before);
    const flows = new Flows(fleet, TTL_SECONDS);
    for (const step of [second, first, last]) await fleet.roll(step);
    await flows.end();
    expect(new Set(flows.failures)).toEqual(new Set(['Step 2 → mcp.d: asked again', 'Step 1 → Step 3: asked again']));
  }));

/** A token that mcp.d made. */
interface Vector {
  readonly mode: string;
  readonly bindTo: string;
  readonly expired: boolean;
  readonly keyHex: string;
  readonly subject: string;
  readonly state: string;
  readonly wire: string;
}

test.each(MODES)('tokens of mcp.d are accepted in steps 1 and 2, but not in step 3: %s', (mode) => {
  const path = new URL('../../vectors/mcp.d.json', import.meta.url);
  const all: readonly Vector[] = JSON.parse(readFileSync(path, 'utf8'));
  const made = all.filter(
    (vector) => vector.mode === mode && vector.bindTo === 'authSubject' && !vector.expired && vector.subject !== '',
  );
  const secret = made[0]?.keyHex ?? '';
  expect(made.length).toBeGreaterThan(2);
  expect(made.every(({ keyHex }) => keyHex === secret)).toBe(true);
  return onFleet(secret, async (fleet) => {
    const { first, second, last } = steps(mode);
    const [one, two, three] = [await fleet.add(first), await fleet.add(second), await fleet.add(last)];
    const askedAgain = { requestState: expect.any(String) };
    for (const { subject, state, wire } of made) {
      expect(await one.call(subject, wire)).toEqual({ text: `${state} by Step 1` });
      expect(await two.call(subject, wire)).toEqual({ text: `${state} by Step 2` });
      expect(await three.call(subject, wire)).toEqual(askedAgain);
      expect(await two.call('mallory', wire)).toEqual(askedAgain);
    }
  });
});
