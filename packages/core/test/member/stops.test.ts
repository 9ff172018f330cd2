import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
/** The interval of the checks, and so the precision of every bound. */
const STEP = 10;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

interface Stops {
  /** Seconds from the fault to the last token that any member sealed. */
  lastSeal: number;
  /** Seconds to the last unseal of a token that was sealed at the moment of the fault or later; by role. */
  readonly lastOpen: { member: number; reader: number };
}

/** Members and readers seal and unseal all the time, until none can do either. */
async function stopsAfter(fault: (all: readonly Member[]) => Promise<void>): Promise<Stops> {
  const members = await fleet.startAll(6);
  const readers = await fleet.startAll(6, { role: 'reader' });
  // Each member is at some point between two KMS checks.
  await fleet.clock.advance(2 * HOUR);
  const tokens = members.map((member) => seal(member));
  await fault([...members, ...readers]);
  const stops: Stops = { lastSeal: 0, lastOpen: { member: 0, reader: 0 } };
  for (let passed = 0; passed < 3 * HOUR; passed += STEP) {
    await fleet.clock.advance(STEP);
    for (const [i, member] of members.entries()) {
      if (!member.codec.health().canSeal) continue;
      tokens[i] = seal(member);
      stops.lastSeal = passed + STEP;
    }
    for (const [role, all] of [
      ['member', members],
      ['reader', readers],
    ] as const) {
      if (all.some((each) => tokens.some((token) => open(each, token) === 'state'))) {
        stops.lastOpen[role] = passed + STEP;
      }
    }
  }
  return stops;
}

describe('a key that is disabled at any time between two KMS checks of members and readers (F10)', () => {
  for (const kind of ['disabled', 'denied', 'not-found'] as const) {
    test(`after a key is disabled, sealing stops within 980 s and unsealing within 1 580 s, at a KMS that answers ${kind}`, async () => {
      const { lastSeal, lastOpen } = await stopsAfter(async () => {
        fleet.kms.failing = kind;
      });
      expect(lastSeal).toBeLessThanOrEqual(980);
      expect(lastOpen.member).toBeLessThanOrEqual(1_580);
      expect(lastOpen.reader).toBeLessThanOrEqual(1_580);
      // Unsealing continues for S + R after sealing.
      expect(Math.min(lastOpen.member, lastOpen.reader)).toBeGreaterThanOrEqual(600);
    });
  }

  test('after a key is disabled, sealing stops within 3 600 s and unsealing within 7 800 s, while the KMS is unreachable', async () => {
    const { lastSeal, lastOpen } = await stopsAfter(async (all) => {
      fleet.kms.failing = 'disabled';
      for (const { keyWrapper } of all) keyWrapper.cut = true;
    });
    expect(lastSeal).toBeLessThanOrEqual(3_600);
    expect(lastOpen.member).toBeLessThanOrEqual(7_800);
    expect(lastOpen.reader).toBeLessThanOrEqual(7_800);
    // A member with a fresh KMS check tolerates an outage of 2 620 s, and unseals for an hour more.
    expect(lastSeal).toBeGreaterThan(2_620);
    expect(lastOpen.member).toBeGreaterThan(2_620 + HOUR);
    expect(lastOpen.reader).toBeGreaterThan(2_620 + HOUR);
  });

  test('after a key is disabled, sealing stops within 980 s and unsealing within 1 580 s, even without the store', async () => {
    const { lastSeal, lastOpen } = await stopsAfter(async (all) => {
      fleet.kms.failing = 'disabled';
      for (const { ring } of all) ring.cut = true;
    });
    expect(lastSeal).toBeLessThanOrEqual(980);
    expect(Math.max(lastOpen.member, lastOpen.reader)).toBeLessThanOrEqual(1_580);
  });
});

test('one KMS check that passes after refusals restores sealing and unsealing, even at a reader (F10)', async () => {
  const a = await fleet.start();
  const reader = await fleet.start({ role: 'reader' });
  fleet.kms.failing = 'disabled';
  await fleet.clock.advance(2_000);
  for (const { codec } of [a, reader]) expect(codec.health()).toMatchObject({ canSeal: false, canUnseal: false });
  fleet.kms.failing = undefined;
  await fleet.clock.advance(61);
  expect(a.codec.health()).toMatchObject({ status: 'ok', canSeal: true, canUnseal: true });
  expect(open(reader, seal(a))).toBe('state');
  // Earlier refusals are forgotten: it takes as many as before.
  fleet.kms.failing = 'denied';
  while (a.codec.health().lastError === undefined) await fleet.clock.advance(1);
  expect(open(reader, seal(a))).toBe('state');
});
