import { randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
const UNKNOWN = 'InvalidRequestState: unknown key';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

async function storedKeys(): Promise<string[]> {
  const document = await fleet.store.document();
  if (document === undefined) return [];
  return parseDocument(document, 'default').entries.map(({ id, revoked }) => `${id}${revoked ? ' revoked' : ''}`);
}

/** Seconds until a member reports `status`, while it seals and unseals all the time. */
async function secondsUntil(status: string, members: readonly Member[]): Promise<number> {
  for (let seconds = 0; seconds < HOUR; seconds++) {
    if (members.every(({ codec }) => codec.health().status === status)) return seconds;
    await fleet.clock.advance(1);
    for (const from of members) {
      expect(from.codec.health().ready).toBe(true);
      if (!from.codec.health().canSeal) continue;
      const token = seal(from);
      for (const to of members) expect(open(to, token)).toBe('state');
    }
  }
  throw new Error(`not ${status} within an hour`);
}

describe('a running server whose store has lost the ring (F31)', () => {
  test('a server whose store lost the ring is always ready, degraded when it notices, and ok once the ring is written back', async () => {
    // Waits are drawn from four bytes each: long enough here to be visible.
    const random = (fill: Uint8Array): void => void (fill.length === 4 ? fill.fill(0xc0) : randomFillSync(fill));
    const a = await fleet.start({ random });
    const before = await storedKeys();
    fleet.store.flush();
    // refreshEvery.
    expect(await secondsUntil('degraded', [a])).toBeLessThanOrEqual(300);
    expect(await storedKeys()).toEqual([]);
    // The wait of up to 5 s, which spares the others the same write, and one more turn.
    expect(await secondsUntil('ok', [a])).toBeLessThanOrEqual(11);
    expect(await storedKeys()).toEqual(before);
    expect(a.codec.health().lastError).toBeUndefined();
  });

  test('a reader whose store lost the ring is degraded until a member writes the ring back', async () => {
    const a = await fleet.start();
    const reader = await fleet.start({ role: 'reader' });
    const before = await storedKeys();
    a.ring.cut = true;
    fleet.store.flush();
    expect(await secondsUntil('degraded', [reader])).toBeLessThanOrEqual(300);
    await fleet.clock.advance(600);
    expect(reader.codec.health()).toMatchObject({
      status: 'degraded',
      ready: true,
      lastError: { source: 'store', kind: 'unavailable' },
    });
    expect(open(reader, seal(a))).toBe('state');
    expect(await storedKeys()).toEqual([]);
    a.ring.cut = false;
    // A backoff and a repair of the member, then a backoff of the reader.
    await fleet.clock.advance(200);
    expect(await storedKeys()).toEqual(before);
    expect(reader.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });

  test('a server whose store cannot be reached is degraded, and seals and unseals throughout', async () => {
    const members = [await fleet.start(), await fleet.start()];
    fleet.store.down = true;
    expect(await secondsUntil('degraded', members)).toBeLessThanOrEqual(300);
    await fleet.clock.advance(HOUR - 300);
    for (const { codec } of members) expect(codec.health()).toMatchObject({ status: 'degraded', ready: true });
    // From propagation − S on, others might seal with a key that these have not read; they continue anyway.
    await fleet.clock.advance(4 * HOUR);
    for (const { codec } of members) {
      expect(codec.health()).toMatchObject({ status: 'failing', ready: false, canSeal: true, canUnseal: true });
    }
    expect(open(members[1] as Member, seal(members[0] as Member))).toBe('state');
    fleet.store.down = false;
    await fleet.clock.advance(61);
    for (const { codec } of members) expect(codec.health().status).toBe('ok');
  });
});

describe('a store that falls back to an older copy (F31)', () => {
  test('an older copy in the store does not undo a revocation by the newest key, at any member or in the store', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const token = seal(a);
    await a.codec.rotate();
    await fleet.clock.advance(120);
    const copy = (await fleet.store.document()) ?? '';
    await a.codec.revoke(token.slice(4, 16));
    await b.codec.refresh();
    const before = await storedKeys();
    expect(before.filter((key) => key.endsWith('revoked'))).toEqual([`${token.slice(4, 16)} revoked`]);
    for (let i = 0; i < 3; i++) {
      await fleet.store.put(copy);
      expect((await storedKeys()).filter((key) => key.endsWith('revoked'))).toEqual([]);
      await fleet.clock.advance(400);
      expect((await storedKeys()).toSorted()).toEqual(before.toSorted());
      for (const member of [a, b]) expect(open(member, token)).toBe(UNKNOWN);
    }
    // A member that starts now reads the revocation.
    expect(open(await fleet.start(), token)).toBe(UNKNOWN);
  });

  test('an older copy without the newest key, which the previous key certifies, is repaired, and no token is lost', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const copy = (await fleet.store.document()) ?? '';
    const early = seal(a);
    await a.codec.rotate();
    await fleet.clock.advance(2 * HOUR);
    const before = await storedKeys();
    const late = seal(a);
    expect(late.slice(4, 16)).not.toBe(early.slice(4, 16));
    await fleet.store.put(copy);
    await fleet.clock.advance(400);
    expect((await storedKeys()).toSorted()).toEqual(before.toSorted());
    const c = await fleet.start();
    for (const member of [a, b, c]) {
      expect([open(member, early), open(member, late), open(member, seal(c))]).toEqual(['state', 'state', 'state']);
    }
  });

  test('a key that an older copy lacks and a key that was created from that copy end up in one ring', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const copy = (await fleet.store.document()) ?? '';
    await a.codec.rotate();
    await b.codec.refresh();
    a.ring.cut = true;
    // The copy continues with a member that has not read the lost key.
    await fleet.store.put(copy);
    const late = await fleet.start();
    b.ring.cut = true;
    await late.codec.rotate({ emergency: true });
    a.ring.cut = false;
    b.ring.cut = false;
    await fleet.clock.advance(1_000);
    expect(await storedKeys()).toHaveLength(3);
    for (const from of [a, b, late]) {
      const token = seal(from);
      for (const to of [a, b, late]) expect(open(to, token)).toBe('state');
      expect(from.codec.health().status).toBe('ok');
    }
  });
});

describe('a ring that was created while an older one was missing from the store (F31)', () => {
  test('a member that created a ring while an older one was missing switches to the older ring, even after a read that a token caused', async () => {
    const a = await fleet.start();
    const before = (await fleet.store.document()) ?? '';
    await fleet.clock.advance(600);
    a.ring.cut = true;
    fleet.store.flush();
    const b = await fleet.start();
    expect(await storedKeys()).toHaveLength(1);
    const own = seal(b);
    await fleet.store.put(before);
    const token = seal(a);
    const prepared = b.codec.prepare(token);
    await fleet.clock.advance(2);
    await prepared;
    expect(open(b, token)).toBe(UNKNOWN);
    // Its next read, before it writes its own ring.
    await Promise.allSettled([b.codec.refresh(), fleet.clock.advance(2)]);
    expect(open(b, token)).toBe('state');
    expect(open(b, own)).toBe('state');
    a.ring.cut = false;
    await fleet.clock.advance(400);
    expect(await storedKeys()).toEqual([token.slice(4, 16)]);
  });
});
