import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { type RingStore, RingStoreError } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

async function ring(): Promise<ReturnType<typeof parseDocument>> {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

function sealingKey(member: Member): string | undefined {
  return member.codec.health().sealingKey;
}

describe('a ring that rotates', () => {
  test('unseals every token everywhere for its whole life, over ten days, and stays small (F8)', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const sealedWith = new Set<string>();
    const tokens: { token: string; until: number }[] = [];
    for (let hour = 0; hour < 10 * 24; hour++) {
      await fleet.clock.advance(HOUR);
      const now = fleet.clock.wallMs();
      for (const member of [a, b]) {
        tokens.push({ token: seal(member, `hour ${hour}`), until: now + HOUR * 1_000 });
        sealedWith.add(sealingKey(member) ?? 'none');
      }
      for (const { token, until } of tokens.splice(0).filter((sealed) => sealed.until > now)) {
        expect(open(a, token)).toMatch(/^hour/);
        expect(open(b, token)).toMatch(/^hour/);
        tokens.push({ token, until });
      }
      expect((await ring()).entries.length).toBeLessThanOrEqual(4);
      expect(a.codec.health().status).toBe('ok');
    }
    // One key a day, the first one included.
    expect(sealedWith.size).toBeGreaterThanOrEqual(10);
    expect(sealedWith.size).toBeLessThanOrEqual(12);
  });

  test('loses nothing if the KMS is down when a rotation is due, and rotates later (F7)', async () => {
    const a = await fleet.start();
    // The first key is due for a successor 81 900 s after its activation.
    await fleet.clock.advance(81_000);
    const before = sealingKey(a);
    fleet.kms.failing = 'unavailable';
    for (let i = 0; i < 40; i++) {
      await fleet.clock.advance(60);
      expect(open(a, seal(a))).toBe('state');
    }
    expect(a.codec.health().status).toBe('degraded');
    expect((await ring()).entries).toHaveLength(1);
    fleet.kms.failing = undefined;
    await fleet.clock.advance(2 * HOUR);
    expect((await ring()).entries).toHaveLength(2);
    await fleet.clock.advance(2 * HOUR);
    expect(sealingKey(a)).not.toBe(before);
  });

  test('all members unwrap the next key before any of them seals with that key', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const first = sealingKey(a);
    await a.codec.rotate();
    await fleet.clock.advance(4_400);
    expect([sealingKey(a), sealingKey(b)]).toEqual([first, first]);
    await fleet.clock.advance(200);
    const second = sealingKey(a);
    expect(second).not.toBe(first);
    expect(open(b, seal(a))).toBe('state');
  });

  test('an emergency successor starts to seal after a refresh interval, a backoff and the clock skew', async () => {
    const a = await fleet.start();
    const first = sealingKey(a);
    await a.codec.rotate({ emergency: true });
    await fleet.clock.advance(655);
    expect(sealingKey(a)).toBe(first);
    await fleet.clock.advance(10);
    expect(sealingKey(a)).not.toBe(first);
  });
});

test('a member that has read a new key only after a push can publish the next key at once', async () => {
  const a = await fleet.start();
  const b = await fleet.start();
  await a.codec.rotate();
  await fleet.clock.advance(0);
  await b.codec.rotate();
  expect((await ring()).entries).toHaveLength(3);
});

test('a key that has sealed stays active and seals when a clock steps back to before its activation (F13)', async () => {
  const a = await fleet.start({ policy: { clockSkewSeconds: 600 } });
  await a.codec.rotate();
  await fleet.clock.advance(4_900);
  const second = sealingKey(a);
  expect(open(a, seal(a))).toBe('state');
  fleet.clock.step(-600);
  expect(open(a, seal(a))).toBe('state');
  expect(sealingKey(a)).toBe(second);
  expect(a.codec.inspect(seal(a)).state).toBe('active');
});

describe('the creation of a ring', () => {
  test('a member writes nothing after one failed unwrap at its start (F9)', async () => {
    await fleet.start();
    const before = await fleet.store.document();
    const { writes } = fleet.store;
    fleet.kms.failNext = 1;
    const b = await fleet.start();
    expect(b.codec.health().ready).toBe(true);
    expect(fleet.store.writes).toBe(writes);
    expect(await fleet.store.document()).toBe(before);
  });

  test('a store that cannot be read is never taken for an empty one (F9, F31)', async () => {
    fleet.store.down = true;
    await expect(fleet.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(fleet.store.writes).toBe(0);
  });

  test('garbage in the store is refused and left alone', async () => {
    await fleet.store.put('not a ring');
    await expect(fleet.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    expect(await fleet.store.document()).toBe('not a ring');
  });

  test('with create: never, an empty store is an error', async () => {
    await expect(fleet.start({ create: 'never' })).rejects.toMatchObject({ name: 'RingStoreError' });
    expect(fleet.store.writes).toBe(0);
  });

  test('a starting member must find the ring absent for createAfter before it creates one', async () => {
    const at = fleet.clock.wallMs();
    const a = await fleet.start({ policy: { createAfterSeconds: 360 } });
    expect(fleet.clock.wallMs() - at).toBeGreaterThanOrEqual(360_000);
    expect(fleet.store.writes).toBe(1);
    expect(open(a, seal(a))).toBe('state');
  });

  test('a ring whose keys have all expired receives a new key', async () => {
    const a = await fleet.start();
    await a.codec.close();
    await fleet.clock.advance(5 * DAY);
    const [ended] = (await ring()).entries;
    const b = await fleet.start();
    expect(open(b, seal(b))).toBe('state');
    expect((await ring()).entries.map(({ id }) => id)).not.toContain(ended?.id);
  });
});

describe('outages', () => {
  test('a member seals through a KMS outage of 2 620 s, and stops by 3 600 s after its last KMS check (F10)', async () => {
    const a = await fleet.start();
    await fleet.clock.advance(HOUR);
    fleet.kms.failing = 'unavailable';
    await fleet.clock.advance(2_620);
    expect(open(a, seal(a))).toBe('state');
    const token = seal(a);
    await fleet.clock.advance(981);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    expect(a.codec.health()).toMatchObject({ status: 'failing', ready: false, canSeal: false, canUnseal: true });
    expect(open(a, token)).toBe('state');
    fleet.kms.failing = undefined;
    await fleet.clock.advance(61);
    expect(open(a, seal(a))).toBe('state');
  });

  test('refusals of the KMS stop sealing, then unsealing, but one stray refusal stops neither (F10)', async () => {
    const a = await fleet.start();
    const token = seal(a);
    fleet.kms.failing = 'denied';
    await expect(a.codec.refresh()).resolves.toBeUndefined();
    await fleet.clock.advance(980);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    expect(open(a, token)).toBe('state');
    await fleet.clock.advance(600);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
    fleet.kms.failing = undefined;
    await fleet.clock.advance(61);
    expect(open(a, token)).toBe('state');
    expect(open(a, seal(a))).toBe('state');
  });

  test('a store outage of five hours is tolerated', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    fleet.store.down = true;
    for (let i = 0; i < 10; i++) {
      await fleet.clock.advance(HOUR / 2);
      expect(open(b, seal(a))).toBe('state');
    }
    fleet.store.down = false;
    await fleet.clock.advance(120);
    expect(a.codec.health().status).toBe('ok');
  });

  test('after an hour of suspension, which the wall clock shows, the first seal fails and starts a refresh (F28)', async () => {
    const a = await fleet.start();
    fleet.clock.suspend(HOUR);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    await fleet.clock.advance(2);
    expect(open(a, seal(a))).toBe('state');
  });

  test('a KMS that hangs holds at most four calls (F29)', async () => {
    const a = await fleet.start();
    fleet.kms.hanging = true;
    fleet.kms.mostInFlight = 0;
    // Calls that ignore their deadline and never end.
    for (let i = 0; i < 30; i++) {
      const refreshing = Promise.allSettled([a.codec.refresh()]);
      await fleet.clock.advance(60);
      await refreshing;
    }
    expect(fleet.kms.mostInFlight).toBeGreaterThan(0);
    expect(fleet.kms.mostInFlight).toBeLessThanOrEqual(4);
    expect(open(a, seal(a))).toBe('state');
  });
});

describe('revocation', () => {
  test('a revoked key unseals nothing, at once on the revoking member and after a refresh on others, and its successor seals (F15)', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const token = seal(a);
    expect(open(b, token)).toBe('state');
    const first = sealingKey(a) ?? '';
    await a.codec.revoke(first);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
    const fresh = seal(a);
    await b.codec.refresh();
    expect(open(b, token)).toBe('InvalidRequestState: unknown key');
    expect(open(b, fresh)).toBe('state');
    expect(a.codec.health().keys.find((key) => key.id === first)).toMatchObject({ state: 'revoked', held: false });
  });

  test('a revocation survives a rollback of the store, and the loss of everything in it (F26, F31)', async () => {
    const a = await fleet.start();
    const old = (await fleet.store.document()) ?? '';
    const token = seal(a);
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await fleet.store.put(old);
    await fleet.clock.advance(HOUR);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
    expect((await ring()).entries.filter((entry) => entry.revoked !== undefined)).toHaveLength(1);
    fleet.store.flush();
    await fleet.clock.advance(HOUR);
    expect((await ring()).entries.filter((entry) => entry.revoked !== undefined)).toHaveLength(1);
    expect(open(a, token)).toBe('InvalidRequestState: unknown key');
  });

  test('a member that was cut off while all its keys were revoked recovers, even after further writes', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    b.ring.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await a.codec.rotate();
    await fleet.clock.advance(HOUR);
    b.ring.cut = false;
    await fleet.clock.advance(120);
    expect(b.codec.health().status).toBe('ok');
    expect(open(b, seal(a))).toBe('state');
  });
});

describe('an untrusted store (F26)', () => {
  test('a lost document is written back, and no second ring is created (F31)', async () => {
    const a = await fleet.start();
    const before = await ring();
    const token = seal(a);
    fleet.store.flush();
    const b = await fleet.start({ policy: { createAfterSeconds: 360 } });
    expect((await ring()).entries.map((entry) => entry.id)).toEqual(before.entries.map((entry) => entry.id));
    expect(open(b, token)).toBe('state');
  });

  test('a ring of an attacker who may write to the store and wrap data keys is not adopted', async () => {
    const a = await fleet.start();
    const honest = (await fleet.store.document()) ?? '';
    const token = seal(a);
    // The attacker's own fleet, with the same KMS key and ring name, revoking every unknown key.
    const attacker = new Fleet();
    Object.assign(attacker, { kms: fleet.kms });
    await attacker.start();
    const forged = parseDocument((await attacker.store.document()) ?? '', 'default');
    await fleet.store.put((await attacker.store.document()) ?? '');
    await attacker.close();
    await expect(a.codec.refresh()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    expect(a.codec.health().keys.map((key) => key.id)).not.toContain(forged.entries[0]?.id);
    expect(open(a, token)).toBe('state');
    expect(a.codec.health().lastError).toMatchObject({ source: 'store', kind: 'corrupt' });
    await fleet.store.put(honest);
    await a.codec.refresh();
    expect(a.codec.health().status).toBe('ok');
  });

  test('an older document is repaired, and no key is lost', async () => {
    const a = await fleet.start();
    const old = (await fleet.store.document()) ?? '';
    await a.codec.rotate();
    await fleet.clock.advance(2 * HOUR);
    const token = seal(a);
    await fleet.store.put(old);
    await fleet.clock.advance(600);
    expect((await ring()).entries).toHaveLength(2);
    const b = await fleet.start();
    expect(open(b, token)).toBe('state');
  });
});

test.each([
  ['lost', 'unavailable', 'after a backoff, not a whole refresh later', 2],
  ['refused', 'denied', 'a whole refresh later', 1],
] as const)('a repairing write that is %s (%s) is repeated %s', async (_, kind, __, keys) => {
  const line = fleet.store.connectUnwatched();
  const lost = { wanted: 0, writes: 0 };
  const write: RingStore['write'] = (document, options) => {
    if (lost.writes === lost.wanted) return line.write(document, options);
    lost.writes += 1;
    return Promise.reject(new RingStoreError(kind, 'lost'));
  };
  const a = await fleet.start({ ring: { kind: 'lossy', read: (options) => line.read(options), write } });
  const old = (await fleet.store.document()) ?? '';
  await a.codec.rotate();
  await fleet.clock.advance(2 * HOUR);
  await fleet.store.put(old);
  lost.wanted = 1;
  for (let waited = 0; lost.writes === 0 && waited < 600; waited++) await fleet.clock.advance(1);
  expect(lost.writes).toBe(1);
  // backoffCap, and a wait of up to 5 s.
  await fleet.clock.advance(60 + 5 + 1);
  expect((await ring()).entries).toHaveLength(keys);
});

test('unknown key ids cause at most one read of the store per missRefresh, and no KMS call (F5)', async () => {
  const a = await fleet.start();
  const stranger = new Fleet();
  const token = seal(await stranger.start());
  const { reads } = fleet.store;
  const { total } = fleet.kms;
  for (let i = 0; i < 1_000; i++) expect(open(a, token)).toBe('InvalidRequestState: unknown key');
  await fleet.clock.advance(9);
  expect(fleet.store.reads - reads).toBe(1);
  expect(fleet.kms.total).toBe(total);
  await stranger.close();
});

test('prepare reads the ring for an unknown key, so that unseal can accept its token', async () => {
  const a = await fleet.start();
  const b = await fleet.start();
  await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
  const token = seal(a);
  expect(open(b, token)).toBe('InvalidRequestState: unknown key');
  await fleet.clock.advance(11);
  await b.codec.prepare(token);
  expect(open(b, token)).toBe('state');
});

test('prepare returns no promise if there is nothing to wait for', async () => {
  const member = await fleet.start();
  expect(member.codec.prepare(seal(member))).toBeUndefined();
  expect(member.codec.prepare()).toBeUndefined();
  const other = await new Fleet().start();
  expect(member.codec.prepare(seal(other))).toBeInstanceOf(Promise);
  await other.codec.close();
});

describe('a token that prepare receives', () => {
  /** Whether `prepare` ends although no time passes. */
  async function waits(member: Member, token: string): Promise<boolean> {
    let ended = false;
    const prepared = Promise.resolve(member.codec.prepare(token)).finally(() => {
      ended = true;
    });
    await fleet.clock.advance(0);
    const waited = !ended;
    await fleet.clock.advance(2);
    await prepared;
    return waited;
  }

  test.each([
    ['the KMS hangs', () => void (fleet.kms.hanging = true)],
    ['the store hangs', () => void (fleet.store.hanging = true)],
  ])('a token does not wait while %s, once that is known (F29)', async (_, hang) => {
    const a = await fleet.start();
    const token = seal(a);
    hang();
    await fleet.clock.advance(1_000);
    for (let i = 0; i < 20; i++) {
      expect(await waits(a, token)).toBe(false);
      expect(open(a, token)).toBe('state');
      await fleet.clock.advance(60);
    }
  });

  test('waits for a read if its key is unknown, even if the store is known to have failed', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    b.ring.cut = true;
    await fleet.clock.advance(1_000);
    expect(b.codec.health().status).toBe('degraded');
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const token = seal(a);
    b.ring.cut = false;
    await b.codec.prepare(token);
    expect(open(b, token)).toBe('state');
  });

  test('waits again if it is the first after a suspension in the middle of an outage', async () => {
    const a = await fleet.start();
    const token = seal(a);
    fleet.kms.failing = 'unavailable';
    await fleet.clock.advance(1_000);
    fleet.kms.failing = undefined;
    fleet.clock.suspend(900);
    const { total } = fleet.kms;
    await a.codec.prepare(token);
    expect(fleet.kms.total).toBeGreaterThan(total);
  });
});

describe('several key wrappers', () => {
  const wrappers = () => [
    localKeyWrapper({ masterKey: randomBytes(32) }),
    localKeyWrapper({ masterKey: randomBytes(32) }),
  ];

  test('every key wrapper wraps every data key, and any one of them can unwrap it', async () => {
    const [a, b] = wrappers();
    const both = await fleet.start({ keyWrapper: [a, b] as KeyWrapper[] });
    expect((await ring()).entries[0]?.wraps).toHaveLength(2);
    const onlyB = await fleet.start({ keyWrapper: b as KeyWrapper });
    expect(open(onlyB, seal(both))).toBe('state');
  });

  test('a missing wrap of one of two wrappers of the same provider is added by a member that can make it', async () => {
    const [a, b] = wrappers();
    const first = await fleet.start({ keyWrapper: a as KeyWrapper });
    const both = await fleet.start({ keyWrapper: [a, b] as KeyWrapper[] });
    expect((await ring()).entries[0]?.wraps).toHaveLength(1);
    await both.codec.refresh();
    expect((await ring()).entries[0]?.wraps).toHaveLength(2);
    const onlyB = await fleet.start({ keyWrapper: b as KeyWrapper });
    await first.codec.refresh();
    expect(open(onlyB, seal(first))).toBe('state');
  });

  test('with a quorum of one, a wrapper that is down does not prevent the publication of a key', async () => {
    const down = { ...fleet.kms.connect('other-kms'), cut: true };
    const healthy = localKeyWrapper({ masterKey: randomBytes(32) });
    fleet.kms.failing = 'unavailable';
    const member = await fleet.start({ keyWrapper: [healthy, down], wrapQuorum: 1 });
    expect((await ring()).entries[0]?.wraps.map((wrap) => wrap.provider)).toEqual(['local']);
    fleet.kms.failing = undefined;
    await member.codec.refresh();
    expect((await ring()).entries[0]?.wraps.map((wrap) => wrap.provider)).toEqual(['local', 'other-kms']);
  });

  test('without a quorum, a key is published only if all wrappers answer', async () => {
    fleet.kms.failing = 'denied';
    const keyWrapper = [localKeyWrapper({ masterKey: randomBytes(32) }), fleet.kms.connect('other-kms')];
    await expect(fleet.start({ keyWrapper })).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    expect(await fleet.store.document()).toBeUndefined();
  });
});

test('a ring whose only unrevoked key is propagating receives a key that seals at once', async () => {
  const a = await fleet.start();
  await a.codec.rotate();
  await a.codec.revoke(sealingKey(a) ?? '');
  expect(open(a, seal(a))).toBe('state');
});

test('the codec closes its key wrappers only if it was configured to do so', async () => {
  const closed: string[] = [];
  const starting = new Fleet();
  const wrapper = (name: string) => ({ ...starting.kms.connect(), close: async () => void closed.push(name) });
  const shared = await starting.start({ keyWrapper: wrapper('shared') });
  const own = await starting.start({ keyWrapper: wrapper('own'), closeKeyWrappers: true });
  await shared.codec.close();
  await own.codec.close();
  expect(closed).toEqual(['own']);
});
