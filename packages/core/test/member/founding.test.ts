import { randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { encodeDocument, parseDocument } from '../../src/ring/document.ts';
import { Fleet, open, seal } from '../support/fleet.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
  fleet.store.kind = 'shared';
  // This is longer than the time between any two starts: without a claim all members would create a data key.
  fleet.kms.latency = () => pause(fleet.clock, 2_000);
});

afterEach(() => fleet.close());

const AT_ONCE = { policy: { createAfterSeconds: 0 } };

async function ring() {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

test('ten members that share a store in one process need only one data key', async () => {
  fleet.store.kind = 'memory';
  await fleet.startAll(10, { ring: fleet.store.connect() });
  expect(fleet.kms.calls).toEqual({ generate: 1, wrap: 0, unwrap: 10 });
});

describe('a store that other processes share', () => {
  test('fifty members with separate connections need one data key, its KMS check, and one unwrap for each other member (F6, F8)', async () => {
    const members = await fleet.startAll(50, AT_ONCE);
    expect((await ring()).entries).toHaveLength(1);
    expect(fleet.kms.calls).toEqual({ generate: 1, wrap: 0, unwrap: 50 });
    const tokens = members.map((member) => seal(member));
    for (const token of tokens) for (const member of members) expect(open(member, token)).toBe('state');
  });

  test("many members that start with `create: 'now'` create one ring", async () => {
    await fleet.startAll(10, { create: 'now' });
    expect(fleet.kms.calls).toEqual({ generate: 1, wrap: 0, unwrap: 10 });
  });

  test('a member takes over the claim of a process that died', async () => {
    const dying = new AbortController();
    const dead = createKmsCodec({
      ...AT_ONCE,
      ring: fleet.store.connect(),
      keyWrapper: fleet.kms.connect(),
      clock: fleet.clock,
      random: (fill) => void randomFillSync(fill),
      signal: dying.signal,
    });
    const ended = dead.then(
      () => 'started',
      () => 'died',
    );
    await fleet.clock.advance(1);
    expect((await ring()).entries).toHaveLength(0);
    fleet.store.down = true;
    dying.abort();
    expect(await ended).toBe('died');
    fleet.store.down = false;
    const members = await fleet.startAll(5, AT_ONCE);
    expect((await ring()).entries).toHaveLength(1);
    // One by the dead member; one more, with its KMS check; four unwraps.
    expect(fleet.kms.calls).toEqual({ generate: 2, wrap: 0, unwrap: 5 });
    expect(members.every((member) => member.codec.health().ready)).toBe(true);
  });

  test('no claim is left if the creation was refused, so that the next member need not wait', async () => {
    fleet.kms.failing = 'denied';
    await expect(fleet.start(AT_ONCE)).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    fleet.kms.failing = undefined;
    const at = fleet.clock.wallMs();
    await fleet.start(AT_ONCE);
    expect(fleet.clock.wallMs() - at).toBeLessThan(10_000);
  });

  test('a withdrawn claim is not written again, because other members would count its age from when they first saw it', async () => {
    const claims: string[] = [];
    fleet.store.connect().watch?.(() => {
      const { claim } = parseDocument(fleet.store.written ?? '', 'default');
      if (claim !== undefined) claims.push(claim);
    });
    fleet.kms.failing = 'unavailable';
    const member = fleet.start(AT_ONCE);
    await fleet.clock.advance(20);
    expect(claims).toHaveLength(1);
    expect((await ring()).claim).toBeUndefined();
    fleet.kms.failing = undefined;
    await member;
    expect(new Set(claims).size).toBe(2);
  });

  test('a creator that was presumed dead loses the race and adopts the ring', async () => {
    let patient: (() => void) | undefined;
    fleet.kms.latency = () =>
      new Promise((resolve) => {
        patient = resolve;
      });
    const slow = fleet.start({ policy: { createAfterSeconds: 0, kmsTimeoutSeconds: 300 } });
    await fleet.clock.advance(1);
    fleet.kms.latency = undefined;
    const other = await fleet.start({ policy: { createAfterSeconds: 0, kmsTimeoutSeconds: 1 } });
    patient?.();
    const adopted = await slow;
    expect((await ring()).entries).toHaveLength(1);
    expect(open(adopted, seal(other))).toBe('state');
    expect(open(other, seal(adopted))).toBe('state');
  });

  test('a claim is not a ring: a member replaces it with the ring, a reader waits, and no start accepts it (F31)', async () => {
    const running = await fleet.start(AT_ONCE);
    const { entries } = await ring();
    fleet.store.flush();
    await fleet.store.put(encodeDocument({ ring: 'default', claim: 'x'.repeat(22), entries: [] }));
    await expect(fleet.start({ create: 'never' })).rejects.toMatchObject({ name: 'RingStoreError' });
    const reader = fleet.start({ role: 'reader' });
    await running.codec.refresh().catch(() => undefined);
    await fleet.clock.advance(10);
    expect((await ring()).entries.map(({ id }) => id)).toEqual(entries.map(({ id }) => id));
    expect(open(await reader, seal(running))).toBe('state');
    expect(fleet.kms.calls.generate).toBe(1);
  });
});
