import { policyFigures } from '@sealring/cli';
import { type KmsCodec, SealUnavailableError } from '@sealring/core';
import { describe, expect, test, vi } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND, World, type WorldPolicy } from './world.ts';

// Computation only, on machines that may be busy.
vi.setConfig({ testTimeout: 300_000 });

const SERVERS = 4;
const PAYLOAD = new TextEncoder().encode('simulated');

/** A running fleet, before anything is counted. */
async function fleet(policy: Partial<WorldPolicy> = {}): Promise<World> {
  const world = new World({
    seed: 1,
    members: SERVERS,
    days: 3,
    loss: 0,
    clockSkewSeconds: 300,
    quantumMs: 20,
    policy,
  });
  world.kms.namesVersions = true;
  // A world without events ends at once, before the members have started.
  world.timeline.every(SECOND, () => undefined);
  for (const member of world.members) member.start();
  await world.timeline.advance(HOUR, 20);
  return world;
}

interface Counted {
  readonly reasons: readonly string[];
  /** Seconds after the beginning. */
  readonly firstRefusal: number | undefined;
  readonly sealed: number;
  readonly unopened: number;
}

/** Once a minute one server seals, and all unseal that token and one that has almost expired. */
async function tokens({ members, timeline, policy }: World, ms: number): Promise<Counted> {
  const sealed: { readonly token: string; readonly at: number }[] = [];
  const reasons = new Set<string>();
  const began = timeline.nowMs;
  let firstRefusal: number | undefined;
  let unopened = 0;
  for (let minute = 0; timeline.nowMs < began + ms; minute++) {
    await timeline.advance(timeline.nowMs + MINUTE, 20);
    const codecs = members.map(({ codec }) => codec).filter((codec) => codec !== undefined);
    const made = sealedBy(codecs[minute % codecs.length] as KmsCodec);
    if ('token' in made) sealed.push({ token: made.token, at: timeline.nowMs });
    else {
      reasons.add(made.reason);
      firstRefusal ??= (timeline.nowMs - began) / SECOND;
    }
    const isAlive = ({ at }: { readonly at: number }): boolean =>
      timeline.nowMs - at < policy.tokenLifetimeSeconds * SECOND;
    for (const one of new Set([sealed.find(isAlive), sealed.findLast(isAlive)])) {
      if (one !== undefined) unopened += codecs.filter((codec) => !opens(codec, one.token)).length;
    }
  }
  return { reasons: [...reasons], firstRefusal, sealed: sealed.length, unopened };
}

function sealedBy(codec: KmsCodec): { readonly token: string } | { readonly reason: string } {
  try {
    return { token: codec.seal(PAYLOAD) };
  } catch (error) {
    if (error instanceof SealUnavailableError) return { reason: error.reason };
    throw error;
  }
}

function opens(codec: KmsCodec, token: string): boolean {
  try {
    codec.unseal(token);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidRequestState') return false;
    throw error;
  }
}

function end({ members }: World): void {
  for (const member of members) member.crash();
}

describe('the figures that the command line gives for a policy', () => {
  const policies: readonly Partial<WorldPolicy>[] = [
    {},
    { keyVersionEverySeconds: 900 },
    { keyVersionEverySeconds: 300, kmsCheckEverySeconds: 600 },
    { keyVersionEverySeconds: 0, refreshEverySeconds: 120 },
  ];
  test.each(policies)('the figures are within a tenth of the calls that a fleet makes: %j', async (policy) => {
    const world = await fleet(policy);
    const { kms, store, timeline } = world;
    const before = { kms: kms.total - kms.looks, looks: kms.looks, reads: store.calls.read };
    await timeline.advance(timeline.nowMs + 2 * DAY, 20);
    const perServerDay = (calls: number): number => calls / SERVERS / 2;
    const figures = policyFigures(policy);
    for (const [counted, expected] of [
      [kms.total - kms.looks - before.kms, figures.kmsCallsPerServerDay],
      [kms.looks - before.looks, figures.versionChecksPerServerDay],
      [store.calls.read - before.reads, figures.storeReadsPerServerDay],
    ] as const) {
      expect(Math.abs(perServerDay(counted) - expected)).toBeLessThanOrEqual(0.1 * expected);
    }
    end(world);
  });

  test('the figures hold for rotations, and no token is lost in a tolerated outage', async () => {
    const world = await fleet();
    expect(await tokens(world, DAY)).toMatchObject({ reasons: [], unopened: 0 });
    world.kmsFails('unavailable', 2_600 * SECOND);
    world.storeFails(2_600 * SECOND);
    expect(policyFigures({}).kmsOutage).toBeGreaterThanOrEqual(2_600);
    expect(await tokens(world, DAY)).toMatchObject({ reasons: [], unopened: 0 });
    expect(world.firstSeen.size).toBeGreaterThanOrEqual(3);
    end(world);
  });

  test('the figures hold in a KMS outage that exceeds them: sealing stops within the bounds, and unsealing continues (F10)', async () => {
    const world = await fleet();
    const { kmsOutage, sealOutage } = policyFigures({});
    world.kmsFails('unavailable', 7_000 * SECOND);
    const { reasons, firstRefusal, unopened } = await tokens(world, 7_000 * SECOND);
    expect(reasons).toEqual(['KMS check too old']);
    expect(firstRefusal).toBeGreaterThan(kmsOutage);
    expect(firstRefusal).toBeLessThanOrEqual(sealOutage + 120);
    expect(unopened).toBe(0);
    end(world);
  });

  test('the figures hold in a store outage that exceeds them: sealing stops within the bound', async () => {
    const world = await fleet();
    const { storeOutage } = policyFigures({});
    world.storeFails(25_000 * SECOND);
    const { reasons, firstRefusal } = await tokens(world, 25_000 * SECOND);
    expect(reasons).toEqual(['ring read too old']);
    expect(firstRefusal).toBeLessThanOrEqual(storeOutage + 120);
    end(world);
  });
});
