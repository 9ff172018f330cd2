import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

async function entries() {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries;
}

describe('wrong arguments', () => {
  for (const [what, options] of [
    ['a misspelt option', { emergancy: true }],
    ['a wrong type', { emergency: 'yes' }],
    ['a number', 5],
    ['null', null],
  ] as const) {
    test(`rotate refuses ${what}, and rotates nothing`, async () => {
      const { codec } = await fleet.start();
      await expect(codec.rotate(options as never)).rejects.toThrow(TypeError);
      expect(await entries()).toHaveLength(1);
    });
  }

  test('prepare refuses an unknown option and a signal that is not an AbortSignal', async () => {
    const { codec } = await fleet.start();
    expect(() => codec.prepare('x', { sgnal: 1 } as never)).toThrow(/unknown option "sgnal"/);
    expect(() => codec.prepare('x', { signal: 1 } as never)).toThrow(/signal must be an AbortSignal/);
  });
});

describe('a start that waits because the ring is absent', () => {
  const slow = { policy: { createAfterSeconds: 360, startTimeoutSeconds: 120 } };

  test('starts from the ring that another member created during the wait', async () => {
    fleet.store.kind = 'shared';
    const members = await fleet.startAll(5, slow);
    expect(fleet.kms.calls.generate).toBe(1);
    for (const from of members) for (const to of members) expect(open(to, seal(from))).toBe('state');
  });

  test('continues after one failed read', async () => {
    const starting = fleet.start(slow);
    const outage = pause(fleet.clock, 200_000).then(async () => {
      fleet.store.down = true;
      await pause(fleet.clock, 5_000);
      fleet.store.down = false;
    });
    const member = await starting;
    await outage;
    expect(open(member, seal(member))).toBe('state');
  });

  test('continues after a few failures of the KMS while it creates the ring', async () => {
    fleet.kms.failNext = 4;
    const member = await fleet.start(slow);
    expect(open(member, seal(member))).toBe('state');
  });

  test('fails with the KMS error that prevented the creation', async () => {
    fleet.store.kind = 'shared';
    fleet.kms.failing = 'unavailable';
    const hopeless = { create: 'now', policy: { startTimeoutSeconds: 30 } } as const;
    await expect(fleet.start(hopeless)).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
  });

  test('creates a ring in a memory store that holds only a claim', async () => {
    const claim = '{"format":"sealring/ring/1","ring":"default","claim":"AAAAAAAAAAAAAAAAAAAAAA","keys":[]}';
    await fleet.store.put(claim);
    const member = await fleet.start();
    expect(open(member, seal(member))).toBe('state');
  });
});

describe('a rotation that is overdue and fails', () => {
  test('leaves the member degraded, with the cause, until it succeeds; sealUntil shows when the last key ends (F7)', async () => {
    const { codec } = await fleet.start();
    await fleet.clock.advance(20 * HOUR);
    fleet.kms.wrapFailing = 'denied';
    await fleet.clock.advance(8 * HOUR);
    expect(codec.health()).toMatchObject({ status: 'degraded', lastError: { source: 'kms', kind: 'denied' } });
    const [only] = await entries();
    await fleet.clock.advance(2 * HOUR);
    const left = (only?.sealsUntil ?? 0) - fleet.clock.wallMs();
    expect(left).toBeLessThan(HOUR * 1_000);
    expect(codec.health().sealUntil?.getTime()).toBeLessThanOrEqual(only?.sealsUntil ?? 0);
    fleet.kms.wrapFailing = undefined;
    await fleet.clock.advance(0.4 * HOUR);
    expect(codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });
});

test('running members refuse and overwrite a stored ring of another format (F26)', async () => {
  const member = await fleet.start({ policy: { refreshEverySeconds: 10, propagationSeconds: 4_500 } });
  const document = (await fleet.store.document()) ?? '';
  await fleet.store.put(`${document}\n{"macs":{}}`);
  await expect(member.codec.refresh()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
  expect(member.codec.health().status).toBe('degraded');
  expect(open(member, seal(member))).toBe('state');
  await fleet.clock.advance(30);
  expect(await fleet.store.document()).toBe(document);
  expect(member.codec.health().status).toBe('ok');
});

test('a leaked key can be revoked even when no further rotation can be requested', async () => {
  const member = await fleet.start();
  for (let i = 0; i < 47; i++) {
    await member.codec.rotate({ emergency: true });
    await fleet.clock.advance(1_000);
  }
  expect(await entries()).toHaveLength(48);
  await expect(member.codec.rotate({ emergency: true })).rejects.toMatchObject({ kind: 'too-large' });
  const leaked = member.codec.health().sealingKey ?? '';
  const token = seal(member);
  await member.codec.revoke(leaked);
  expect(open(member, token)).toMatch(/^InvalidRequestState/);
  expect(open(member, seal(member))).toBe('state');
  expect(seal(member).slice(4, 16)).not.toBe(leaked);
});

describe('several key wrappers at a start', () => {
  test('a start makes one call per key wrapper, without retries, if one hangs for half a second and one answers', async () => {
    const member = await fleet.start({ keyWrapper: [fleet.kms.connect('a'), fleet.kms.connect('b')] });
    const hanging = { ...fleet.kms.connect('a'), unwrap: () => new Promise<never>(() => undefined) };
    const at = fleet.clock.wallMs();
    const second = await fleet.start({ keyWrapper: [hanging, fleet.kms.connect('b')] });
    expect(fleet.clock.wallMs() - at).toBeLessThanOrEqual(2_000);
    expect(open(second, seal(member))).toBe('state');
    const before = fleet.kms.calls.unwrap;
    await fleet.start({ keyWrapper: [fleet.kms.connect('a'), fleet.kms.connect('b')] });
    expect(fleet.kms.calls.unwrap - before).toBe(1);
  });

  test('a start fails at startTimeout if no key wrapper answers, with the error of each of them', async () => {
    await fleet.start({ keyWrapper: [fleet.kms.connect('a'), fleet.kms.connect('b')] });
    const hanging = (provider: string) => ({
      ...fleet.kms.connect(provider),
      unwrap: () => new Promise<never>(() => undefined),
    });
    const at = fleet.clock.wallMs();
    const starting = fleet.start({ keyWrapper: [hanging('a'), hanging('b')], policy: { startTimeoutSeconds: 3 } });
    const error: unknown = await starting.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(fleet.clock.wallMs() - at).toBeLessThanOrEqual(4_000);
    expect(error).toBeInstanceOf(KeyWrapperError);
    expect((error as KeyWrapperError).summary.causes?.map(({ summary }) => summary.provider)).toEqual(['a', 'b']);
  });
});

test('a member whose rotation failed is ok again when another one has rotated', async () => {
  const [a, b] = await fleet.startAll(2);
  if (a === undefined || b === undefined) throw new Error('two members were to start');
  await fleet.clock.advance(20 * HOUR);
  fleet.kms.wrapFailing = 'unavailable';
  await fleet.clock.advance(4 * HOUR);
  expect([a, b].map(({ codec }) => codec.health().status)).toEqual(['degraded', 'degraded']);
  fleet.kms.wrapFailing = undefined;
  await fleet.clock.advance(2 * HOUR);
  expect([a, b].map(({ codec }) => codec.health().status)).toEqual(['ok', 'ok']);
  expect(await entries()).toHaveLength(2);
});
