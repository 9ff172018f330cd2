import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import { type KeyWrapper, KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { encodeDocument, parseDocument, type RingDocument, type RingEntry } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { MachineClock } from '../support/machine-clock.ts';
import { Thief, timesOf } from '../support/thief.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const UNKNOWN = 'InvalidRequestState: unknown key';
/** The policy of a store that other processes share. */
const shared = { policy: { createAfterSeconds: 360 } };

let fleet: Fleet;
let thief: Thief;
beforeEach(() => {
  fleet = new Fleet();
  thief = new Thief();
});
afterEach(() => fleet.close());

async function ring(): Promise<RingDocument> {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

/** The last write by a member. */
function writtenLast(): readonly RingEntry[] {
  return parseDocument(fleet.store.written ?? '', 'default').entries;
}

async function ids(): Promise<string[]> {
  return (await ring()).entries.map(({ id, revoked }) => `${id}${revoked === undefined ? '' : ' revoked'}`).toSorted();
}

async function put(entries: readonly RingEntry[]): Promise<void> {
  await fleet.store.put(encodeDocument({ ring: 'default', claim: undefined, entries }));
}

/** Every member unseals the others' tokens; so does one that starts now. */
async function expectOneRing(members: readonly Member[]): Promise<void> {
  const all = [...members, await fleet.start({ create: 'never' })];
  for (const from of all) {
    const token = seal(from);
    expect(all.map((to) => open(to, token))).toEqual(all.map(() => 'state'));
  }
}

/** Reads at once, whatever the result; the waits before a repair pass. */
async function readAll(members: readonly Member[], seconds: number): Promise<void> {
  const read = Promise.allSettled(members.map(({ codec }) => codec.refresh()));
  await fleet.clock.advance(seconds);
  await read;
}

describe('a document whose keys have all expired (F39)', () => {
  test('a document whose keys have all expired does not lead to a second ring beside the ring of running members', async () => {
    const a = await fleet.start();
    const old = (await fleet.store.document()) ?? '';
    await fleet.clock.advance(5 * DAY);
    const token = seal(a);
    const before = await ids();
    const { generate } = fleet.kms.calls;
    await fleet.store.put(old);
    const members = [a, ...(await fleet.startAll(5, shared))];
    expect(fleet.kms.calls.generate).toBe(generate);
    expect(await ids()).toEqual(before);
    for (const member of members) expect(open(member, token)).toBe('state');
    await expectOneRing(members);
  });

  test('a document whose keys have all expired is refused with create: never, and left unchanged', async () => {
    const a = await fleet.start();
    await a.codec.close();
    const old = await fleet.store.document();
    fleet.clock.suspend(5 * DAY);
    await expect(fleet.start({ create: 'never' })).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    expect(await fleet.store.document()).toBe(old);
  });

  test('a fleet restarted from an old backup has one ring, which servers that knew the expired keys adopt', async () => {
    const a = await fleet.start();
    const machine = new MachineClock(fleet.clock);
    const late = await fleet.start({ clock: machine });
    const backup = (await fleet.store.document()) ?? '';
    machine.stop();
    await fleet.clock.advance(4 * DAY);
    await a.codec.close();
    await fleet.store.put(backup);
    const members = await fleet.startAll(5, shared);
    expect(await ids()).toHaveLength(1);
    machine.resume();
    await fleet.clock.advance(120);
    await expectOneRing([...members, late]);
  });

  test('expired keys that the KMS does not unwrap at first lead either to a ring that is linked to them or to no ring', async () => {
    const a = await fleet.start();
    const machine = new MachineClock(fleet.clock);
    const late = await fleet.start({ clock: machine });
    const backup = (await fleet.store.document()) ?? '';
    machine.stop();
    await fleet.clock.advance(4 * DAY);
    await a.codec.close();
    await fleet.store.put(backup);
    const connection = fleet.kms.connect();
    let failing = 4;
    const keyWrapper: KeyWrapper = {
      ...connection,
      unwrap: (wrapped, options) => {
        failing -= 1;
        if (failing < 0) return connection.unwrap(wrapped, options);
        return Promise.reject(new KeyWrapperError('unavailable', { provider: 'local', operation: 'unwrap' }));
      },
    };
    const member = await fleet.start({ ...shared, keyWrapper });
    expect(failing).toBeLessThan(0);
    machine.resume();
    await fleet.clock.advance(120);
    await expectOneRing([member, late]);
  });

  test('a document whose keys have all expired is overwritten by running members, which learn nothing from it', async () => {
    const a = await fleet.start();
    const old = (await fleet.store.document()) ?? '';
    const [ended] = await ids();
    await fleet.clock.advance(5 * DAY);
    const before = await fleet.store.document();
    for (let i = 0; i < 3; i++) {
      await fleet.store.put(old);
      await fleet.clock.advance(700);
      expect(await fleet.store.document()).toBe(before);
    }
    expect(a.codec.health().keys.map(({ id }) => id)).not.toContain(ended);
    expect(a.codec.health()).toMatchObject({ status: 'ok', ready: true });
  });
});

/** A fleet of two with a revoked key, an older one that still unseals, and the active one; all of them stolen. */
async function robbed(): Promise<{ members: Member[]; keys: { revoked: string; older: string; newest: string } }> {
  const a = await fleet.start({ keyWrapper: thief.spy(fleet.kms.connect()) });
  const b = await fleet.start();
  const [revoked = ''] = await ids();
  await a.codec.revoke(revoked);
  await fleet.clock.advance(100);
  const older = a.codec.health().sealingKey ?? '';
  await a.codec.rotate();
  await fleet.clock.advance(5_000);
  const newest = a.codec.health().sealingKey ?? '';
  expect(thief.stolen.toSorted()).toEqual([revoked, older, newest].toSorted());
  return { members: [a, b], keys: { revoked, older, newest } };
}

function onlyKeeps(...kept: readonly string[]): void {
  for (const id of thief.stolen) if (!kept.includes(id)) thief.forget(id);
}

async function entryOf(id: string): Promise<RingEntry> {
  const entry = (await ring()).entries.find((each) => each.id === id);
  if (entry === undefined) throw new Error(`the ring has no key ${id}`);
  return entry;
}

describe('an attacker who stole an older key (F36)', () => {
  /** The documents of the thief, made from the honest one. */
  const documents: Record<
    string,
    (older: RingEntry, newest: RingEntry, others: readonly RingEntry[]) => Promise<readonly RingEntry[]>
  > = {
    'the newest key as revoked by the older one': async (older, newest, others) => [
      ...others,
      older,
      thief.revoked(newest, [older.id]),
    ],
    'the newest key as revoked by itself, as far as possible': async (older, newest, others) => [
      ...others,
      older,
      { ...newest, revoked: { at: newest.created, by: new Map([[newest.id, randomBytes(32)]]) } },
    ],
    'the older key alone': async (older, _newest, others) => [...others, older],
    "the attacker's own key, vouched for by the older one, that revokes the newest": async (older, newest, others) => {
      const times = { ...timesOf(older), created: newest.created + 1_000, opensUntil: newest.opensUntil + 1_000 };
      const own = await thief.newEntry(times, { vouchedBy: [older.id] });
      return [...others, older, own, thief.revoked(newest, [older.id, own.id])];
    },
    "the attacker's own key, as an ancestor of the older one": async (older, newest, others) => {
      const times = { ...timesOf(older), activates: newest.activates + 1_000 };
      const own = await thief.newEntry(times, { vouchedBy: [older.id] });
      return [...others, newest, thief.withAncestors(older, [own.id, newest.id]), own];
    },
    'the older key with later times': async (older, newest, others) => [
      ...others,
      newest,
      thief.certified({ ...older, activates: newest.activates + 1_000, vouchers: new Map() }, [older.id]),
    ],
    'the newest key with the times of the past': async (older, newest, others) => [
      ...others,
      older,
      thief.certified({ ...newest, ...timesOf(older), vouchers: new Map() }, [older.id]),
    ],
  };

  for (const [title, compose] of Object.entries(documents)) {
    test(`a thief of an older key cannot bring that key back by writing ${title}`, async () => {
      const { members, keys } = await robbed();
      onlyKeeps(keys.older);
      const [older, newest] = [await entryOf(keys.older), await entryOf(keys.newest)];
      const others = writtenLast().filter(({ id }) => id === keys.revoked);
      const before = writtenLast();
      const forged = await compose(older, newest, others);
      for (let i = 0; i < 4; i++) {
        await put(forged);
        await readAll(members, 1);
        for (const { codec } of members) expect(codec.health().sealingKey).toBe(keys.newest);
        await fleet.clock.advance(400);
        const now = new Map((await ring()).entries.map((entry) => [entry.id, timesOf(entry)]));
        for (const { id, ...entry } of before) expect(now.get(id)).toEqual(timesOf(entry));
      }
      for (const { codec } of members) expect(codec.health()).toMatchObject({ ready: true, lastError: undefined });
      await expectOneRing(members);
    });
  }

  test('a thief of an older key cannot undo the rotation for a member that starts from the thief’s document', async () => {
    const { members, keys } = await robbed();
    onlyKeeps(keys.older);
    const [older, newest] = [await entryOf(keys.older), await entryOf(keys.newest)];
    for (const { codec } of members) await codec.close();
    await put([older, thief.revoked(newest, [older.id])]);
    const c = await fleet.start();
    expect(c.codec.health().sealingKey).toBe(keys.newest);
  });

  test('a thief cannot bring an older key back within two days of its revocation, however often they write', async () => {
    const { members, keys } = await robbed();
    onlyKeeps(keys.older);
    const clean = (await ring()).entries;
    const [older, newest] = [await entryOf(keys.older), await entryOf(keys.newest)];
    const [a] = members as [Member];
    await a.codec.revoke(keys.older);
    const stolen = `sr1.${keys.older}`;
    for (let hour = 0; hour < 48; hour++) {
      if (hour < 24) await put(hour % 2 === 0 ? clean : [older, thief.revoked(newest, [older.id])]);
      await fleet.clock.advance(HOUR);
      for (const member of members) {
        expect(seal(member).startsWith(stolen)).toBe(false);
        expect(member.codec.health().keys.find(({ id }) => id === keys.older)?.held ?? false).toBe(false);
      }
    }
    await expectOneRing(members);
  });
});

describe('a thief of a revoked key (F36)', () => {
  test('a thief of the newest key, which has since been revoked, cannot revoke an older key', async () => {
    const { members, keys } = await robbed();
    onlyKeeps(keys.newest);
    const [a] = members as [Member];
    const token = seal(a);
    // The next active key is older than the revoked one, until the successor is made.
    const older = await entryOf(keys.older);
    await a.codec.revoke(keys.newest);
    await readAll(members, 1);
    const rest = writtenLast().filter(({ id }) => id !== keys.older);
    for (let i = 0; i < 3; i++) {
      await put([...rest, thief.revoked(older, [keys.newest])]);
      await readAll(members, 400);
      for (const { codec } of members) {
        expect(codec.health().keys.find(({ id }) => id === keys.older)).toMatchObject({
          state: 'verify-only',
          held: true,
        });
      }
    }
    for (const member of members) expect(open(member, token)).toBe(UNKNOWN);
    const c = await fleet.start({ create: 'never' });
    expect(c.codec.health().keys.find(({ id }) => id === keys.older)?.held).toBe(true);
  });

  test('a thief of a revoked key cannot revive the key at any member by removing its revocation from the document', async () => {
    const { members, keys } = await robbed();
    onlyKeeps(keys.revoked);
    const revived = writtenLast().map((entry) => ({ ...entry, revoked: undefined }));
    await put(revived);
    await readAll(members, 1);
    for (const { codec } of members) {
      expect(codec.health().keys.find(({ id }) => id === keys.revoked)).toMatchObject({
        state: 'revoked',
        held: false,
      });
    }
    await fleet.clock.advance(400);
    expect((await entryOf(keys.revoked)).revoked?.by.size).toBeGreaterThanOrEqual(1);
    const c = await fleet.start({ create: 'never' });
    expect(c.codec.health().keys.find(({ id }) => id === keys.revoked)?.held ?? false).toBe(false);
  });
});

describe('a member whose keys are all revoked while its KMS is down (F37)', () => {
  /** A member that has read the revocation, and cannot unwrap the successor. */
  async function stranded(): Promise<{ a: Member; b: Member; before: string; token: string }> {
    const a = await fleet.start();
    const b = await fleet.start();
    const token = seal(b);
    const before = (await fleet.store.document()) ?? '';
    b.keyWrapper.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs()));
    await fleet.clock.advance(70);
    expectStranded(b, token);
    return { a, b, before, token };
  }

  function expectStranded(member: Member, token: string): void {
    expect(member.codec.health()).toMatchObject({ status: 'failing', ready: false, canSeal: false });
    expect(() => seal(member)).toThrow(SealUnavailableError);
    expect(open(member, token)).toBe(UNKNOWN);
  }

  test('a member whose keys are all revoked during an outage of its KMS does not adopt the ring of an attacker who may wrap', async () => {
    const { a, b, token } = await stranded();
    const honest = (await fleet.store.document()) ?? '';
    const now = fleet.clock.wallMs();
    const times = {
      created: now,
      activates: now - 300_000,
      sealsUntil: now + 90_000_000,
      opensUntil: now + 95_000_000,
    };
    const own = await thief.newEntry(times, { keyWrapper: fleet.kms.connect() });
    a.ring.cut = true;
    b.keyWrapper.cut = false;
    b.ring.cut = true;
    await put([own]);
    b.ring.cut = false;
    await readAll([b], 30);
    // It holds either the successor or nothing, and never the thief's key.
    expect(b.codec.health().keys.map(({ id }) => id)).not.toContain(own.id);
    expect(open(b, token)).toBe(UNKNOWN);
    await fleet.store.put(honest);
    a.ring.cut = false;
    await fleet.clock.advance(400);
    await expectOneRing([a, b]);
  });

  test('a member that has known its ring for longer than storeOutage does not switch to a ring that claims to be older', async () => {
    const a = await fleet.start();
    await fleet.clock.advance(7 * HOUR);
    const token = seal(a);
    const created = fleet.clock.wallMs() - 20 * HOUR * 1_000;
    const times = { created, activates: created, sealsUntil: created + 180_000_000, opensUntil: created + 190_000_000 };
    const own = await thief.newEntry(times, { keyWrapper: fleet.kms.connect() });
    await put([own]);
    await readAll([a], 1);
    await fleet.clock.advance(400);
    expect(a.codec.health().keys.map(({ id }) => id)).toEqual([token.slice(4, 16)]);
    expect(await ids()).toEqual([token.slice(4, 16)]);
    await expectOneRing([a]);
  });

  test('a member that started recently in an old ring does not switch to a ring that claims to be older', async () => {
    const a = await fleet.start();
    await fleet.clock.advance(9 * HOUR);
    await a.codec.revoke(a.codec.health().sealingKey ?? '');
    await fleet.clock.advance(100);
    const late = await fleet.start();
    const token = seal(late);
    const created = fleet.clock.wallMs() - 20 * HOUR * 1_000;
    const times = { created, activates: created, sealsUntil: created + 180_000_000, opensUntil: created + 190_000_000 };
    const own = await thief.newEntry(times, { keyWrapper: fleet.kms.connect() });
    a.ring.cut = true;
    await put([thief.withAncestors(own, [])]);
    await readAll([late], 1);
    expect(late.codec.health().keys.map(({ id }) => id)).not.toContain(own.id);
    expect(open(late, token)).toBe('state');
    await fleet.clock.advance(400);
    a.ring.cut = false;
    await expectOneRing([a, late]);
  });

  test('a member whose keys are all revoked does not forget a revocation because of an older document', async () => {
    const { a, b, before, token } = await stranded();
    a.ring.cut = true;
    await fleet.store.put(before);
    await readAll([b], 10);
    expectStranded(b, token);
    // It has written the revocation, and the successor that it could not unwrap yet.
    expect((await ring()).entries.filter(({ revoked }) => revoked !== undefined)).toHaveLength(1);
    expect((await ring()).entries).toHaveLength(2);
    await fleet.store.put(before);
    b.keyWrapper.cut = false;
    await fleet.clock.advance(120);
    expect(open(b, token)).toBe(UNKNOWN);
    a.ring.cut = false;
    await fleet.clock.advance(700);
    expect((await ring()).entries.filter(({ revoked }) => revoked !== undefined)).toHaveLength(1);
    await expectOneRing([a, b]);
  });

  test('a member whose keys are all revoked refuses to seal, and reports why, until the KMS is back', async () => {
    const a = await fleet.start();
    fleet.kms.failing = 'unavailable';
    const revoked = a.codec.revokeAllBefore(new Date(fleet.clock.wallMs()));
    await fleet.clock.advance(20);
    await revoked;
    for (let minute = 0; minute < 30; minute++) {
      await fleet.clock.advance(60);
      expect(() => seal(a)).toThrow(SealUnavailableError);
      expect(a.codec.health()).toMatchObject({ status: 'failing', ready: false, canSeal: false });
      expect(a.codec.health().problems.map(({ kind }) => kind)).toContain('no-sealing-key');
    }
    fleet.kms.failing = undefined;
    await fleet.clock.advance(70);
    expect(a.codec.health()).toMatchObject({ status: 'ok', ready: true });
    await expectOneRing([a]);
  });

  test('a reader whose keys are all revoked does not adopt a foreign ring', async () => {
    const a = await fleet.start();
    const reader = await fleet.start({ role: 'reader' });
    const token = seal(a);
    reader.keyWrapper.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs()));
    const honest = (await fleet.store.document()) ?? '';
    await fleet.clock.advance(70);
    a.ring.cut = true;
    const now = fleet.clock.wallMs();
    const times = {
      created: now,
      activates: now - 300_000,
      sealsUntil: now + 90_000_000,
      opensUntil: now + 95_000_000,
    };
    const own = await thief.newEntry(times, { keyWrapper: fleet.kms.connect() });
    await put([own]);
    reader.keyWrapper.cut = false;
    await fleet.clock.advance(700);
    expect(reader.codec.health().keys.map(({ id }) => id)).not.toContain(own.id);
    expect(open(reader, token)).toBe(UNKNOWN);
    await fleet.store.put(honest);
    a.ring.cut = false;
    await fleet.clock.advance(700);
    expect(open(reader, seal(a))).toBe('state');
    expect(reader.codec.health().status).toBe('ok');
  });
});

describe('an attacker who may wrap, and deceives a starting server (F37)', () => {
  /** The attacker's key, as the newest of a ring. */
  async function ownEntry(): Promise<RingEntry> {
    const now = fleet.clock.wallMs();
    const ends = { sealsUntil: now + 90_000_000, opensUntil: now + 95_000_000 };
    const times = { created: now, activates: now - 300_000, ...ends };
    const entry = await thief.newEntry(times, { keyWrapper: fleet.kms.connect() });
    return thief.withAncestors(entry, []);
  }

  /** The deceived server writes its own ring; the other reads that. */
  async function tryToSpread(a: Member, caught: Member, own: RingEntry): Promise<void> {
    expect(caught.codec.health().keys.map(({ id }) => id)).toContain(own.id);
    const rotated = caught.codec.rotate();
    await fleet.clock.advance(20);
    await rotated;
    for (const entry of writtenLast()) {
      expect([...entry.vouchers.keys()].filter((id) => !thief.made.includes(id))).toEqual([]);
    }
    a.ring.cut = false;
    await readAll([a], 30);
    await caught.codec.close();
    await fleet.clock.advance(400);
  }

  function hasKeyOf(a: Member, entries: readonly RingEntry[]): boolean {
    const theirs = new Set(entries.map(({ id }) => id));
    return a.codec.health().keys.some(({ id }) => theirs.has(id));
  }

  test('an attacker gains nothing from a revoked key that the server unwraps together with the attacker’s key', async () => {
    const a = await fleet.start();
    const first = (await ring()).entries[0] as RingEntry;
    await a.codec.revoke(first.id);
    await fleet.clock.advance(100);
    const revoked = await entryOf(first.id);
    a.ring.cut = true;
    // Only its own certificate is left, for which it must be unwrapped.
    const by = new Map([...(revoked.revoked?.by ?? [])].filter(([id]) => id === first.id));
    const own = await ownEntry();
    await put([{ ...revoked, revoked: { at: revoked.revoked?.at ?? 0, by } }, own]);
    await tryToSpread(a, await fleet.start(), own);
    expect(hasKeyOf(a, [own])).toBe(false);
    await expectOneRing([a]);
  });

  test('an attacker gains nothing by vouching for a key of the ring', async () => {
    const a = await fleet.start();
    const honest = (await ring()).entries;
    a.ring.cut = true;
    const own = await ownEntry();
    await put([own]);
    const caught = await fleet.start();
    const theirs = honest.map((entry) => thief.certified(entry, [own.id]));
    const named = { ids: [own.id], mac: randomBytes(32) };
    for (const entries of [theirs, theirs.map((entry) => ({ ...entry, ancestors: named }))]) {
      await put([...entries, own]);
      await readAll([caught], 30);
      expect(
        caught.codec
          .health()
          .keys.filter(({ held }) => held)
          .map(({ id }) => id),
      ).toEqual([own.id]);
    }
    await tryToSpread(a, caught, own);
    expect(hasKeyOf(a, [own])).toBe(false);
    await expectOneRing([a]);
  });

  test('an attacker gains nothing from an expired key that the server unwraps before the attacker’s key', async () => {
    fleet.store.kind = 'shared';
    const a = await fleet.start();
    const ended = (await ring()).entries;
    await fleet.clock.advance(5 * DAY);
    a.ring.cut = true;
    const own = await ownEntry();
    const dead = { ring: 'default', claim: 'A'.repeat(22), entries: ended };
    await fleet.store.put(encodeDocument(dead));
    const starting = fleet.startAll(1, shared);
    // The ring was absent for long enough, and another member announces that it is about to create the ring.
    const { unwrap } = fleet.kms.calls;
    for (let i = 0; fleet.kms.calls.unwrap === unwrap && i < 100_000; i++) await setImmediate();
    expect(fleet.kms.calls.unwrap).toBe(unwrap + 1);
    await put([own]);
    const [caught] = (await starting) as [Member];
    await tryToSpread(a, caught, own);
    expect(hasKeyOf(a, [own])).toBe(false);
    await expectOneRing([a]);
  });
});

describe('documents that are made to block writes to the ring (F38, F43)', () => {
  const far = (entry: RingEntry, byMs: number): RingEntry => ({ ...entry, created: entry.created + byMs });

  /** Entries of a thief of the data key `id`, beside the honest ones. */
  const floods: Record<string, (entries: readonly RingEntry[], id: string) => Promise<readonly RingEntry[]>> = {
    'entries up to the limit, with their vouchers': async (known, id) => {
      const [newest] = known.toSorted((one, other) => other.created - one.created) as [RingEntry];
      const free = Array.from({ length: 64 - known.length }, (_, i) => ({
        ...timesOf(newest),
        created: newest.created + i * 1_000,
      }));
      return [...known, ...(await Promise.all(free.map((times) => thief.newEntry(times, { vouchedBy: [id] }))))];
    },
    'entries created at the latest accepted time, and later': async (known, id) => {
      const [newest] = known.toSorted((one, other) => other.created - one.created) as [RingEntry];
      const now = Math.floor(fleet.clock.wallMs() / 1_000) * 1_000;
      const made = [now + 290_000, now + 299_000, now + 300_000, now + 364_000, now + 86_400_000].map((created) => ({
        created,
        activates: now,
        sealsUntil: newest.sealsUntil + 86_400_000,
        opensUntil: newest.opensUntil + 86_400_000,
      }));
      return [...known, ...(await Promise.all(made.map((times) => thief.newEntry(times, { vouchedBy: [id] }))))];
    },
    'as many bytes as a document may have': async (known, id) => {
      const [newest] = known as [RingEntry];
      const entries = [...known];
      for (;;) {
        const entry = await thief.newEntry(timesOf(newest), { vouchedBy: [id] });
        const fat = { ...entry, wraps: thief.junkWraps(entry.id, 16, 700) };
        if (encodeDocument({ ring: 'default', claim: undefined, entries: [...entries, fat] }).length > 256 * 1024) {
          return entries;
        }
        entries.push(fat);
      }
    },
    'sixteen invalid wraps for each key': async (entries) => {
      const bytes = Math.floor((250_000 / entries.length / 16 - 200) * 0.75);
      return entries.map((entry) => ({ ...entry, wraps: thief.junkWraps(entry.id, 16, Math.min(2_000, bytes)) }));
    },
    'seventeen wraps': async (known) => known.map((entry) => ({ ...entry, wraps: thief.junkWraps(entry.id, 17) })),
    'eight vouchers and eight certificates of unknown keys for each key': async (known) => {
      const junk = () =>
        new Map(Array.from({ length: 8 }, () => [randomBytes(9).toString('base64url'), randomBytes(32)] as const));
      return known.map((entry) => ({
        ...entry,
        vouchers: junk(),
        revoked: { at: entry.created, by: junk() },
      }));
    },
    'other times for each key': async (known, id) =>
      known.map((entry) => {
        const others = { sealsUntil: entry.sealsUntil - 80_000_000, opensUntil: entry.opensUntil - 80_000_000 };
        return thief.certified({ ...far(entry, -1_000), ...others, vouchers: new Map() }, [id]);
      }),
    'the stolen key as revoked by itself': async (known, id) =>
      known.map((entry) => (entry.id === id ? thief.revoked(entry, [id]) : entry)),
    'other ids for the wraps of each key': async (known, id) =>
      known.map((entry) =>
        thief.certified({ ...entry, id: randomBytes(9).toString('base64url'), vouchers: new Map() }, [id]),
      ),
  };

  for (const [title, compose] of Object.entries(floods)) {
    for (const which of ['newest', 'older', 'revoked'] as const) {
      test(`a thief of the ${which} key cannot use ${title} to prevent revocation and rotation`, async () => {
        const { members, keys } = await robbed();
        onlyKeeps(keys[which]);
        const flooded = async (): Promise<void> => {
          await put(await compose(writtenLast(), keys[which]));
        };
        const [a, b] = members as [Member, Member];
        // A member that starts from it, if any can.
        await flooded();
        const began = await Promise.allSettled([fleet.start({ create: 'never' })]);
        const all = [a, b, ...began.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))];
        await flooded();
        await readAll(all, 1);
        for (const member of all) {
          await flooded();
          const sealing = member.codec.health().sealingKey ?? '';
          const done = member.codec.revoke(sealing).then(() => member.codec.rotate());
          await fleet.clock.advance(20);
          await done;
          expect(seal(member).slice(4, 16)).not.toBe(sealing);
          // A member carries at most four entries that it could not unwrap.
          const known = member.codec.health().keys.filter(({ held, state }) => held || state === 'revoked');
          expect(writtenLast().length).toBeLessThanOrEqual(known.length + 4);
        }
        await flooded();
        // 2 R + 60 s after the last of it.
        await fleet.clock.advance(660);
        for (const { codec } of all) expect(codec.health()).toMatchObject({ ready: true, canSeal: true });
        const revoked = (await ids()).filter((key) => key.endsWith('revoked'));
        expect(revoked.length).toBeGreaterThanOrEqual(1 + all.length);
        await expectOneRing(all);
      });
    }
  }

  test('entries that a thief vouches for make room for a revocation in an almost full ring', async () => {
    const a = await fleet.start({ keyWrapper: thief.spy(fleet.kms.connect()) });
    for (let i = 1; i < 48; i++) await a.codec.rotate();
    for (let i = 0; i < 12; i++) await a.codec.revoke(a.codec.health().sealingKey ?? '');
    const [newest] = writtenLast().toSorted((one, other) => other.created - one.created) as [RingEntry];
    expect(writtenLast()).toHaveLength(60);
    const made = Array.from({ length: 4 }, () => thief.newEntry(timesOf(newest), { vouchedBy: [newest.id] }));
    const flooded = [...writtenLast(), ...(await Promise.all(made))];
    await put(flooded);
    await readAll([a], 1);
    for (let i = 0; i < 4; i++) {
      const sealing = a.codec.health().sealingKey ?? '';
      await a.codec.revoke(sealing);
      expect(seal(a).slice(4, 16)).not.toBe(sealing);
      await put([...writtenLast().slice(0, 60), ...flooded.slice(60)]);
      await readAll([a], 1);
    }
    await fleet.clock.advance(660);
    await expectOneRing([a]);
  });

  test('a thief of all keys who fills each of them with wraps cannot make the document too large to be written', async () => {
    const a = await fleet.start({ keyWrapper: thief.spy(fleet.kms.connect()) });
    for (let i = 1; i < 8; i++) await a.codec.rotate();
    const before = writtenLast();
    for (const fat of before) {
      await put(
        before.map((entry) =>
          entry.id === fat.id ? { ...entry, wraps: [...entry.wraps, ...thief.junkWraps(fat.id, 15, 2_000)] } : entry,
        ),
      );
      await readAll([a], 1);
    }
    const sealing = a.codec.health().sealingKey ?? '';
    await a.codec.revoke(sealing);
    await a.codec.rotate();
    expect(seal(a).slice(4, 16)).not.toBe(sealing);
    await fleet.clock.advance(660);
    await expectOneRing([a]);
  });

  test('wraps without a certificate take no room from the wraps of another cloud', async () => {
    const [one, other] = [randomBytes(32), randomBytes(32)].map((masterKey) => localKeyWrapper({ masterKey }));
    if (one === undefined || other === undefined) throw new Error('there are two');
    const a = await fleet.start({ keyWrapper: one });
    const [entry] = writtenLast() as [RingEntry];
    await put([{ ...entry, wraps: [...entry.wraps, ...thief.junkWraps(entry.id, 15)] }]);
    await readAll([a], 1);
    const both = await fleet.start({ keyWrapper: [one, other] });
    await both.codec.refresh();
    await readAll([a], 10);
    expect(
      keeperOf(a.codec)
        ?.view.snapshot.keys[0]?.wraps.map(({ keyId }) => keyId)
        .toSorted(),
    ).toEqual([one.keyId, other.keyId].toSorted());
    const late = await fleet.start({ keyWrapper: other });
    expect(open(late, seal(a))).toBe('state');
  });

  test('a new key whose wraps were replaced is held as soon as the right wraps are back', async () => {
    const [a, b] = [await fleet.start(), await fleet.start({ ring: fleet.store.connectUnwatched() })];
    a.ring.cut = false;
    await a.codec.rotate({ emergency: true });
    const [first, second] = writtenLast() as [RingEntry, RingEntry];
    const replaced = second.wraps.map((wrap) => ({ ...wrap, wrapped: randomBytes(wrap.wrapped.length) }));
    await put([first, { ...second, wraps: replaced }]);
    await readAll([b], 1);
    expect(b.codec.health().keys.map(({ held }) => held)).toEqual([true, false]);
    expect(b.codec.health().problems.map(({ kind }) => kind)).toEqual(['unreadable-key']);
    await put([first, second]);
    await readAll([b], 1);
    expect(b.codec.health().keys.map(({ held }) => held)).toEqual([true, true]);
    expect(b.codec.health().problems).toEqual([]);
  });

  for (const which of ['newest', 'older', 'revoked'] as const) {
    test(`a thief of the ${which} key cannot make a member that started from the thief’s documents write invalid documents`, async () => {
      const { members, keys } = await robbed();
      onlyKeeps(keys[which]);
      const before = writtenLast();
      for (const { codec } of members) await codec.close();
      for (const compose of [
        floods['entries up to the limit, with their vouchers'],
        floods['as many bytes as a document may have'],
      ]) {
        if (compose === undefined) throw new Error('there is such a flood');
        await put(await compose(before, keys[which]));
        const c = await fleet.start({ create: 'never' });
        expect(c.codec.health().sealingKey).toBe(keys.newest);
        for (let i = 0; i < 3; i++) {
          const sealing = c.codec.health().sealingKey ?? '';
          await put(await compose(before, keys[which]));
          const done = c.codec.revoke(sealing).then(() => c.codec.rotate());
          await fleet.clock.advance(20);
          await done;
        }
        await fleet.clock.advance(660);
        await expectOneRing([c]);
        await c.codec.close();
      }
    });
  }
});

describe('entries dated before the pin of a member, by a writer without any key (F38, F43)', () => {
  const pinned = () => ({ acceptKeysCreatedAfter: new Date(fleet.clock.wallMs() - HOUR * 1_000) });

  /** `entries` and others, as many as a member remembers beside three keys. They live for years, and are large. */
  async function filled(entries: readonly RingEntry[]): Promise<readonly RingEntry[]> {
    const created = fleet.clock.wallMs() - DAY * 1_000;
    const sealsUntil = created + 365 * DAY * 1_000;
    const times = timesOf({ created, activates: created, sealsUntil, opensUntil: created + 1_460 * DAY * 1_000 });
    const junk = await Promise.all(Array.from({ length: 30 }, () => thief.newEntry(times)));
    const vouchers = new Map(junk.slice(0, 8).map(({ id }) => [id, randomBytes(32)]));
    const large = { keyId: 'k'.repeat(2_048), wrapped: Buffer.alloc(2_048, 1), signature: Buffer.alloc(2_048, 1) };
    const enlarged = (entry: RingEntry): RingEntry => ({
      ...entry,
      vouchers,
      wraps: entry.wraps.map((wrap) => ({ ...wrap, ...large })),
    });
    return [...entries, ...junk.map(enlarged)];
  }

  test.each(['rotate', 'revoke'] as const)(
    'a ring beside such entries has room for every request to %s',
    async (request) => {
      const name = (i: number): string => `cloud-${i}`.padEnd(64, '-');
      const keyWrapper = Array.from({ length: 8 }, (_, i) => fleet.kms.connect(name(i)));
      const a = await fleet.start({ keyWrapper, ...pinned() });
      for (let i = 0; i < 2; i++) await a.codec.rotate();
      await put(await filled((await ring()).entries));
      await readAll([a], 1);
      expect(a.codec.health().keys).toHaveLength(3 + 30);
      for (let i = 0; i < 3; i++) {
        await (request === 'rotate' ? a.codec.rotate() : a.codec.revoke(a.codec.health().sealingKey ?? ''));
      }
      expect((await ring()).entries).toHaveLength(6);
      await readAll([a], 1);
      expect(a.codec.health()).toMatchObject({ status: 'ok', canSeal: true });
    },
  );

  test('the next write of any member removes such entries, and none comes back', async () => {
    const members = await fleet.startAll(3, pinned());
    const before = await ids();
    await put(await filled((await ring()).entries));
    await readAll(members, 1);
    await fleet.clock.advance(DAY);
    const after = await ids();
    expect(after).toHaveLength(2);
    expect(after).toEqual(expect.arrayContaining(before));
    await expectOneRing(members);
  });

  test('a key that a pin refuses stays in the document for the others if a newer key names it', async () => {
    const b = await fleet.start();
    const [older = ''] = await ids();
    await fleet.clock.advance(HOUR);
    const acceptKeysCreatedAfter = new Date(Math.floor(fleet.clock.wallMs() / 1_000) * 1_000);
    await b.codec.rotate();
    // From now on, no member can write the older key back.
    b.ring.cut = true;
    await fleet.clock.advance(2 * HOUR);
    const a = await fleet.start({ acceptKeysCreatedAfter });
    for (let i = 0; i < 3; i++) await a.codec.rotate();
    expect(a.codec.health().keys.find(({ id }) => id === older)?.held).toBe(false);
    expect(await ids()).toContain(older);
  });

  test('a key too many for a newer one to name is written again by a member without a pin, once for each write', async () => {
    const b = await fleet.start();
    for (let i = 0; i < 10; i++) await b.codec.rotate();
    await fleet.clock.advance(HOUR);
    const acceptKeysCreatedAfter = new Date(Math.floor(fleet.clock.wallMs() / 1_000) * 1_000);
    await b.codec.rotate();
    await fleet.clock.advance(2 * HOUR);
    const before = await ids();
    const a = await fleet.start({ acceptKeysCreatedAfter });
    await a.codec.rotate();
    expect(await ids()).toHaveLength(1 + 8 + 1);
    const { writes } = fleet.store;
    await fleet.clock.advance(6 * HOUR);
    expect(await ids()).toEqual(expect.arrayContaining(before));
    expect(fleet.store.writes - writes).toBe(1);
    for (const from of [a, b]) expect([open(a, seal(from)), open(b, seal(from))]).toEqual(['state', 'state']);
  });
});

describe('a document that only some servers would understand (F38)', () => {
  const changes: Record<string, (document: string) => string> = {
    'a number that is not finite': (document) => `${document.slice(0, -1)},"x":1e400}`,
    'an invalid number': (document) => document.replace('"keys":', '"x":NaN,"keys":'),
    'an unknown member': (document) => document.replace('"keys":', '"epoch":1,"keys":'),
    'an unknown member of an entry': (document) => document.replace('"wraps":', '"x":{},"wraps":'),
    'a repeated name': (document) => document.replace('"ring":', '"ring":"default","ring":'),
    'one more line': (document) => `${document}\n{"macs":{}}`,
    'white space': (document) => document.replace('"keys":', '"keys": '),
    'an escape': (document) => document.replace('"default"', '"\\u0064efault"'),
  };

  for (const [title, change] of Object.entries(changes)) {
    test(`every server treats a document with ${title} as invalid: starting servers refuse it, and members overwrite it`, async () => {
      const a = await fleet.start();
      const reader = await fleet.start({ role: 'reader' });
      const before = (await fleet.store.document()) ?? '';
      const changed = change(before);
      expect(changed).not.toBe(before);
      await fleet.store.put(changed);
      await expect(fleet.start({ create: 'never' })).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
      await readAll([a, reader], 0);
      for (const { codec } of [a, reader]) {
        expect(codec.health()).toMatchObject({
          status: 'degraded',
          ready: true,
          lastError: { source: 'store', kind: 'corrupt' },
        });
      }
      await fleet.clock.advance(15);
      expect(await fleet.store.document()).toBe(before);
      await fleet.clock.advance(300);
      await expectOneRing([a]);
      expect(open(reader, seal(a))).toBe('state');
    });
  }
});
