import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rename, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { type KeyWrapper, KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { tryFileLock } from '../../src/stores/file-lock.ts';
import { fileRing } from '../../src/stores/file-ring.ts';
import { Draws } from '../support/draws.ts';
import { Fleet, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;

let fleet: Fleet;
let directory: string;
beforeEach(async () => {
  fleet = new Fleet();
  directory = await mkdtemp(join(tmpdir(), 'sealring-promises-'));
});
afterEach(async () => {
  await fleet.close();
  await rm(directory, { recursive: true, force: true });
});

async function entries() {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries;
}

describe('createAfter', () => {
  test('createAfter follows backoffCap for every store that several servers may share, and for file rings', () => {
    for (const storeKind of ['redis', 'postgres', 'file', 's3']) {
      for (const [refreshEverySeconds, backoffCapSeconds] of [
        [300, 60],
        [300, 3_600],
        [60, 300],
      ] as const) {
        const policy = resolvePolicy({ refreshEverySeconds, backoffCapSeconds }, { storeKind, createNow: false });
        expect(policy.createAfterSeconds).toBe(refreshEverySeconds + backoffCapSeconds);
      }
    }
    expect(resolvePolicy(undefined, { storeKind: 'memory', createNow: false }).createAfterSeconds).toBe(0);
    expect(resolvePolicy(undefined, { storeKind: 'file', createNow: true }).createAfterSeconds).toBe(0);
  });

  test('a store that lost the ring in an outage gets it back, even with a backoffCap of an hour', async () => {
    fleet.store.kind = 'shared';
    const policy = { backoffCapSeconds: 3_600 };
    // It draws the longest waits.
    const a = await fleet.start({ policy: { ...policy, createAfterSeconds: 0 }, random: new Draws(0.999).random });
    const before = await entries();
    const token = seal(a);
    fleet.store.down = true;
    await fleet.clock.advance(2 * HOUR);
    fleet.store.flush();
    fleet.store.down = false;
    const members = await fleet.startAll(3, { policy: { ...policy, startTimeoutSeconds: 6 * HOUR } });
    expect((await entries()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(fleet.kms.calls.generate).toBe(1);
    for (const member of members) expect(open(member, token)).toBe('state');
  });
});

describe('the lock of a file ring', () => {
  test('a stopped process that holds the lock of a file ring blocks other processes for ten seconds', async () => {
    const lock = join(directory, 'ring.lock');
    // Held by a running process of this machine: this one.
    expect(await tryFileLock(lock)).toBeDefined();
    expect(await tryFileLock(lock)).toBeUndefined();
    const [held = ''] = await readdir(lock);
    const seconds = Date.now() / 1_000;
    await utimes(join(lock, held), seconds - 9, seconds - 9);
    expect(await tryFileLock(lock)).toBeUndefined();
    await utimes(join(lock, held), seconds - 11, seconds - 11);
    expect(await tryFileLock(lock)).toBeDefined();
    expect(await readdir(lock)).not.toContain(held);
  });
});

describe('readiness', () => {
  /** A key wrapper that cannot unwrap keys wrapped since `isBlind` was set. */
  function blind() {
    const inner = fleet.kms.connect();
    const known = new Set<string>();
    const eye = { isBlind: false };
    const keyWrapper: KeyWrapper = {
      ...inner,
      unwrap: async (wrapped, options) => {
        const text = Buffer.from(wrapped.wrapped).toString('hex');
        if (!eye.isBlind) known.add(text);
        if (!known.has(text)) throw new KeyWrapperError('unavailable', { provider: 'local', operation: 'unwrap' });
        return inner.unwrap(wrapped, options);
      },
    };
    return { eye, keyWrapper };
  }

  for (const emergency of [true, false]) {
    test(`a member that lacks the newest active key, ${emergency ? 'an emergency' : 'a planned'} key, is not ready, and health shows that`, async () => {
      const a = await fleet.start();
      const { eye, keyWrapper } = blind();
      const b = await fleet.start({ keyWrapper });
      const reader = await fleet.start({ keyWrapper, role: 'reader' });
      eye.isBlind = true;
      const [first] = await entries();
      await a.codec.rotate({ emergency });
      const second = (await entries()).find(({ id }) => id !== first?.id);
      await fleet.clock.advance(120);
      for (const { codec } of [b, reader]) expect(codec.health()).toMatchObject({ status: 'degraded', ready: true });
      await fleet.clock.advance(((second?.activates ?? 0) - fleet.clock.wallMs()) / 1_000 + 1);
      const token = seal(a);
      expect(token.slice(4, 16)).toBe(second?.id);
      for (const member of [b, reader]) {
        expect(open(member, token)).toBe('InvalidRequestState: unknown key');
        const health = member.codec.health();
        expect(health).toMatchObject({ status: 'failing', ready: false, canUnseal: true });
        expect(health.keys.find(({ id }) => id === second?.id)?.state).not.toBe('verify-only');
        expect(health.keys.filter(({ held }) => held).map(({ id }) => id)).toEqual([first?.id]);
      }
      eye.isBlind = false;
      await fleet.clock.advance(61);
      for (const member of [b, reader]) {
        expect(open(member, token)).toBe('state');
        expect(member.codec.health()).toMatchObject({ status: 'ok', ready: true });
      }
    });
  }
});

describe('one refusal among other failures', () => {
  async function callsInOutage(kinds: readonly ('denied' | 'unavailable')[]): Promise<number> {
    const own = new Fleet();
    await own.start({ random: new Draws(0.5).random });
    await own.clock.advance(700);
    const before = own.kms.total;
    for (const kind of kinds) {
      own.kms.failing = kind;
      const { total } = own.kms;
      while (own.kms.total === total) await own.clock.advance(1);
    }
    await own.clock.advance(2 * HOUR);
    const calls = own.kms.total - before;
    await own.close();
    return calls;
  }

  test('one refusal among other failures does not raise the number of calls during an outage', async () => {
    const calm = await callsInOutage(['unavailable']);
    // For a minute the member calls it every ten seconds.
    expect(await callsInOutage(['denied', 'unavailable'])).toBeLessThanOrEqual(calm + 6);
    expect(await callsInOutage(['unavailable', 'denied', 'unavailable'])).toBeLessThanOrEqual(calm + 6);
  });
});

describe('a file ring', () => {
  const policy = {
    refreshEverySeconds: 1,
    backoffCapSeconds: 1,
    kmsCheckEverySeconds: 900,
    missRefreshSeconds: 1,
  };

  test('a file ring that is missing for a moment is not created again', async () => {
    const path = join(directory, 'ring');
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    const first = await createKmsCodec({ keyWrapper, ring: fileRing(path), policy, create: 'now' });
    const token = first.seal(Buffer.from('state'));
    await first.close();
    await rename(path, `${path}.moved`);
    const starting = createKmsCodec({ keyWrapper, ring: fileRing(path), policy });
    await sleep(500);
    await rename(`${path}.moved`, path);
    const second = await starting;
    expect(Buffer.from(second.unseal(token)).toString()).toBe('state');
    await second.close();
  });

  test('a file ring is created at once on request', async () => {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    // The test's own timeout is shorter than the six minutes after which a file ring creates itself.
    const codec = await createKmsCodec({ keyWrapper, ring: fileRing(join(directory, 'ring')), create: 'now' });
    expect(codec.health().keys).toHaveLength(1);
    await codec.close();
  });
});
