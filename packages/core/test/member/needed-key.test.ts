import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { encodeDocument, parseDocument, type RingEntry } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { Thief } from '../support/thief.ts';

const HOUR = 3_600;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
  // In a ring of this process alone, members take turns.
  fleet.store.kind = 'shared';
});
afterEach(() => fleet.close());

async function entries(): Promise<readonly RingEntry[]> {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries;
}

async function unrevoked(): Promise<readonly RingEntry[]> {
  return (await entries()).filter(({ revoked }) => revoked === undefined);
}

/** Revokes the active key, by a member that is cut off from the KMS: without a successor. */
async function revokedWithoutSuccessor(member: Member): Promise<void> {
  member.keyWrapper.cut = true;
  const revoked = member.codec.revoke(member.codec.health().sealingKey ?? '');
  await fleet.clock.advance(30);
  await revoked;
  member.keyWrapper.cut = false;
}

/** Seconds in which a member could not seal. */
async function breakOf(members: readonly Member[], seconds: number): Promise<number> {
  let broken = 0;
  for (let passed = 0; passed < seconds; passed += 20) {
    await fleet.clock.advance(20);
    if (members.some(({ codec }) => !codec.health().canSeal)) broken += 20;
  }
  return broken;
}

describe('a ring without a key that seals', () => {
  test('only one of many members that notice the problem at the same moment creates a key that seals', async () => {
    const members = await fleet.startAll(12);
    const made: string[] = [];
    for (const { keyWrapper } of members.slice(1)) {
      const generate = keyWrapper.generate?.bind(keyWrapper);
      Object.assign(keyWrapper, {
        generate: (...asked: Parameters<NonNullable<typeof generate>>) => {
          made.push('asked');
          return generate?.(...asked);
        },
      });
    }
    fleet.kms.latency = () => pause(fleet.clock, 100);
    // Every member reads it in the same moment.
    await revokedWithoutSuccessor(members[0] as Member);
    await fleet.clock.advance(60);
    expect(await unrevoked()).toHaveLength(1);
    expect(made).toHaveLength(1);
    for (const from of members) {
      const token = seal(from);
      expect(members.map((to) => open(to, token))).toEqual(members.map(() => 'state'));
    }
  });

  test('members of a ring without a key that seals do not write repeatedly while the KMS refuses', async () => {
    const members = await fleet.startAll(3);
    for (const member of members.slice(1)) member.keyWrapper.cut = true;
    await revokedWithoutSuccessor(members[0] as Member);
    for (const member of members) member.keyWrapper.cut = true;
    await fleet.clock.advance(60);
    const { writes } = fleet.store;
    await fleet.clock.advance(HOUR);
    expect(fleet.store.writes).toBe(writes);
    for (const member of members) member.keyWrapper.cut = false;
    await fleet.clock.advance(120);
    expect(await unrevoked()).toHaveLength(1);
    expect(members.every(({ codec }) => codec.health().canSeal)).toBe(true);
  });

  test('the ring gets a key within minutes, even if an attacker who writes to the store always claims to be creating one', async () => {
    const [member] = await fleet.startAll(3);
    fleet.kms.failing = 'unavailable';
    await revokedWithoutSuccessor(member as Member);
    expect(await unrevoked()).toEqual([]);
    fleet.kms.failing = undefined;
    for (let i = 0; i < 30; i++) {
      const document = parseDocument((await fleet.store.document()) ?? '', 'default');
      const claim = `AAAAAAAAAAAAAAAAAAAA${String(i).padStart(2, '0')}`.replaceAll('0', 'g');
      await fleet.store.put(encodeDocument({ ...document, claim }));
      await fleet.clock.advance(20);
    }
    expect(await unrevoked()).not.toEqual([]);
  });

  test('another member gives the ring a key if the member that claimed the creation died', async () => {
    const members = await fleet.startAll(3);
    fleet.kms.failing = 'unavailable';
    await revokedWithoutSuccessor(members[0] as Member);
    expect(await unrevoked()).toEqual([]);
    const document = parseDocument((await fleet.store.document()) ?? '', 'default');
    await fleet.store.put(encodeDocument({ ...document, claim: 'AAAAAAAAAAAAAAAAAAAAAA' }));
    fleet.kms.failing = undefined;
    // 12 calls of 5 s, and a read.
    await fleet.clock.advance(180);
    expect(await unrevoked()).toHaveLength(1);
  });
});

// Found by the simulator: a member froze while it was making a key, which lost a revocation.
test('a member that writes a revocation back to a store that was rolled back adds its claim, and gives the ring a key', async () => {
  const member = await fleet.start();
  const before = (await fleet.store.document()) ?? '';
  await revokedWithoutSuccessor(member);
  expect(await unrevoked()).toEqual([]);
  await fleet.store.put(before);
  expect(await unrevoked()).toHaveLength(1);
  const written: string[] = [];
  fleet.store.connect().watch?.(() => written.push(fleet.store.written ?? ''));
  // A member that makes a key may wait before it claims: virtual time must pass.
  const refreshed = member.codec.refresh();
  await fleet.clock.advance(30);
  await refreshed;
  const [claimed] = written.map((document) => parseDocument(document, 'default'));
  expect(claimed?.claim).toBeDefined();
  expect(claimed?.entries.map(({ revoked }) => revoked !== undefined)).toEqual([true]);
  expect(await unrevoked()).toHaveLength(1);
});

test('a member that starts while another creates the needed key unwraps its known keys once', async () => {
  const [member] = await fleet.startAll(1);
  await fleet.clock.advance(24 * HOUR);
  // Of the two keys, the planned one remains, and may not seal yet.
  await member?.codec.rotate();
  fleet.kms.failing = 'unavailable';
  await revokedWithoutSuccessor(member as Member);
  await member?.codec.close();
  fleet.kms.failing = undefined;
  const document = parseDocument((await fleet.store.document()) ?? '', 'default');
  const { unwrap } = fleet.kms.calls;
  await fleet.store.put(encodeDocument({ ...document, claim: 'AAAAAAAAAAAAAAAAAAAAAA' }));
  await fleet.start();
  expect((await unrevoked()).some(({ activates }) => activates <= fleet.clock.wallMs())).toBe(true);
  // The existing keys, and the KMS check of the new one.
  expect(fleet.kms.calls.unwrap - unwrap).toBeLessThanOrEqual(document.entries.length + 1);
});

describe('a ring whose last key expires soon', () => {
  test('a ring whose last key expires soon gets another in time if the newest was revoked without a successor', async () => {
    const members = await fleet.startAll(3);
    const [first] = await entries();
    await fleet.clock.advance(((first?.sealsUntil ?? 0) - fleet.clock.wallMs()) / 1_000 - 1_500);
    expect(await entries()).toHaveLength(2);
    await revokedWithoutSuccessor(members[0] as Member);
    expect(await unrevoked()).toHaveLength(1);
    expect(await breakOf(members, 24 * HOUR)).toBe(0);
    expect(await unrevoked()).not.toEqual([]);
  });

  test('a ring whose last key expires soon gets another in time if rotations were refused for a day', async () => {
    const members = await fleet.startAll(3);
    const [first] = await entries();
    fleet.kms.wrapFailing = 'denied';
    const lastHour = Math.floor(((first?.sealsUntil ?? 0) - fleet.clock.wallMs()) / 1_000) - 900;
    expect(await breakOf(members, lastHour)).toBe(0);
    expect(await entries()).toHaveLength(1);
    fleet.kms.wrapFailing = undefined;
    expect(await breakOf(members, 3 * HOUR)).toBe(0);
    expect((await entries()).length).toBeGreaterThan(1);
  });
});

test('a member rotates even if the KMS does not answer for a key that has a voucher', async () => {
  const thief = new Thief();
  const inner = thief.spy(fleet.kms.connect());
  const member = await fleet.start({
    keyWrapper: {
      ...inner,
      unwrap: async (wrapped, options) => {
        if (wrapped.keyId === inner.keyId) return inner.unwrap(wrapped, options);
        throw new KeyWrapperError('unavailable', { provider: 'local', operation: 'unwrap' });
      },
    },
  });
  const now = fleet.clock.wallMs();
  const times = {
    created: now,
    activates: now,
    sealsUntil: now + 40 * HOUR * 1_000,
    opensUntil: now + 50 * HOUR * 1_000,
  };
  const junk = await thief.newEntry(times, { vouchedBy: thief.stolen });
  await fleet.store.put(encodeDocument({ ring: 'default', claim: undefined, entries: [...(await entries()), junk] }));
  await fleet.clock.advance(900);
  expect(member.codec.health().keys.map(({ id }) => id)).toContain(junk.id);
  await Promise.all([member.codec.rotate(), fleet.clock.advance(30)]);
  expect(await entries()).toHaveLength(3);
  // It does not wait for that key either when no other one seals.
  fleet.kms.failing = 'unavailable';
  const revoked = Promise.all(
    member.codec
      .health()
      .keys.filter(({ held }) => held)
      .map(({ id }) => member.codec.revoke(id)),
  );
  await fleet.clock.advance(60);
  await revoked;
  expect(member.codec.health().canSeal).toBe(false);
  fleet.kms.failing = undefined;
  await fleet.clock.advance(90);
  expect(member.codec.health().canSeal).toBe(true);
  // A day later the scheduled one is there too.
  await fleet.clock.advance(26 * HOUR);
  expect((await entries()).length).toBeGreaterThanOrEqual(4);
});

test('a key that the KMS refused only at the start, and that is held after the next read, causes no rotation', async () => {
  const a = await fleet.start();
  await fleet.clock.advance(23 * HOUR);
  const [old, newest] = await entries();
  expect(newest).toBeDefined();
  fleet.kms.refused = newest?.wraps[0]?.wrapped;
  const b = await fleet.start();
  fleet.kms.refused = undefined;
  expect(b.codec.health().keys.map(({ id }) => id)).toEqual([old?.id]);
  await fleet.clock.advance(300);
  expect(b.codec.health().keys.map(({ id, held }) => [id, held])).toEqual([
    [old?.id, true],
    [newest?.id, true],
  ]);
  await fleet.clock.advance(3 * HOUR);
  expect(await entries()).toHaveLength(2);
  expect(open(b, seal(a))).toBe('state');
});
