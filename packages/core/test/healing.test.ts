import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { KeyWrapper, KeyWrapperErrorKind } from '../src/key-wrapper.ts';
import { KeyWrapperError } from '../src/key-wrapper.ts';
import { keeperOf } from '../src/kms-codec.ts';
import type { KmsCodecOptions } from '../src/kms-codec-options.ts';
import { localKeyWrapper } from '../src/local-key-wrapper.ts';
import { encodeDocument, parseDocument } from '../src/ring/document.ts';
import { RingConflictError } from '../src/ring/store.ts';
import { Draws } from './support/draws.ts';
import { EventLog } from './support/event-log.ts';
import { Fleet, type Member, open, seal } from './support/fleet.ts';

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

/** A member that waits for as long as `draw` says before it heals: of 5 s. */
async function start(draw = 0.5, options: Partial<KmsCodecOptions> = {}): Promise<Member> {
  return fleet.start({ ring: fleet.store.connectUnwatched(), random: new Draws(draw).random, ...options });
}

/** What becomes of a refresh that has begun. */
function refreshing(member: Member): Promise<unknown> {
  return member.codec.refresh().then(
    () => 'done',
    (error: unknown) => error,
  );
}

/** What becomes of a refresh while `seconds` pass. */
async function refreshed(member: Member, seconds: number): Promise<unknown> {
  const outcome = refreshing(member);
  await fleet.clock.advance(seconds);
  return outcome;
}

/** The document without the MACs of some keys. */
function stripped(document: string, isStripped: (id: string) => boolean): string {
  const { body, macs } = parseDocument(document, 'default');
  return encodeDocument(body, new Map(Array.from(macs).filter(([id]) => !isStripped(id))));
}

/** A key wrapper that fails for wraps that `isRefused` picks, and counts the unwraps it is asked for. */
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

describe('F31: a ring that is absent', () => {
  test('is written back after the drawn wait; degraded until then, ok at once after it, and told', async () => {
    const a = await start();
    const before = await ids();
    fleet.store.flush();
    const outcome = refreshing(a);
    await fleet.clock.advance(2.4);
    expect(a.codec.health().status).toBe('degraded');
    expect(await fleet.store.document()).toBeUndefined();
    await fleet.clock.advance(0.2);
    expect(await outcome).toBe('done');
    expect(await ids()).toEqual(before);
    expect(a.codec.health().status).toBe('ok');
    expect(log.of('healed')).toEqual([{ epoch: 1 }]);
  });

  test('is not written back over what somebody wrote meanwhile', async () => {
    const first = await start(0.1);
    const late = await start(0.9);
    fleet.store.flush();
    const outcome = refreshed(late, 5);
    expect(await refreshed(first, 0.6)).toBe('done');
    await first.codec.rotate();
    expect(await outcome).toBeInstanceOf(RingConflictError);
    expect(await ids()).toHaveLength(2);
  });

  test('is not written back by who could not sign for all of its live keys', async () => {
    const writer = await start();
    const member = await fleet.start({ random: new Draws(0.5).random });
    await writer.codec.rotate();
    // It knows of the new key by a push, and has not unwrapped it yet.
    await fleet.clock.advance(0);
    expect(member.codec.health().keys.map(({ held }) => held)).toEqual([true, false]);
    fleet.store.flush();
    expect(await refreshed(member, 3)).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(await fleet.store.document()).toBeUndefined();
  });

  test('is not written back by a clock that is wrong', async () => {
    const a = await start();
    fleet.store.flush();
    fleet.store.date = () => new Date(fleet.clock.wallMs() + 3_600_000);
    expect(await refreshed(a, 3)).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(await fleet.store.document()).toBeUndefined();
  });
});

describe('F31: an older document', () => {
  /** A member that knows of two keys, and the document that has one of them. */
  async function rolledBack(draw = 0.5): Promise<{ a: Member; old: string }> {
    const a = await start(draw);
    const old = (await fleet.store.document()) ?? '';
    await a.codec.rotate();
    return { a, old };
  }

  test('is united with what is known after the drawn wait; degraded until then, and told', async () => {
    const { a, old } = await rolledBack();
    const before = await ids();
    await fleet.store.put(old);
    const outcome = refreshing(a);
    await fleet.clock.advance(2.4);
    expect(a.codec.health().status).toBe('degraded');
    expect(await ids()).toHaveLength(1);
    await fleet.clock.advance(0.2);
    expect(await outcome).toBe('done');
    expect((await ids()).toSorted()).toEqual(before.toSorted());
    expect((await ring()).epoch).toBe(3);
    expect(log.of('healed')).toEqual([{ epoch: 3 }]);
    expect(a.codec.health().status).toBe('ok');
  });

  test('is healed by one member, not by all', async () => {
    const { a, old } = await rolledBack(0.1);
    const b = await start(0.9);
    await fleet.store.put(old);
    const { writes } = fleet.store;
    expect(await Promise.all([refreshed(a, 0), refreshed(b, 5)])).toEqual(['done', 'done']);
    expect(fleet.store.writes - writes).toBe(1);
  });

  test('that goes away meanwhile is a lost race', async () => {
    const { a, old } = await rolledBack();
    await fleet.store.put(old);
    const outcome = refreshed(a, 0);
    await fleet.clock.advance(1);
    fleet.store.flush();
    await fleet.clock.advance(2);
    expect(await outcome).toBeInstanceOf(RingConflictError);
    expect(a.codec.health().lastError).toBeUndefined();
  });

  test('is corrupt to a reader, at once; it writes nothing and goes on with what it knows', async () => {
    const { a, old } = await rolledBack();
    const reader = await start(0.5, { role: 'reader' });
    await fleet.store.put(old);
    const { writes } = fleet.store;
    expect(await refreshed(reader, 0)).toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    await fleet.clock.advance(10);
    expect(fleet.store.writes).toBe(writes);
    expect(reader.codec.health().keys).toHaveLength(2);
    expect(open(reader, seal(a))).toBe('state');
  });

  test('of the same epoch, signed, with a key more, loses nothing that was known: it is united, not adopted', async () => {
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
    expect((await ring()).epoch).toBe(2);
    expect(await refreshed(a, 3)).toBe('done');
    const united = await ring();
    expect(united.entries.map(({ wraps }) => wraps.length)).toEqual([2, 1]);
    expect(united.epoch).toBe(3);
  });

  test('of which all keys have ended is written over, and none of it comes back', async () => {
    const a = await start();
    const old = (await fleet.store.document()) ?? '';
    const [ended] = await ids();
    fleet.clock.suspend(5 * DAY);
    await refreshed(a, 3);
    const now = await ids();
    expect(now).not.toContain(ended);
    await fleet.store.put(old);
    expect(await refreshed(a, 3)).toBe('done');
    expect(await ids()).toEqual(now);
  });
});

describe('F26: a document whose MACs were tampered with', () => {
  test('that has those of revoked keys only is written over', async () => {
    const a = await start();
    const revoked = a.codec.health().sealingKey;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const honest = (await fleet.store.document()) ?? '';
    await fleet.store.put(stripped(honest, (id) => id !== revoked));
    expect(await refreshed(a, 3)).toBe('done');
    expect((await ring()).macs.size).toBe(2);
    expect((await ring()).epoch).toBe(3);
  });

  test('is no ring to start from, without that of its newest key or with a wrong one of another key', async () => {
    const a = await start();
    await a.codec.rotate();
    const honest = (await fleet.store.document()) ?? '';
    const [first = '', second = ''] = await ids();
    const { body, macs } = parseDocument(honest, 'default');
    const wrong = encodeDocument(body, new Map([...macs, [first, randomBytes(32)]]));
    for (const document of [stripped(honest, (id) => id === second), wrong, stripped(honest, () => true)]) {
      await fleet.store.put(document);
      await expect(start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    }
    // The newest one is enough: others may have been unwrapped by nobody who signed.
    await fleet.store.put(stripped(honest, (id) => id === first));
    expect(open(await start(), seal(a))).toBe('state');
  });

  test('without any, a running member takes nothing from it and leaves it alone', async () => {
    const a = await start();
    const honest = (await fleet.store.document()) ?? '';
    const forged = stripped(honest, () => true);
    await fleet.store.put(forged);
    expect(await refreshed(a, 0)).toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    await fleet.clock.advance(60);
    expect(await fleet.store.document()).toBe(forged);
  });
});

describe('what is unwrapped', () => {
  test('by who starts while the KMS refuses: one key, however many live ones the ring has (F6)', async () => {
    const a = await start();
    await a.codec.rotate();
    await a.codec.rotate();
    const { seen, keyWrapper } = picky('denied');
    seen.isRefused = () => true;
    await expect(start(0.5, { keyWrapper })).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    expect(seen.unwraps).toBe(1);
  });

  test('by who was behind: what is live and not held, and no key that was revoked meanwhile', async () => {
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
    // It cannot sign for the one it never had, and the ring goes on.
    await b.codec.rotate();
    expect(await ids()).toHaveLength(4);
  });

  test('a document that brings no new key is no proof, and one whose keys cannot be unwrapped neither (F10)', async () => {
    const [one, other] = [fleet.kms.connect(), localKeyWrapper({ masterKey: randomBytes(32) })];
    const { seen, keyWrapper } = picky();
    const a = await start(0.5, { keyWrapper });
    const proved = a.codec.health().lastProof;
    await fleet.clock.advance(100);
    const both = await start(0.5, { keyWrapper: [one, other] });
    await both.codec.refresh();
    expect((await ring()).epoch).toBe(2);
    await a.codec.refresh();
    expect(a.codec.health().lastProof).toEqual(proved);
    await both.codec.rotate();
    seen.isRefused = await isWrapOf(1);
    const outcome = refreshed(a, 20);
    expect(await outcome).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(a.codec.health().lastProof).toEqual(proved);
  });

  test('a key that cannot be unwrapped keeps nothing else back: the rest is held, read and proved on (F7)', async () => {
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
    // Each 30 s it is tried again; a proof is due each 810 s.
    expect(now - (limits?.lastRead?.wallMs ?? 0)).toBeLessThanOrEqual(31_000);
    expect(now - (limits?.lastProof?.wallMs ?? 0)).toBeLessThanOrEqual(811_000);
    expect(b.codec.health()).toMatchObject({ status: 'degraded', lastError: { kind: 'kms unavailable' } });
    seen.isRefused = () => false;
    await fleet.clock.advance(31);
    expect(b.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });

  test('a refusal of a new key counts: the KMS is asked at once whether it refuses the old one too (F10)', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky('denied');
    const b = await start(0.5, { keyWrapper });
    await a.codec.rotate();
    seen.isRefused = await isWrapOf(1);
    seen.unwraps = 0;
    const before = b.codec.health().lastProof;
    await fleet.clock.advance(1);
    expect(await refreshed(b, 0)).toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
    expect(seen.unwraps).toBe(2);
    expect(b.codec.health().lastProof).not.toEqual(before);
  });

  test('nothing of a document stored anew whose keys have all ended: a reader refuses it, as it would at a start', async () => {
    await start();
    const reader = await start(0.5, { role: 'reader' });
    fleet.clock.suspend(5 * DAY);
    await fleet.store.put((await fleet.store.document()) ?? '');
    expect(await refreshed(reader, 0)).toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
  });

  test('nothing when all keys have ended while the store was away: the failure told is the store’s', async () => {
    const a = await start();
    fleet.store.down = true;
    fleet.clock.suspend(5 * DAY);
    expect(await refreshed(a, 0)).toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(a.codec.health().lastError?.kind).toBe('store unavailable');
  });

  test('a rolled-back store whose lost key cannot be unwrapped is not written over without that key’s signature', async () => {
    const a = await start();
    const { seen, keyWrapper } = picky();
    const b = await start(0.5, { keyWrapper });
    const old = (await fleet.store.document()) ?? '';
    await b.codec.rotate();
    const known = await ids();
    await fleet.store.put(old);
    await a.codec.refresh();
    await a.codec.rotate();
    expect(await ids()).toHaveLength(2);
    seen.isRefused = await isWrapOf(1);
    const before = await fleet.store.document();
    expect(await refreshed(b, 30)).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(await fleet.store.document()).toBe(before);
    seen.isRefused = () => false;
    await fleet.clock.advance(60);
    expect(await ids()).toEqual(expect.arrayContaining(known));
    expect(await ids()).toHaveLength(3);
  });
});
