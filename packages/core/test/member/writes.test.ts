import { randomBytes, randomFillSync } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { RingConflictError, type RingStore, RingStoreError } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { EventLog } from '../support/event-log.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

/** From the activation of a ring's first key, S before its start, to its end: rotateEvery + grace + life + 2 S. */
const LIFE = 86_400 + 23_400 + 3_600 + 600;

let fleet: Fleet;
let log: EventLog;
beforeEach(() => {
  fleet = new Fleet();
  log = new EventLog();
  log.listen();
});
afterEach(async () => {
  log.end();
  await fleet.close();
});

async function stored() {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

describe('a ring of many live keys (F23)', () => {
  let full: string;
  let kms: Fleet['kms'];
  let member: Member;
  let writes: number;
  /** With 48 keys, as many as can be requested; each revocation adds one. */
  beforeAll(async () => {
    const builder = new Fleet();
    const { codec } = await builder.start();
    for (let i = 1; i < 48; i++) await codec.rotate();
    full = (await builder.store.document()) ?? '';
    kms = builder.kms;
    await builder.close();
  });
  beforeEach(async () => {
    await fleet.store.put(full);
    member = await fleet.start({ keyWrapper: kms.connect() });
    ({ writes } = fleet.store);
  });
  const tooLarge = { name: 'RingStoreError', kind: 'too-large' };

  test('a ring of 48 keys accepts no further requested key, and none is created', async () => {
    const { total } = kms;
    await expect(member.codec.rotate()).rejects.toMatchObject(tooLarge);
    await expect(member.codec.rotate({ emergency: true })).rejects.toMatchObject(tooLarge);
    expect(fleet.store.writes).toBe(writes);
    expect(kms.total).toBe(total);
    expect(member.codec.health()).toMatchObject({
      status: 'degraded',
      ready: true,
      problems: [{ kind: 'nearly-full' }],
    });
  });

  test('a ring of many keys accepts revocations: those that every member has read leave the document to make room', async () => {
    for (let i = 0; i < 18; i++) {
      const { sealingKey } = member.codec.health();
      if (sealingKey === undefined) break;
      expect(open(member, seal(member))).toBe('state');
      await member.codec.revoke(sealingKey);
      if (i >= 15) await fleet.clock.advance(2 * 300 + 60 + 1);
    }
    const { entries } = await stored();
    expect(entries).toHaveLength(64);
    expect(entries.filter(({ revoked }) => revoked !== undefined)).toHaveLength(16);
    expect(member.codec.health().problems.map(({ kind }) => kind)).toEqual(['nearly-full']);
    expect(open(member, seal(member))).toBe('state');
  });

  test('a full ring accepts a revocation without a successor until members have read earlier revocations', async () => {
    for (let i = 0; i < 17; i++) await member.codec.revoke(member.codec.health().sealingKey ?? '');
    const { entries } = await stored();
    expect(entries).toHaveLength(64);
    expect(entries.filter(({ revoked }) => revoked !== undefined)).toHaveLength(17);
    expect(member.codec.health().problems.map(({ kind }) => kind)).toEqual(['no-sealing-key', 'nearly-full']);
  });
});

test.each([
  [59, 60],
  [60, 60],
])(
  'scheduled rotations add a sixtieth key but no further one: a ring of %i keys has %i a day later',
  async (many, later) => {
    const { codec } = await fleet.start();
    for (let i = 1; i < 48; i++) await codec.rotate();
    // Each of these makes a successor.
    for (let i = 48; i < many; i++) await codec.revoke(codec.health().sealingKey ?? '');
    expect((await stored()).entries).toHaveLength(many);
    await fleet.clock.advance(25 * 3_600);
    expect((await stored()).entries).toHaveLength(later);
    expect(log.of('rotation').filter((event) => 'reason' in event && event['reason'] === 'scheduled')).toHaveLength(
      later - many,
    );
  },
);

describe('a new key', () => {
  test('a new key whose id is already in the ring is discarded, and another one is created (F16)', async () => {
    const wrapsOnly: KeyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }) };
    delete wrapsOnly.generate;
    const first = randomBytes(32);
    let drawn = 0;
    const random = (fill: Uint8Array): void => {
      if (fill.length === 32 && drawn++ < 3) fill.set(first);
      else randomFillSync(fill);
    };
    const { codec } = await fleet.start({ keyWrapper: wrapsOnly, random });
    await codec.rotate();
    expect(drawn).toBe(4);
    expect(new Set(codec.health().keys.map(({ id }) => id)).size).toBe(2);
  });

  test('a new key from a broken random source is not published, and a local failure is reported', async () => {
    const wrapsOnly: KeyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }) };
    delete wrapsOnly.generate;
    let isBroken = false;
    const random = (fill: Uint8Array): void => void (isBroken ? fill.fill(7) : randomFillSync(fill));
    const { codec } = await fleet.start({ keyWrapper: wrapsOnly, random });
    isBroken = true;
    await expect(codec.rotate()).rejects.toThrow(RangeError);
    expect(log.of('rotation-failed')).toMatchObject([{ reason: 'requested', source: 'internal', kind: 'error' }]);
    expect((await stored()).entries).toHaveLength(1);
  });

  test('a member with a wrong clock does not even create a new key (F13)', async () => {
    const { codec } = await fleet.start();
    fleet.store.date = () => new Date(fleet.clock.wallMs() + 3_600_000);
    await expect(codec.rotate()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(fleet.kms.calls.generate).toBe(1);
  });
});

describe('a write', () => {
  test('a new key has vouchers of the newest eight keys that its creator knows, including revoked and expired ones', async () => {
    const { codec } = await fleet.start();
    const made = async () => (await stored()).entries.toSorted((one, other) => one.created - other.created);
    await codec.rotate();
    const [first, second] = (await made()).map(({ id }) => id);
    await codec.revoke(second ?? '');
    // The first key has expired, and has left the document.
    fleet.clock.suspend(LIFE + 300);
    await codec.refresh();
    await codec.rotate();
    const { id, vouchers } = (await made()).at(-1) ?? {};
    expect((await made()).map((entry) => entry.id)).not.toContain(first);
    expect(Array.from(vouchers?.keys() ?? [])).toEqual(expect.arrayContaining([first, second]));
    for (let i = 0; i < 8; i++) await codec.rotate();
    const newest = (await made()).map((entry) => entry.id);
    expect(Array.from((await made()).at(-1)?.vouchers.keys() ?? []).toSorted()).toEqual(
      newest.slice(-9, -1).toSorted(),
    );
    expect(newest.slice(-9)).toContain(id);
  });

  test('nothing is written if there is nothing to revoke', async () => {
    const { codec } = await fleet.start();
    const { writes } = fleet.store;
    await codec.revokeAllBefore(new Date(0));
    expect(fleet.store.writes).toBe(writes);
    expect(codec.health().keys).toHaveLength(1);
  });

  test('nothing is written while the key wrapper whose wraps are missing is down, and a revoked key gets no wrap', async () => {
    const first = await fleet.start();
    await first.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const down = fleet.kms.connect('other-kms');
    down.cut = true;
    const { codec } = await fleet.start({ keyWrapper: [fleet.kms.connect(), down], wrapQuorum: 1 });
    const { writes } = fleet.store;
    const refreshed = codec.refresh();
    await fleet.clock.advance(20);
    await refreshed;
    expect(fleet.store.writes).toBe(writes);
    down.cut = false;
    await codec.refresh();
    expect((await stored()).entries.map(({ wraps }) => wraps.length).toSorted((one, other) => one - other)).toEqual([
      1, 2,
    ]);
  });

  test('a write that loses to another writer is reported as a conflict, but a failed write is not', async () => {
    const failures: Error[] = [new RingStoreError('unavailable', 'no'), new RingConflictError()];
    const inner = fleet.store.connectUnwatched();
    let isFailing = false;
    const ring: RingStore = {
      ...inner,
      write: async (document, options) => {
        const failure = isFailing ? failures.shift() : undefined;
        if (failure !== undefined) throw failure;
        return inner.write(document, options);
      },
    };
    const { codec } = await fleet.start({ ring });
    isFailing = true;
    await expect(codec.rotate()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(log.of('conflict')).toEqual([]);
    const rotated = codec.rotate();
    await fleet.clock.advance(1);
    await rotated;
    expect(log.of('conflict')).toEqual([{ keys: 2 }]);
  });
});

describe('a requested rotation that loses the race to another one (F8)', () => {
  /** A member whose first write comes after another one by `first`. */
  async function overtaken(first: () => Promise<void>): Promise<Member> {
    const inner = fleet.store.connectUnwatched();
    let isNext = false;
    const ring: RingStore = {
      ...inner,
      write: async (document, options) => {
        if (isNext) {
          isNext = false;
          await first();
        }
        return inner.write(document, options);
      },
    };
    const member = await fleet.start({ ring });
    isNext = true;
    return member;
  }

  /** The same clock, ahead of the others. */
  function ahead(seconds: number): Clock {
    const { clock } = fleet;
    return {
      wallMs: () => clock.wallMs() + seconds * 1_000,
      monotonicNs: () => clock.monotonicNs(),
      schedule: (callback, delayMs) => clock.schedule(callback, delayMs),
    };
  }

  async function rotated(member: Member, options: { readonly emergency?: boolean } = {}): Promise<number> {
    const done = member.codec.rotate(options);
    await fleet.clock.advance(2);
    await done;
    return (await stored()).entries.length;
  }

  test.each([0, 200, 300])(
    'a rotation that lost the race is satisfied by the rotation of a member whose clock is %d s ahead',
    async (seconds) => {
      const other = await fleet.start({ ring: fleet.store.connectUnwatched(), clock: ahead(seconds) });
      const member = await overtaken(() => other.codec.rotate());
      expect(await rotated(member)).toBe(2);
    },
  );

  test('an emergency rotation that lost the race to an ordinary one is still made', async () => {
    const other = await fleet.start({ ring: fleet.store.connectUnwatched() });
    const member = await overtaken(() => other.codec.rotate());
    expect(await rotated(member, { emergency: true })).toBe(3);
  });
});
