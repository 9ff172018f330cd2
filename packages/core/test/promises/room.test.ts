import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;

let fleet: Fleet;
let members: Member[];
beforeEach(async () => {
  fleet = new Fleet();
  members = [await fleet.start(), await fleet.start()];
});
afterEach(() => fleet.close());

async function entries() {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries;
}

/** Requests rotations until one is refused; returns how many were made. */
async function filled(member: Member): Promise<number> {
  for (let made = 0; ; made++) {
    try {
      await member.codec.rotate();
    } catch (error) {
      // oxlint-disable-next-line vitest/no-conditional-expect
      expect(error).toMatchObject({ name: 'RingStoreError', kind: 'too-large' });
      return made;
    }
  }
}

/** The longest time in which a member could not seal, in seconds, checked each minute. */
async function longestBreak(hours: number): Promise<number> {
  const since = members.map(() => 0);
  let longest = 0;
  for (let minute = 0; minute < 60 * hours; minute++) {
    for (const [i, { codec }] of members.entries()) {
      since[i] = codec.health().canSeal ? 0 : (since[i] ?? 0) + 60;
      longest = Math.max(longest, since[i] ?? 0);
    }
    await fleet.clock.advance(60);
  }
  return longest;
}

/** Every member seals every half hour, and every member unseals the token. */
async function workFor(hours: number): Promise<void> {
  for (let i = 0; i < 2 * hours; i++) {
    for (const from of members) {
      const token = seal(from);
      expect(members.map((to) => open(to, token))).toEqual(members.map(() => 'state'));
    }
    await fleet.clock.advance(HOUR / 2);
  }
}

describe('a ring that was filled by rotations (F43)', () => {
  test('a ring that several members filled does not refuse a revocation, although each member counts only the keys that it knows', async () => {
    const [a, b] = members as [Member, Member];
    await filled(a);
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + HOUR * 1_000));
    // A member that starts now knows the revoked keys only as revoked.
    const late = await fleet.start();
    members.push(late);
    await fleet.clock.advance(400);
    expect(await filled(late)).toBe(47);
    await fleet.clock.advance(400);
    expect(a.codec.health().keys.length).toBeGreaterThan(64);
    const sealing = a.codec.health().sealingKey ?? '';
    await a.codec.revoke(sealing);
    expect((await entries()).length).toBeLessThanOrEqual(64);
    await fleet.clock.advance(400);
    for (const member of members) {
      const key = member.codec.health().keys.find(({ id }) => id === sealing);
      expect(key?.state ?? 'revoked').toBe('revoked');
    }
    await workFor(2);
    expect(b.codec.health().canSeal).toBe(true);
  });

  test('a ring filled by rotations does not refuse a revocation, and its members seal without a break for days', async () => {
    const [a, b] = members as [Member, Member];
    expect(await filled(a)).toBe(47);
    expect(a.codec.health()).toMatchObject({ status: 'degraded', ready: true, problems: [{ kind: 'nearly-full' }] });
    const token = seal(b);
    await b.codec.revoke(token.slice(4, 16));
    expect(await entries()).toHaveLength(49);
    // 2 × 300 s: both have read it.
    await fleet.clock.advance(600);
    expect(members.map((to) => open(to, token))).toEqual(Array(2).fill('InvalidRequestState: unknown key'));
    await workFor(26);
    // On schedule, while the ring is still that full.
    expect((await entries()).length).toBeGreaterThanOrEqual(50);
    await workFor(2 * 24);
    expect((await entries()).length).toBeLessThan(10);
    for (const { codec } of members) expect(codec.health()).toMatchObject({ status: 'ok', problems: [] });
    await a.codec.rotate();
  });

  test('a ring that is filled repeatedly continues to rotate by itself', async () => {
    const [a] = members as [Member, Member];
    const sealedWith = new Set<string | undefined>();
    for (let day = 0; day < 6; day++) {
      await filled(a);
      for (let i = 0; i < 6; i++) {
        await workFor(4);
        sealedWith.add(a.codec.health().sealingKey);
      }
      expect((await entries()).length).toBeLessThanOrEqual(60);
    }
    expect(sealedWith.size).toBeGreaterThanOrEqual(6);
  });

  test('a full ring accepts only a revocation, reports that no key may seal, and recovers by itself', async () => {
    const [a] = members as [Member, Member];
    await filled(a);
    await fleet.clock.advance(100);
    for (;;) {
      const { sealingKey } = a.codec.health();
      if (sealingKey === undefined) break;
      await a.codec.revoke(sealingKey);
    }
    expect(await entries()).toHaveLength(64);
    expect(
      (await entries()).filter(({ revoked, activates }) => revoked === undefined && activates <= fleet.clock.wallMs()),
    ).toEqual([]);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    expect(a.codec.health()).toMatchObject({ status: 'failing', canSeal: false });
    expect(a.codec.health().problems.map(({ kind }) => kind)).toContain('no-sealing-key');
    // Keys that were planned before are not revoked: the first of them is active after its propagation.
    await fleet.clock.advance(4_600);
    for (const { codec } of members) expect(codec.health()).toMatchObject({ ready: true, canSeal: true });
    // Two members that know more than there is room for must not keep overwriting each other with the same facts in
    // another order.
    const { writes } = fleet.store;
    await fleet.clock.advance(4 * HOUR);
    expect(fleet.store.writes).toBe(writes);
    // When all of them expire at once, a day and a half later, a member notices at its next read.
    expect(await longestBreak(2 * 24)).toBeLessThanOrEqual(2 * 300);
    await workFor(24);
    for (const { codec } of members) expect(codec.health()).toMatchObject({ status: 'ok', problems: [] });
  });

  test('a revocation that has left the ring reaches a member that missed it, at the next read', async () => {
    const [a, b] = members as [Member, Member];
    const [token, key] = [seal(b), b.codec.health().sealingKey ?? ''];
    await filled(a);
    b.ring.cut = true;
    await a.codec.revoke(key);
    for (let i = 0; i < 20; i++) {
      await fleet.clock.advance(700);
      await a.codec.revoke(a.codec.health().sealingKey ?? '');
    }
    expect((await entries()).map(({ id }) => id)).not.toContain(key);
    expect(open(b, token)).toBe('state');
    b.ring.cut = false;
    // Both read it twice: b puts the key back, and a reports it as revoked.
    await fleet.clock.advance(4 * 300);
    expect(members.map((to) => open(to, token))).toEqual(Array(2).fill('InvalidRequestState: unknown key'));
  });

  test('a ring whose 64 keys are all revoked receives a key as soon as there is room', async () => {
    const [a] = members as [Member, Member];
    await filled(a);
    for (let i = 0; i < 70; i++) {
      const live = (await entries()).find(({ revoked }) => revoked === undefined);
      if (live === undefined) break;
      await a.codec.revoke(live.id);
    }
    expect((await entries()).filter(({ revoked }) => revoked !== undefined)).toHaveLength(64);
    await fleet.clock.advance(600);
    expect(() => seal(a)).toThrow(SealUnavailableError);
    // Once every member has read the revocations, 2 × 300 + 60 s, and the ring is read again.
    await fleet.clock.advance(400);
    expect((await entries()).length).toBeLessThanOrEqual(64);
    for (const { codec } of members) expect(codec.health()).toMatchObject({ ready: true, canSeal: true });
    await workFor(24);
  });
});
