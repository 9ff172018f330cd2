import { randomBytes, randomFillSync } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../src/clock.ts';
import { HeldKey } from '../src/key-cache.ts';
import type { KeyWrapper } from '../src/key-wrapper.ts';
import { localKeyWrapper } from '../src/local-key-wrapper.ts';
import { authenticate } from '../src/ring/authentication.ts';
import { encodeBody, encodeDocument, MAX_EPOCH, parseDocument } from '../src/ring/document.ts';
import { RingConflictError, type RingStore, RingStoreError } from '../src/ring/store.ts';
import { EventLog } from './support/event-log.ts';
import { Fleet, type Member, open, seal } from './support/fleet.ts';

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

describe('F23: a ring of 64 live keys', () => {
  let full: string;
  let kms: Fleet['kms'];
  let member: Member;
  let writes: number;
  beforeAll(async () => {
    const builder = new Fleet();
    const { codec } = await builder.start();
    for (let i = 1; i < 64; i++) await codec.rotate();
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

  test('takes no further one, and none is made for it', async () => {
    const { total } = kms;
    await expect(member.codec.rotate()).rejects.toMatchObject(tooLarge);
    await expect(member.codec.rotate({ emergency: true })).rejects.toMatchObject(tooLarge);
    expect(fleet.store.writes).toBe(writes);
    expect(kms.total).toBe(total);
  });

  test('takes a revocation all the same, without a successor, while another key seals', async () => {
    const { sealingKey, keys } = member.codec.health();
    const last = keys.at(-1)?.id ?? '';
    await member.codec.revoke(last);
    const { entries, epoch } = await stored();
    expect(entries.filter(({ revoked }) => revoked !== undefined).map(({ id }) => id)).toEqual([last]);
    expect([entries.length, epoch]).toEqual([64, 65]);
    expect(member.codec.health().sealingKey).toBe(sealingKey);
  });

  test('takes no revocation of the one key that seals: nothing could seal', async () => {
    await expect(member.codec.revoke(member.codec.health().sealingKey ?? '')).rejects.toMatchObject(tooLarge);
    const all = new Date(fleet.clock.wallMs() + 1_000);
    await expect(member.codec.revokeAllBefore(all)).rejects.toMatchObject(tooLarge);
    expect(fleet.store.writes).toBe(writes);
    expect(open(member, seal(member))).toBe('state');
  });
});

describe('a new key', () => {
  test('whose id the ring has already is thrown away, and another one made (F16)', async () => {
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

  test('of a random source that is broken is not published, and the failure is told as our own', async () => {
    const wrapsOnly: KeyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }) };
    delete wrapsOnly.generate;
    let isBroken = false;
    const random = (fill: Uint8Array): void => void (isBroken ? fill.fill(7) : randomFillSync(fill));
    const { codec } = await fleet.start({ keyWrapper: wrapsOnly, random });
    isBroken = true;
    await expect(codec.rotate()).rejects.toThrow(RangeError);
    expect(log.of('rotation-failed')).toMatchObject([{ reason: 'requested', kind: 'internal' }]);
    expect((await stored()).entries).toHaveLength(1);
  });

  test('is not even made by a clock that is wrong (F13)', async () => {
    const { codec } = await fleet.start();
    fleet.store.date = () => new Date(fleet.clock.wallMs() + 3_600_000);
    await expect(codec.rotate()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(fleet.kms.calls.generate).toBe(1);
  });

  test('is made in a ring whose epoch is at its end by nobody: too large, and nothing is written', async () => {
    const leaked: Uint8Array[] = [];
    const inner = fleet.kms.connect();
    const keyWrapper: KeyWrapper = {
      ...inner,
      unwrap: async (wrapped, options) => {
        const dataKey = await inner.unwrap(wrapped, options);
        leaked.push(Uint8Array.from(dataKey));
        return dataKey;
      },
    };
    const { codec } = await fleet.start({ keyWrapper });
    const body = encodeBody({ ...(await stored()), epoch: MAX_EPOCH });
    const keys = leaked.slice(0, 1).map((dataKey) => new HeldKey(dataKey, 'default'));
    await fleet.store.put(encodeDocument(body, authenticate(body, keys)));
    await codec.refresh();
    const { writes } = fleet.store;
    await expect(codec.rotate()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'too-large' });
    expect(fleet.store.writes).toBe(writes);
  });
});

describe('what is written', () => {
  test('is signed by every key whose life is not over, and by no other', async () => {
    const { codec } = await fleet.start();
    const [first] = codec.health().keys;
    await codec.rotate();
    // The first key ends at this very moment; it is removed S later.
    fleet.clock.suspend(LIFE - 300 - 0.5);
    expect(first?.opensUntil.getTime()).toBe(fleet.clock.wallMs());
    await codec.refresh();
    await codec.rotate();
    const { entries, macs } = await stored();
    expect(entries.map(({ id }) => id)).toContain(first?.id);
    expect(Array.from(macs.keys()).toSorted()).toEqual(
      entries
        .map(({ id }) => id)
        .filter((id) => id !== first?.id)
        .toSorted(),
    );
  });

  test('is nothing when there is nothing to revoke', async () => {
    const { codec } = await fleet.start();
    const { writes } = fleet.store;
    await codec.revokeAllBefore(new Date(0));
    expect(fleet.store.writes).toBe(writes);
    expect(codec.health().keys).toHaveLength(1);
  });

  test('is nothing while the key wrapper whose wraps are lacking is down; and no wrap for a revoked key', async () => {
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

  test('is told as a conflict when somebody was faster, and as nothing of the kind when the store failed', async () => {
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
    expect(log.of('conflict')).toEqual([{ epoch: 2 }]);
  });
});

describe('F8: a rotation that was asked for, and that another one overtook', () => {
  /** A member whose first write is overtaken by what `first` does. */
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

  test.each([0, 200, 300])('by one whose clock is %d s ahead is fulfilled by it', async (seconds) => {
    const other = await fleet.start({ ring: fleet.store.connectUnwatched(), clock: ahead(seconds) });
    const member = await overtaken(() => other.codec.rotate());
    expect(await rotated(member)).toBe(2);
  });

  test('is made all the same, where it was to seal sooner', async () => {
    const other = await fleet.start({ ring: fleet.store.connectUnwatched() });
    const member = await overtaken(() => other.codec.rotate());
    expect(await rotated(member, { emergency: true })).toBe(3);
  });
});
