import { createKmsCodec, type KmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { keyPhases, type RingKey } from '../src/index.ts';

const HOUR_MS = 3_600_000;
const MASTER_KEY = Buffer.from('c5a31dfd08b04a2e7f5d1c9b3e8a6470f2d9b8c7a6e5d4c3b2a190817263544f', 'hex');

/** A ring of one member, whose clock the test sets. */
async function ringAt(start: string) {
  const ring = memoryRing();
  let ms = Date.parse(start);
  const began = ms;
  const clock = { wallMs: () => ms, monotonicNs: () => BigInt(ms - began) * 1_000_000n };
  const codec = await createKmsCodec({ ring, keyWrapper: localKeyWrapper({ masterKey: MASTER_KEY }), clock });
  return {
    codec,
    now: () => new Date(ms),
    pass: (more: number) => {
      ms += more;
    },
  };
}

function keysOf(codec: KmsCodec, revokedAt?: Date): readonly RingKey[] {
  return codec.health().keys.map((key) => (key.state === 'revoked' ? { ...key, revokedAt } : key));
}

describe('the phases of a key', () => {
  test('a key that is active at once seals from its creation', async () => {
    const { codec, now } = await ringAt('2026-11-21T00:00:00Z');
    const [key] = keysOf(codec);
    const [phases] = keyPhases(keysOf(codec), now());
    await codec.close();
    expect(key?.activates.getTime()).toBeLessThan(now().getTime());
    expect(phases?.seals).toEqual({ from: now().getTime(), until: key?.sealsUntil.getTime() });
    expect(phases?.waits).toEqual({ from: now().getTime(), until: now().getTime() });
  });

  test('a key moves from sealing to reserve when the next key becomes active', async () => {
    const { codec, now } = await ringAt('2026-11-21T00:00:00Z');
    await codec.rotate();
    const [, next] = keysOf(codec);
    const [first, second] = keyPhases(keysOf(codec), now());
    await codec.close();
    expect(first?.seals.until).toBe(next?.activates.getTime());
    expect(first?.reserve.from).toBe(next?.activates.getTime());
    expect(second?.waits).toEqual({ from: next?.created.getTime(), until: next?.activates.getTime() });
  });

  test('the phases of a revoked key end at the revocation, and its successor seals from then on and not before', async () => {
    const { codec, now, pass } = await ringAt('2026-11-21T00:00:00Z');
    pass(2 * HOUR_MS);
    const revokedAt = now();
    await codec.revokeAllBefore(now());
    pass(HOUR_MS);
    const keys = keysOf(codec, revokedAt);
    const phases = keyPhases(keys, now());
    await codec.close();
    const of = (state: RingKey['state']) => phases[keys.findIndex((key) => key.state === state)];
    expect(of('revoked')?.seals.until).toBe(revokedAt.getTime());
    expect(of('revoked')?.unseals.until).toBe(revokedAt.getTime());
    expect(of('active')?.seals.from).toBe(revokedAt.getTime());
  });

  test('the phases of a key are not cut short if its successor was revoked before it sealed', async () => {
    const { codec, now } = await ringAt('2026-11-21T00:00:00Z');
    await codec.rotate();
    const [first, second] = codec.health().keys;
    await codec.revoke(second?.id ?? '');
    const keys = keysOf(codec, now());
    const phases = keyPhases(keys, now());
    await codec.close();
    const at = (id: string | undefined) => phases[keys.findIndex((key) => key.id === id)];
    expect(at(second?.id)?.seals.until).toBeLessThanOrEqual(at(second?.id)?.seals.from ?? 0);
    expect(at(first?.id)?.seals.until).not.toBe(second?.activates.getTime());
  });

  test.each([
    ['activated later', 2, 'a', 1, 'b', [5, 2]],
    ['activated at the same time, with the greater id', 1, 'b', 1, 'a', [5, 1]],
  ])('the key that was %s seals, and the other key is in reserve', (_name, one, oneId, two, twoId, ends) => {
    const at = (hour: number) => new Date(hour * HOUR_MS);
    const keyOf = (id: string, hour: number): RingKey => ({
      id,
      state: 'active',
      held: true,
      created: at(0),
      activates: at(hour),
      sealsUntil: at(5),
      unsealsUntil: at(9),
    });
    const phases = keyPhases([keyOf(oneId, one), keyOf(twoId, two)], at(3));
    expect(phases.map(({ seals }) => seals.until / HOUR_MS)).toEqual(ends);
    expect(phases[1]).toEqual({
      waits: { from: 0, until: HOUR_MS },
      seals: { from: HOUR_MS, until: (ends[1] ?? 0) * HOUR_MS },
      reserve: { from: (ends[1] ?? 0) * HOUR_MS, until: 5 * HOUR_MS },
      unseals: { from: 5 * HOUR_MS, until: 9 * HOUR_MS },
    });
  });

  test('a key whose sealing period is empty replaces no other key', () => {
    const at = (hour: number) => new Date(hour * HOUR_MS);
    const life = { state: 'active' as const, held: true, created: at(0), unsealsUntil: at(9) };
    const keys = [
      { ...life, id: 'a', activates: at(1), sealsUntil: at(5) },
      { ...life, id: 'b', activates: at(2), sealsUntil: at(2) },
    ];
    expect(keyPhases(keys, at(3))[0]?.seals.until).toBe(5 * HOUR_MS);
  });

  test('a revocation dated before a key’s creation or in the future counts from the creation or from now', () => {
    const at = (hour: number) => new Date(hour * HOUR_MS);
    const life = { id: 'a', held: true, created: at(2), activates: at(2), sealsUntil: at(5), unsealsUntil: at(9) };
    const endOf = (revokedAt: Date, state: RingKey['state'] = 'revoked') =>
      (keyPhases([{ ...life, state, revokedAt }], at(4))[0]?.unseals.until ?? 0) / HOUR_MS;
    expect([endOf(at(1)), endOf(at(3)), endOf(at(8)), endOf(at(3), 'active')]).toEqual([2, 3, 4, 9]);
  });

  test('a revoked phase ends at the time of the report if the revocation has no time', async () => {
    const { codec, now, pass } = await ringAt('2026-11-21T00:00:00Z');
    await codec.revokeAllBefore(now());
    pass(HOUR_MS);
    const keys = keysOf(codec);
    const phases = keyPhases(keys, now());
    await codec.close();
    expect(phases[keys.findIndex(({ state }) => state === 'revoked')]?.unseals.until).toBe(now().getTime());
  });
});
