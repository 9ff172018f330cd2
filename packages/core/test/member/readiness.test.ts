import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import type { KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { RingStoreError, type RingStoreErrorKind } from '../../src/contracts/ring-store.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** All possible values of health(); none of them asks a supervisor to restart a process. */
const STATUSES = ['ok', 'degraded', 'failing'];
const MEMBERS_OF_HEALTH = [
  'canSeal',
  'canUnseal',
  'keys',
  'lastError',
  'lastKmsCheck',
  'lastRefresh',
  'problems',
  'ready',
  'sealUntil',
  'sealingKey',
  'status',
];

function healthOf(member: Member) {
  const health = member.codec.health();
  expect(Object.keys(health).toSorted()).toEqual(MEMBERS_OF_HEALTH);
  expect(STATUSES).toContain(health.status);
  expect(health.ready).toBe(health.status !== 'failing');
  return health;
}

describe('failures elsewhere, which never require a restart of this process (F14)', () => {
  for (const kind of ['throttled', 'unavailable', 'corrupt'] as const satisfies readonly KeyWrapperErrorKind[]) {
    test(`a KMS that answers ${kind} for 40 minutes makes a member degraded, but still ready`, async () => {
      const a = await fleet.start();
      // Advance until shortly before the first KMS check is due.
      await fleet.clock.advance(700);
      const proved = healthOf(a).lastKmsCheck;
      fleet.kms.failing = kind;
      for (let minute = 0; minute < 40; minute++) {
        await fleet.clock.advance(60);
        expect(healthOf(a).ready).toBe(true);
        expect(open(a, seal(a))).toBe('state');
      }
      expect(healthOf(a)).toMatchObject({
        status: 'degraded',
        lastError: { source: 'kms', kind },
        lastKmsCheck: proved,
      });
      fleet.kms.failing = undefined;
      await fleet.clock.advance(61);
      expect(healthOf(a)).toMatchObject({ status: 'ok', lastError: undefined });
    });
  }

  for (const kind of ['denied', 'disabled', 'not-found'] as const satisfies readonly KeyWrapperErrorKind[]) {
    test(`a KMS that answers ${kind} once makes a member degraded, not failing`, async () => {
      const a = await fleet.start();
      fleet.kms.failing = kind;
      while (healthOf(a).lastError === undefined) await fleet.clock.advance(1);
      expect(healthOf(a)).toMatchObject({ status: 'degraded', ready: true, lastError: { source: 'kms', kind } });
      expect(open(a, seal(a))).toBe('state');
      fleet.kms.failing = undefined;
      await fleet.clock.advance(20);
      expect(healthOf(a).status).toBe('ok');
    });

    test(`a KMS that answers ${kind} for three hours makes a member not ready until its process recovers with the keys that it kept`, async () => {
      const a = await fleet.start();
      const b = await fleet.start({ role: 'reader' });
      const before = healthOf(a).keys;
      await fleet.clock.advance(1_500);
      const { writes } = fleet.store;
      fleet.kms.failing = kind;
      await fleet.clock.advance(HOUR);
      expect(() => seal(a)).toThrow(SealUnavailableError);
      await fleet.clock.advance(2 * HOUR);
      for (const member of [a, b]) {
        expect(healthOf(member)).toMatchObject({ status: 'failing', ready: false, canSeal: false, canUnseal: false });
        // The keys that a restart would lose, and could not get back from this KMS.
        expect(healthOf(member).keys).toEqual(before.map((key) => ({ ...key, state: expect.any(String) as string })));
        expect(healthOf(member).keys.every(({ held }) => held)).toBe(true);
      }
      const restarted = fleet.start();
      await expect(restarted).rejects.toMatchObject({ name: 'KeyWrapperError', kind });
      fleet.kms.failing = undefined;
      await fleet.clock.advance(61);
      for (const member of [a, b]) expect(healthOf(member)).toMatchObject({ status: 'ok', ready: true });
      expect(open(b, seal(a))).toBe('state');
      expect(fleet.store.writes).toBe(writes);
    });
  }

  for (const kind of ['unavailable', 'denied', 'corrupt'] as const satisfies readonly RingStoreErrorKind[]) {
    test(`a store that answers ${kind} for an hour makes a member degraded, but still ready`, async () => {
      const ring = fleet.store.connect();
      const failing: { kind?: RingStoreErrorKind } = {};
      const read = ring.read.bind(ring);
      const a = await fleet.start({
        ring: {
          ...ring,
          read: (options) => {
            return failing.kind === undefined ? read(options) : Promise.reject(new RingStoreError(failing.kind, 'x'));
          },
        },
      });
      failing.kind = kind;
      await fleet.clock.advance(301);
      for (let minute = 0; minute < 60; minute++) {
        await fleet.clock.advance(60);
        expect(healthOf(a)).toMatchObject({ status: 'degraded', ready: true, lastError: { source: 'store', kind } });
        expect(open(a, seal(a))).toBe('state');
      }
      delete failing.kind;
      await fleet.clock.advance(61);
      expect(healthOf(a)).toMatchObject({ status: 'ok', lastError: undefined });
    });
  }

  test('a member without the successor of a revoked key is not ready while the successor’s tokens live, even if a newer key seals', async () => {
    const [a, b] = [await fleet.start(), await fleet.start()];
    await a.codec.rotate();
    await fleet.clock.advance(HOUR);
    b.keyWrapper.cut = true;
    await a.codec.revoke(healthOf(a).sealingKey ?? '');
    await fleet.clock.advance(HOUR / 8);
    const successor = healthOf(a).sealingKey;
    const token = seal(a);
    await fleet.clock.advance(HOUR / 4);
    // The key of the rotation seals by now, at both.
    expect(healthOf(a).sealingKey).not.toBe(successor);
    expect(healthOf(b)).toMatchObject({ canSeal: true, sealingKey: healthOf(a).sealingKey, ready: false });
    expect(open(a, token)).toBe('state');
    expect(open(b, token)).toBe('InvalidRequestState: unknown key');
    b.keyWrapper.cut = false;
    await fleet.clock.advance(61);
    expect(healthOf(b)).toMatchObject({ status: 'ok', ready: true });
    expect(open(b, token)).toBe('state');
  });

  test('health() makes no call to the KMS or the store, however often it is called and whatever the state', async () => {
    const a = await fleet.start();
    const { reads } = fleet.store;
    const { total } = fleet.kms;
    for (let i = 0; i < 1_000; i++) healthOf(a);
    fleet.clock.suspend(2 * HOUR);
    for (let i = 0; i < 1_000; i++) expect(healthOf(a).ready).toBe(false);
    expect([fleet.store.reads, fleet.kms.total]).toEqual([reads, total]);
  });

  test('the documentation of health() states that health is never to be used for liveness', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
    const source = readFileSync(join(import.meta.dirname, '../../src/codec/codec-health.ts'), 'utf8');
    for (const text of [readme, source]) {
      expect(text).toMatch(/never for liveness/);
    }
  });
});
