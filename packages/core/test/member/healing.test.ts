import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import type { KeyWrapper, KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { encodeDocument, parseDocument } from '../../src/ring/document.ts';
import { Draws } from '../support/draws.ts';
import { EventLog } from '../support/event-log.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const DAY = 86_400;

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

async function ring() {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

async function ids(): Promise<string[]> {
  return (await ring()).entries.map(({ id, revoked }) => `${id}${revoked === undefined ? '' : ' revoked'}`);
}

/** A member that waits for as long as `draw` says before it repairs the ring: part of 5 s. */
async function start(draw = 0.5, options: Partial<KmsCodecOptions> = {}): Promise<Member> {
  return fleet.start({ ring: fleet.store.connectUnwatched(), random: new Draws(draw).random, ...options });
}

/** The result of a started refresh. */
function refreshing(member: Member): Promise<unknown> {
  return member.codec.refresh().then(
    () => 'done',
    (error: unknown) => error,
  );
}

/** The result of a refresh while `seconds` pass. */
async function refreshed(member: Member, seconds: number): Promise<unknown> {
  const outcome = refreshing(member);
  await fleet.clock.advance(seconds);
  return outcome;
}

/** A key wrapper that fails for wraps that `isRefused` selects, and counts unwraps. */
function picky(kind: KeyWrapperErrorKind = 'unavailable') {
  const inner = fleet.kms.connect();
  const nothing: (wrapped: Uint8Array) => boolean = () => false;
  const seen = { unwraps: 0, isRefused: nothing };
  const keyWrapper: KeyWrapper = {
    ...inner,
    unwrap: async (wrapped, options) => {
      seen.unwraps += 1;
      if (seen.isRefused(wrapped.wrapped)) {
        throw new KeyWrapperError(kind, { provider: 'local', operation: 'unwrap' });
      }
      return inner.unwrap(wrapped, options);
    },
  };
  return { seen, keyWrapper };
}

async function isWrapOf(index: number): Promise<(wrapped: Uint8Array) => boolean> {
  const wrap = (await ring()).entries[index]?.wraps[0]?.wrapped;
  return (wrapped) => wrap !== undefined && Buffer.from(wrap).equals(wrapped);
}

describe('a ring that is absent (F31)', () => {
  test('an absent ring is written back after a random wait, and the member is degraded until then and ok right afterwards', async () => {
    const a = await start();
    const before = await ids();
    fleet.store.flush();
    const outcome = refreshing(a);
    await fleet.clock.advance(2.4);
    expect(await outcome).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(a.codec.health().status).toBe('degraded');
    expect(await fleet.store.document()).toBeUndefined();
    await fleet.clock.advance(0.2);
    expect(await ids()).toEqual(before);
    expect(a.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
    expect(log.of('healed')).toEqual([{ keys: 1 }]);
  });

  test('an absent ring is not written back over a document that was written meanwhile', async () => {
    const first = await start(0.1);
    const late = await start(0.9);
    fleet.store.flush();
    const outcomes = [refreshing(late), refreshing(first)];
    await fleet.clock.advance(1.1);
    await Promise.all(outcomes);
    await first.codec.rotate();
    const { writes } = fleet.store;
    await fleet.clock.advance(10);
    expect(fleet.store.writes).toBe(writes);
    expect(await ids()).toHaveLength(2);
  });

  test('an absent ring is written back with the entries of keys that were not unwrapped yet', async () => {
    const writer = await start();
    const member = await fleet.start({ random: new Draws(0.5).random });
    await writer.codec.rotate();
    // A push has shown it the new key, which it has not unwrapped yet.
    await fleet.clock.advance(0);
    expect(member.codec.health().keys.map(({ held }) => held)).toEqual([true, false]);
    const before = await fleet.store.document();
    fleet.store.flush();
    member.keyWrapper.cut = true;
    await refreshed(member, 3);
    expect(await fleet.store.document()).toBe(before);
  });

  test('an absent ring is written back even by a member with a wrong clock, because that creates nothing', async () => {
    const a = await start();
    const before = await fleet.store.document();
    fleet.store.flush();
    fleet.store.date = () => new Date(fleet.clock.wallMs() + 3_600_000);
    await refreshed(a, 3);
    expect(a.codec.health()).toMatchObject({ status: 'failing', problems: [{ kind: 'clock' }] });
    expect(await fleet.store.document()).toBe(before);
  });

  for (const isFlushed of [true, false]) {
    test(`a ring whose keys have all expired is not written back, and a new key follows when the KMS is back, with the document ${isFlushed ? 'absent' : 'still there'}`, async () => {
      const a = await start();
      const old = await ring();
      fleet.kms.failing = 'unavailable';
      fleet.clock.suspend(5 * DAY);
      if (isFlushed) fleet.store.flush();
      const { writes } = fleet.store;
      await refreshed(a, 30);
      expect(fleet.store.writes).toBe(writes);
      expect(a.codec.health()).toMatchObject({ status: 'failing', lastError: { source: 'kms', kind: 'unavailable' } });
      fleet.kms.failing = undefined;
      await fleet.clock.advance(70);
      expect(open(a, seal(a))).toBe('state');
      // Vouchers of the expired key let members that knew it follow.
      expect((await ring()).entries.map(({ vouchers }) => [...vouchers.keys()])).toEqual([[old.entries[0]?.id]]);
    });
  }
});

describe('an older document (F31)', () => {
  /** A member that knows two keys, and the document with one of them. */
  async function rolledBack(draw = 0.5): Promise<{ a: Member; old: string }> {
    const a = await start(draw);
    const old = (await fleet.store.document()) ?? '';
    await a.codec.rotate();
    return { a, old };
  }

  test('an older document is merged with the known facts after a random wait; the member is degraded until then', async () => {
    const { a, old } = await rolledBack();
    const before = await fleet.store.document();
    await fleet.store.put(old);
    expect(await refreshed(a, 2.4)).toBe('done');
    expect(a.codec.health().status).toBe('degraded');
    expect(await ids()).toHaveLength(1);
    await fleet.clock.advance(0.2);
    expect(await fleet.store.document()).toBe(before);
    expect(log.of('healed')).toEqual([{ keys: 2 }]);
    expect(a.codec.health().status).toBe('ok');
  });

  test('an older document is repaired by only one member', async () => {
    const { a, old } = await rolledBack(0.1);
    const b = await start(0.9);
    await fleet.store.put(old);
    const { writes } = fleet.store;
    expect(await Promise.all([refreshed(a, 0), refreshed(b, 10)])).toEqual(['done', 'done']);
    expect(fleet.store.writes - writes).toBe(1);
  });

  test('an older document that keeps coming back is overwritten once per refreshEvery per member', async () => {
    const { a, old } = await rolledBack();
    const { writes } = fleet.store;
    for (let passed = 0; passed < 3_600; passed += 10) {
      await fleet.store.put(old);
      await refreshed(a, 10);
    }
    const repairs = fleet.store.writes - writes;
    expect(repairs).toBeGreaterThanOrEqual(11);
    expect(repairs).toBeLessThanOrEqual(12);
  });

  test('the repair of an older document waits for the backoff while the store does not answer, and follows once it does', async () => {
    const { a, old } = await rolledBack();
    const before = await fleet.store.document();
    await fleet.store.put(old);
    await refreshed(a, 0);
    const { reads } = fleet.store;
    fleet.store.down = true;
    await fleet.clock.advance(3_600);
    // At most a minute apart, half a minute on average.
    expect(fleet.store.reads - reads).toBeLessThan(200);
    fleet.store.down = false;
    await fleet.clock.advance(70);
    expect(await fleet.store.document()).toBe(before);
  });

  test('a member still writes its ring if the older document is deleted meanwhile', async () => {
    const { a, old } = await rolledBack();
    const before = await fleet.store.document();
    await fleet.store.put(old);
    await refreshed(a, 1);
    fleet.store.flush();
    await fleet.clock.advance(2);
    expect(await fleet.store.document()).toBe(before);
    expect(a.codec.health().lastError).toBeUndefined();
  });

  test('a reader that reads an older document writes nothing, is degraded, and continues with the keys that it knows', async () => {
    const { a, old } = await rolledBack();
    const reader = await start(0.5, { role: 'reader' });
    await fleet.store.put(old);
    const { writes } = fleet.store;
    expect(await refreshed(reader, 10)).toBe('done');
    expect(fleet.store.writes).toBe(writes);
    expect(reader.codec.health()).toMatchObject({ status: 'degraded', ready: true });
    expect(reader.codec.health().keys).toHaveLength(2);
    expect(open(reader, seal(a))).toBe('state');
  });

  test('an older document with one more key and one wrap less is merged, so that nothing known is lost', async () => {
    const [one, other] = [randomBytes(32), randomBytes(32)].map((masterKey) => localKeyWrapper({ masterKey }));
    if (one === undefined || other === undefined) throw new Error('there are two');
    const a = await start(0.5, { keyWrapper: one });
    const old = (await fleet.store.document()) ?? '';
    const both = await start(0.5, { keyWrapper: [one, other] });
    await both.codec.refresh();
    await a.codec.refresh();
    await fleet.store.put(old);
    const late = await start(0.5, { keyWrapper: one });
    await late.codec.rotate();
    expect((await ring()).entries.map(({ wraps }) => wraps.length)).toEqual([1, 1]);
    expect(await refreshed(a, 3)).toBe('done');
    expect((await ring()).entries.map(({ wraps }) => wraps.length)).toEqual([2, 1]);
  });

  test('an older document whose keys have all expired is overwritten, and none of those keys comes back', async () => {
    const a = await start();
    const old = (await fleet.store.document()) ?? '';
    const [ended] = await ids();
    fleet.clock.suspend(5 * DAY);
    await refreshed(a, 3);
    const now = await ids();
    expect(now).not.toContain(ended);
    await fleet.store.put(old);
    await refreshed(a, 10);
    expect(await ids()).toEqual(now);
  });

  test('an older document without valid MACs for its facts is completed', async () => {
    const a = await start();
    await a.codec.rotate();
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() - 600_000));
    await a.codec.revoke((await ids())[0] ?? '');
    const before = await ring();
    expect(before.entries.filter(({ revoked }) => revoked !== undefined)).toHaveLength(1);
    const bare = before.entries.map((entry) => ({
      ...entry,
      vouchers: new Map(),
      ancestors: undefined,
      revoked: entry.revoked === undefined ? undefined : { at: entry.revoked.at, by: new Map() },
      wraps: entry.wraps.map((wrap) => ({ ...wrap, mac: randomBytes(32) })),
    }));
    await fleet.store.put(encodeDocument({ ...before, entries: bare }));
    expect(await refreshed(a, 3)).toBe('done');
    expect(await ring()).toEqual(before);
  });
});

describe('a foreign document', () => {
  test('a foreign document is overwritten after five seconds and a random wait, if a second read returns the same document', async () => {
    const a = await start();
    const before = await fleet.store.document();
    for (const foreign of ['not a ring', '{}', before?.replace('"ring":"default"', '"ring":"orders"') ?? '']) {
      await fleet.store.put(foreign);
      expect(await refreshed(a, 0)).toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
      await fleet.clock.advance(7.4);
      expect(await fleet.store.document()).toBe(foreign);
      await fleet.clock.advance(0.2);
      expect(await fleet.store.document()).toBe(before);
      await fleet.clock.advance(600);
    }
    expect(a.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });

  test('a foreign document is left alone if the right one is back at the second read', async () => {
    const a = await start();
    const before = (await fleet.store.document()) ?? '';
    await fleet.store.put('not a ring');
    await refreshed(a, 5);
    await fleet.store.put(before);
    const { writes } = fleet.store;
    await fleet.clock.advance(60);
    expect(fleet.store.writes).toBe(writes);
  });

  test('a foreign document is overwritten at once by a revocation', async () => {
    const a = await start();
    const [first] = await ids();
    await fleet.store.put('not a ring');
    await a.codec.revoke(first ?? '');
    expect(await ids()).toHaveLength(2);
    expect(await ids()).toContain(`${first} revoked`);
  });

  test('more than three foreign documents in an hour are reported as a contest until none has come for an hour (F51)', async () => {
    const a = await start();
    for (let i = 0; i < 3; i++) {
      await fleet.store.put('not a ring');
      await fleet.clock.advance(900);
    }
    expect(a.codec.health()).toMatchObject({ status: 'ok', problems: [] });
    await fleet.store.put('not a ring');
    await fleet.clock.advance(600);
    expect(a.codec.health()).toMatchObject({ status: 'degraded', ready: true, problems: [{ kind: 'contested' }] });
    await fleet.clock.advance(3_600);
    expect(a.codec.health()).toMatchObject({ status: 'ok', problems: [] });
  });
});

describe('the keys that are unwrapped', () => {
  test('a start while the KMS is down tries to unwrap only one key, however many live keys the ring has (F6)', async () => {
    const a = await start();
    await a.codec.rotate();
    await a.codec.rotate();
    const { seen, keyWrapper } = picky();
    const asked = new Set<string>();
    seen.isRefused = (wrapped) => asked.add(Buffer.from(wrapped).toString('hex')).size > 0;
    const policy = { startTimeoutSeconds: 20 };
    const starting = start(0.5, { keyWrapper, policy });
    await expect(starting).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(asked.size).toBe(1);
  });

  test('a start while the KMS refuses tries to unwrap each live key once, because some might not belong to the ring', async () => {
    const a = await start();
    await a.codec.rotate();
    await a.codec.rotate();
    const { seen, keyWrapper } = picky('denied');
    seen.isRefused = () => true;
    await expect(start(0.5, { keyWrapper })).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    expect(seen.unwraps).toBe(3);
  });

  test('a member that was behind unwraps all live keys that it missed, but none revoked meanwhile', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky();
    const b = await start(0.5, { keyWrapper });
    await a.codec.rotate();
    const [, missed] = await ids();
    await a.codec.revoke(missed ?? '');
    seen.unwraps = 0;
    await b.codec.refresh();
    expect(seen.unwraps).toBe(1);
    expect(b.codec.health().keys.filter(({ held }) => held)).toHaveLength(2);
    // It cannot sign for the key that it never had, and the ring continues.
    await b.codec.rotate();
    expect(await ids()).toHaveLength(4);
  });

  test('a read that finds no new key, or only keys that cannot be unwrapped, does not count as a KMS check (F10)', async () => {
    const [one, other] = [fleet.kms.connect(), localKeyWrapper({ masterKey: randomBytes(32) })];
    const { seen, keyWrapper } = picky();
    const a = await start(0.5, { keyWrapper });
    const proved = a.codec.health().lastKmsCheck;
    await fleet.clock.advance(100);
    const both = await start(0.5, { keyWrapper: [one, other] });
    await both.codec.refresh();
    expect((await ring()).entries[0]?.wraps).toHaveLength(2);
    await a.codec.refresh();
    expect(a.codec.health().lastKmsCheck).toEqual(proved);
    await both.codec.rotate();
    seen.isRefused = await isWrapOf(1);
    const outcome = refreshed(a, 20);
    expect(await outcome).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(a.codec.health().lastKmsCheck).toEqual(proved);
  });

  test('a key that cannot be unwrapped stops neither the use of other keys, nor reads, nor KMS checks (F7)', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky();
    const b = await start(0.5, { keyWrapper });
    await a.codec.rotate();
    await fleet.clock.advance(1);
    await a.codec.rotate();
    seen.isRefused = await isWrapOf(2);
    expect(await refreshed(b, 20)).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(b.codec.health().keys.map(({ held }) => held)).toEqual([true, true, false]);
    await fleet.clock.advance(1_000);
    const limits = keeperOf(b.codec)?.view.limits;
    const now = fleet.clock.wallMs();
    // A retry every 30 s; a KMS check is due every 810 s.
    expect(now - (limits?.lastRead?.wallMs ?? 0)).toBeLessThanOrEqual(31_000);
    expect(now - (limits?.lastKmsCheck?.wallMs ?? 0)).toBeLessThanOrEqual(811_000);
    expect(b.codec.health()).toMatchObject({ status: 'degraded', lastError: { source: 'kms', kind: 'unavailable' } });
    seen.isRefused = () => false;
    await fleet.clock.advance(31);
    expect(b.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });

  test('a key that is refused while a KMS check of a held key passes is tried again at most once an hour (F10)', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky('denied');
    const b = await start(0.5, { keyWrapper });
    await a.codec.rotate();
    seen.isRefused = await isWrapOf(1);
    seen.unwraps = 0;
    const before = b.codec.health().lastKmsCheck;
    await fleet.clock.advance(1);
    expect(await refreshed(b, 0)).toMatchObject({ kind: 'denied' });
    // The new one, and the held one at once.
    expect(seen.unwraps).toBe(2);
    expect(b.codec.health().lastKmsCheck).not.toEqual(before);
    expect(b.codec.health().canSeal).toBe(true);
    // A single refusal can be a stray one: the second counts.
    await fleet.clock.advance(60);
    expect(b.codec.health()).toMatchObject({ canSeal: true, lastError: undefined });
    let refusals = 0;
    const isRefused = seen.isRefused;
    seen.isRefused = (wrapped) => isRefused(wrapped) && ++refusals > 0;
    await fleet.clock.advance(3_000);
    expect(refusals).toBe(0);
    seen.isRefused = () => false;
    await fleet.clock.advance(1_000);
    expect(b.codec.health().keys.map(({ held }) => held)).toEqual([true, true]);
  });

  test('the KMS counts as refusing only when the held key is refused too', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky('denied');
    const b = await start(0.5, { keyWrapper });
    await a.codec.rotate();
    seen.isRefused = () => true;
    expect(await refreshed(b, 0)).toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    expect(b.codec.health()).toMatchObject({ status: 'degraded', canSeal: true });
    await fleet.clock.advance(60);
    expect(b.codec.health()).toMatchObject({ status: 'failing', canSeal: false });
  });

  test('no key is unwrapped if all keys of a document have expired, and a reader is left without keys', async () => {
    const a = await start();
    const reader = await start(0.5, { role: 'reader' });
    const token = seal(a);
    await a.codec.close();
    fleet.clock.suspend(5 * DAY);
    await fleet.store.put((await fleet.store.document()) ?? '');
    const { total } = fleet.kms;
    await refreshed(reader, 0);
    expect(fleet.kms.total).toBe(total);
    expect(open(reader, token)).toBe('InvalidRequestState: unknown key');
    expect(reader.codec.health()).toMatchObject({ canUnseal: false, keys: [] });
  });

  test('no key is unwrapped if all keys expired during an outage of the store, whose failure is then reported', async () => {
    const a = await start();
    fleet.store.down = true;
    fleet.clock.suspend(5 * DAY);
    expect(await refreshed(a, 0)).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(a.codec.health().lastError).toMatchObject({ source: 'store', kind: 'unavailable' });
  });

  test('a new key that cannot be unwrapped does not delay the repair of a rolled-back store', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky();
    const b = await start(0.5, { keyWrapper });
    const old = (await fleet.store.document()) ?? '';
    await b.codec.rotate();
    const known = await ids();
    await fleet.store.put(old);
    await a.codec.refresh();
    await a.codec.rotate();
    const others = await ids();
    expect(others).toHaveLength(2);
    seen.isRefused = await isWrapOf(1);
    expect(await refreshed(b, 30)).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    // The document carries the key that could not be unwrapped.
    expect((await ids()).toSorted()).toEqual([...new Set([...known, ...others])].toSorted());
    seen.isRefused = () => false;
    await fleet.clock.advance(60);
    expect(b.codec.health().keys.filter(({ held }) => held)).toHaveLength(3);
  });
});
