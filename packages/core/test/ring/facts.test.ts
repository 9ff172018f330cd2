import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ancestorsMacOf, voucherOf } from '../../src/ring/certificates.ts';
import {
  encodeDocument,
  type Macs,
  parseDocument,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from '../../src/ring/document.ts';
import {
  isSameFact,
  isTombstone,
  type Judgement,
  revocable,
  revokedKey,
  signersOf,
  tombstone,
  unwrappedKey,
} from '../../src/ring/facts.ts';
import { learn, lineagesOf, withUnwrapped } from '../../src/ring/learn.ts';
import { createSnapshot, isUsable, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { documentOf, lacks } from '../../src/ring/written-document.ts';
import {
  documentWith,
  entryBy,
  judgementOf,
  RING,
  revocationBy,
  signerOf,
  signersWith,
  T0,
  type TestKey,
  testKey,
  wrapBy,
} from '../support/certified.ts';

const HOUR = 3_600_000;
const [one, two, three, four] = [testKey(1), testKey(2), testKey(3), testKey(4)] as const;
const newestKey = testKey(5);
const stranger = testKey(99);

/** Facts about keys that were unwrapped from these entries. */
function knowing(...keys: readonly (readonly [TestKey, RingEntry])[]): RingSnapshot {
  const held = keys.map(([key, entry]) => unwrappedKey(RING, entry, key.held, entry.wraps[0], 0));
  return learn(createSnapshot(held, []), documentWith(...keys.map(([, entry]) => entry)), judgementOf()).known;
}

/** A key without vouchers, as its publisher or a member that unwrapped it knows it. */
function ownKey(key: TestKey): RingKey {
  const entry = entryBy(key, []);
  return unwrappedKey(RING, entry, key.held, entry.wraps[0], 0);
}

const first = entryBy(one, []);
const second = entryBy(two, [one]);
const third = entryBy(three, [one, two]);

/** The known key with this id. */
function keyOf(known: RingSnapshot, { id }: TestKey): RingKey {
  const key = known.byId.get(id);
  if (key === undefined) throw new Error('the key is not known');
  return key;
}

const junkMac = Buffer.alloc(32, 7);
const junkWrap = (n: number): RingWrap => ({
  provider: 'local',
  keyId: `junk ${n}`,
  wrapped: Buffer.from([n]),
  mac: junkMac,
});
const junkId = (n: number): string => Buffer.from(`junk${n}`.padEnd(9)).toString('base64url');

function written(known: RingSnapshot, read: RingDocument | undefined): RingDocument {
  const document = documentOf(known, read, { ring: RING, past: new Map(), isRemovable: () => false });
  // Written documents can be read.
  return parseDocument(encodeDocument(document), RING);
}

describe('an unknown key', () => {
  const known = knowing([one, first]);

  test('an unknown key is wanted when a known key vouches for it', () => {
    expect(learn(known, documentWith(first, second), judgementOf()).wanted).toEqual([second]);
  });

  test('an unknown key is not wanted when no known key vouches for it', () => {
    const entries = [entryBy(two, []), entryBy(three, [two]), entryBy(four, [stranger])];
    const learned = learn(known, documentWith(first, ...entries), judgementOf());
    expect(learned.wanted).toEqual([]);
    expect(learned.known).toBe(known);
  });

  test('an unknown key is wanted when a revoked or an expired key vouches for it', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [one]) }), judgementOf()).known;
    expect(learn(revoked, documentWith(second), judgementOf()).wanted).toEqual([second]);
    const past = new Map([[two.id, signerOf(two)]]);
    expect(learn(known, documentWith(entryBy(three, [two])), judgementOf({ past })).wanted).toHaveLength(1);
  });

  test('a key that expired by a clock that was set back is wanted again, but not if the key is over or revoked', () => {
    const ended = createSnapshot([{ ...keyOf(known, one), held: undefined }]);
    const at = (nowMs: number) => learn(ended, documentWith(first), judgementOf({ nowMs })).wanted;
    expect(at(first.opensUntil - 1)).toEqual([first]);
    expect(at(first.opensUntil)).toEqual([]);
    const revoked = createSnapshot([{ ...keyOf(known, one), held: undefined, revoked: true }]);
    expect(learn(revoked, documentWith(first), judgementOf()).wanted).toEqual([]);
  });

  test('a key that was known to be revoked when its life was over is not wanted again (F36)', () => {
    const wantedWith = (over: ReadonlySet<string>) =>
      learn(known, documentWith(first, second), judgementOf({ over, isUnconfirmed: true, nowMs: two.opensUntil }))
        .wanted;
    expect(wantedWith(new Set())).toEqual([second]);
    expect(wantedWith(new Set([two.id]))).toEqual([]);
  });

  test('unknown keys are wanted newest first', () => {
    const entries = [second, third, entryBy(four, [one])];
    const { wanted } = learn(known, documentWith(...entries), judgementOf());
    expect(wanted.map(({ id }) => id)).toEqual([four.id, three.id, two.id]);
  });

  test('an unknown key is wanted once, even if it is in the document and was carried', () => {
    const carrying = createSnapshot(known.keys, [second, third]);
    const { wanted } = learn(carrying, documentWith(first, second), judgementOf());
    expect(wanted.map(({ id }) => id)).toEqual([two.id, three.id]);
  });

  test('an unknown key is not wanted once it has expired', () => {
    const at = (nowMs: number) => learn(known, documentWith(second), judgementOf({ nowMs })).wanted;
    expect(at(two.opensUntil - 1)).toHaveLength(1);
    expect(at(two.opensUntil)).toHaveLength(0);
  });

  test('a key that was created later than any clock can show is not wanted', () => {
    const latest = two.created - 300_000 - 64_000;
    const at = (nowMs: number) => learn(known, documentWith(second), judgementOf({ nowMs })).wanted;
    expect(at(latest)).toHaveLength(1);
    expect(at(latest - 1)).toHaveLength(0);
  });

  test('an unknown key that the member’s own pin refuses is not wanted, and stays in the document', () => {
    const learned = learn(known, documentWith(first, second), judgementOf({ isPinnedOut: () => true }));
    expect(learned.wanted).toEqual([]);
    expect(isTombstone(keyOf(learned.known, two))).toBe(true);
    expect(written(learned.known, undefined).entries.map(({ id }) => id)).toEqual([one.id, two.id]);
  });

  test('an unknown key that a known newer one revokes is kept as revoked, and never unwrapped', () => {
    const revoked = { ...entryBy(one, []), revoked: revocationBy(one.id, [two]) };
    const learned = learn(knowing([two, second]), documentWith(revoked, second), judgementOf());
    expect(learned.wanted).toEqual([]);
    expect(keyOf(learned.known, one)).toMatchObject({ revoked: true, held: undefined, authenticator: undefined });
  });

  test('an unknown key is not revoked by an older, a revoked or an unknown key', () => {
    for (const by of [one, stranger]) {
      const claimed = { ...entryBy(two, [one]), revoked: revocationBy(two.id, [by]) };
      expect(learn(known, documentWith(first, claimed), judgementOf()).wanted).toEqual([claimed]);
    }
    const both = knowing([one, first], [three, entryBy(three, [one])]);
    const without = learn(
      both,
      documentWith({ ...third, revoked: revocationBy(three.id, [three]) }),
      judgementOf(),
    ).known;
    const claimed = { ...second, revoked: revocationBy(two.id, [three]) };
    expect(learn(without, documentWith(claimed), judgementOf()).wanted).toEqual([claimed]);
  });

  test('revoked keys are remembered while a ring has room for them, the newest first (F23)', () => {
    const last = testKey(140);
    const knowsLast = knowing([last, entryBy(last, [])]);
    const many = Array.from({ length: 70 }, (_, i) => testKey(10 + i));
    const entries = many.map((key) => ({ ...entryBy(key, [last]), revoked: revocationBy(key.id, [last]) }));
    const judgement = judgementOf({ nowMs: last.created });
    const half = learn(knowsLast, documentWith(...entries.slice(0, 40)), judgement);
    const learned = learn(half.known, documentWith(...entries.slice(40)), judgement);
    const ids = learned.known.keys.filter(isTombstone).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(
      many
        .slice(-63)
        .map(({ id }) => id)
        .toSorted(),
    );
    expect(learned.wanted).toEqual([]);
  });
});

describe('a key of which only the revocation is known', () => {
  const newer = knowing([two, second], [three, third]);
  const revokedOne = { ...first, revoked: revocationBy(one.id, [one, two]) };
  const shifted = { ...entryBy(one, [two], { created: one.created - 1_000 }), revoked: revokedOne.revoked };
  const knows = learn(newer, documentWith(shifted, second, third), judgementOf()).known;

  test('a key of which only the revocation is known is not wanted under its true times either, even if a document omits the revocation', () => {
    expect(keyOf(knows, one)).toMatchObject({ revoked: true, created: one.created - 1_000 });
    const right = entryBy(one, [two]);
    expect(learn(knows, documentWith(right, second, third), judgementOf())).toEqual({ known: knows, wanted: [] });
  });

  test('a known revocation is written to the entry of its key in a document', () => {
    const right = entryBy(one, [two]);
    const read = documentWith(right, second, third);
    expect(lacks(read, knows, judgementOf())).toBe(true);
    const [entry] = written(knows, read).entries;
    expect(entry).toMatchObject({ created: one.created, wraps: right.wraps, vouchers: right.vouchers });
    expect([...(entry?.revoked?.by.keys() ?? [])].toSorted()).toEqual([one.id, two.id].toSorted());
  });

  test('a revocation without a known key gets no other certificate, as its times are not authenticated and a certificate ignores them (F36)', () => {
    // Made after the stolen key that certifies it, under times that claim it was made before.
    const forged = { ...entryBy(four, [two], { created: T0 }), revoked: revocationBy(four.id, [three]) };
    const honest = knowing([two, second], [three, third], [newestKey, entryBy(newestKey, [])]);
    const fooled = learn(honest, documentWith(forged, second, third), judgementOf()).known;
    expect(keyOf(fooled, four).revoked).toBe(true);
    const entry = written(fooled, documentWith(forged, second, third)).entries.find(({ id }) => id === four.id);
    expect([...(entry?.revoked?.by.keys() ?? [])]).toEqual([three.id]);
  });

  test('a revoked key that is the only ancestor of a new key is unwrapped, and stays revoked', () => {
    const gone = { ...entryBy(one, []), revoked: revocationBy(one.id, [one, two]) };
    const heir = { ...entryBy(newestKey, [one]) };
    const wish = (known: RingSnapshot, ...entries: RingEntry[]) =>
      learn(known, documentWith(gone, second, third, ...entries), judgementOf());
    // Linked to the known keys: the second one names the first as its ancestor.
    const knowing2 = knowing([two, second], [three, third]);
    const { known } = wish(knowing2);
    expect(isTombstone(keyOf(known, one))).toBe(true);
    expect(wish(known).wanted).toEqual([]);
    expect(wish(known, { ...heir, vouchers: new Map() }).wanted).toEqual([]);
    expect(wish(known, { ...heir, revoked: revocationBy(newestKey.id, []) }).wanted).toEqual([]);
    expect(wish(known, heir).wanted.map(({ id }) => id)).toEqual([one.id]);
    const key = unwrappedKey(RING, gone, one.held, gone.wraps[0], 0);
    const opened = withUnwrapped(known, [key], judgementOf());
    expect(keyOf(opened, one)).toMatchObject({ revoked: true, held: undefined, authenticator: one.held.authenticator });
    expect(wish(opened, heir).wanted.map(({ id }) => id)).toEqual([newestKey.id]);
  });

  test('a key whose revocation was not certified for its true times is unwrapped, and revoked by its own certificate', () => {
    // Made after the key that certified it, so only its own certificate counts.
    const claimed = { ...entryBy(four, [two], { created: T0 }), revoked: revocationBy(four.id, [four, three]) };
    const fooled = learn(newer, documentWith(claimed, second, third), judgementOf()).known;
    const right = entryBy(four, [three]);
    const { known, wanted } = learn(fooled, documentWith(right, second, third), judgementOf());
    expect(wanted).toEqual([right]);
    const key = unwrappedKey(RING, right, four.held, right.wraps[0], 0);
    expect(keyOf(withUnwrapped(known, [key], judgementOf()), four)).toMatchObject({ revoked: true, held: undefined });
  });

  test('a key is used again if only a newer key certified the revocation, and that key is in fact older', () => {
    const claimed = { ...entryBy(four, [two], { created: T0 }), revoked: revocationBy(four.id, [three]) };
    const fooled = learn(newer, documentWith(claimed, second, third), judgementOf()).known;
    const right = entryBy(four, [three]);
    const key = unwrappedKey(RING, right, four.held, right.wraps[0], 0);
    const known = withUnwrapped(fooled, [key], judgementOf());
    expect(known.keys.filter(({ id }) => id === four.id)).toHaveLength(1);
    expect(keyOf(known, four)).toMatchObject({ revoked: false, held: four.held, created: four.created });
  });
});

describe('a known key', () => {
  const known = knowing([one, first], [two, second]);

  test('keeps its times, whatever a document states', () => {
    const later = entryBy(two, [one], { opensUntil: two.opensUntil + HOUR, created: two.created - HOUR });
    const learned = learn(known, documentWith(first, later), judgementOf());
    expect(learned).toEqual({ known, wanted: [] });
    expect(learned.known).toBe(known);
  });

  test('a known key gains only vouchers that are valid under known keys', () => {
    const bare = knowing([one, first], [two, entryBy(two, [])]);
    const vouchers = new Map([...entryBy(two, [one, stranger]).vouchers, [three.id, junkMac]]);
    const learned = learn(bare, documentWith({ ...second, vouchers }), judgementOf()).known;
    expect([...keyOf(learned, two).vouchers.keys()]).toEqual([one.id]);
  });

  test('a known key gains no vouchers for other times', () => {
    const bare = knowing([one, first], [two, entryBy(two, [])]);
    const other = entryBy(two, [one], { opensUntil: two.opensUntil + HOUR });
    expect(learn(bare, documentWith(other), judgementOf()).known).toBe(bare);
  });

  test('a known key gains only wraps whose MAC is valid', () => {
    const added = wrapBy(two, { provider: 'aws-kms' });
    const entry = { ...second, wraps: [junkWrap(1), added, { ...added, keyId: 'x' }, ...second.wraps] };
    const learned = learn(known, documentWith(first, entry), judgementOf()).known;
    expect(keyOf(learned, two).wraps.map(({ provider, isUnwrapped }) => [provider, isUnwrapped])).toEqual([
      ['local', true],
      ['aws-kms', false],
    ]);
  });

  test('keeps a wrap beside one that differs only in its signature or its MAC', () => {
    const signed = wrapBy(two, { signature: Buffer.from([1]) });
    const facts = [signed, wrapBy(two, { signature: Buffer.from([2]) }), wrapBy(two), { ...signed, mac: junkMac }];
    for (const fact of facts)
      expect(facts.map((other) => isSameFact(fact, other))).toEqual(facts.map((other) => other === fact));
  });

  test('a known key has at most 16 wraps (F23)', () => {
    const wraps = Array.from({ length: 16 }, (_, i) => wrapBy(two, { keyId: `v${i}` }));
    const learned = learn(known, documentWith({ ...second, wraps }), judgementOf()).known;
    expect(keyOf(learned, two).wraps).toHaveLength(16);
    expect(learn(learned, documentWith({ ...second, wraps }), judgementOf()).known).toBe(learned);
    expect(keyOf(learned, two).wraps[0]).toMatchObject({ keyId: 'k', isUnwrapped: true });
  });

  test('a known key is revoked by its own certificate, and can only certify from then on', () => {
    const revoked = learn(
      known,
      documentWith({ ...second, revoked: revocationBy(two.id, [two]) }),
      judgementOf(),
    ).known;
    expect(keyOf(revoked, two)).toMatchObject({
      revoked: true,
      held: undefined,
      authenticator: two.held.authenticator,
    });
  });

  test('a known key is revoked by a newer one, and not by an older one', () => {
    const claims = [
      { ...first, revoked: revocationBy(one.id, [two]) },
      { ...second, revoked: revocationBy(two.id, [one]) },
    ];
    const learned = learn(known, documentWith(...claims), judgementOf()).known;
    expect([keyOf(learned, one).revoked, keyOf(learned, two).revoked]).toEqual([true, false]);
  });

  test('a known key is not revoked by a key that the same document revokes, because the newest is checked first', () => {
    const all = knowing([one, first], [two, second], [three, third]);
    const claims = [
      { ...first, revoked: revocationBy(one.id, [two]) },
      { ...second, revoked: revocationBy(two.id, [three]) },
    ];
    const learned = learn(all, documentWith(...claims), judgementOf()).known;
    expect([keyOf(learned, one).revoked, keyOf(learned, two).revoked]).toEqual([false, true]);
  });

  test('stays revoked, whatever a document states', () => {
    const revoked = learn(
      known,
      documentWith({ ...second, revoked: revocationBy(two.id, [two]) }),
      judgementOf(),
    ).known;
    for (const claim of [undefined, { at: T0, by: new Map() }, revocationBy(two.id, [stranger])]) {
      expect(learn(revoked, documentWith({ ...second, revoked: claim }), judgementOf()).known).toBe(revoked);
    }
  });

  test('a revoked key gains the certificates that others add', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [one]) }), judgementOf()).known;
    const more = { ...first, revoked: revocationBy(one.id, [two]) };
    const learned = learn(revoked, documentWith(more), judgementOf()).known;
    expect([...(keyOf(learned, one).revocation?.by.keys() ?? [])].toSorted()).toEqual([one.id, two.id].toSorted());
  });

  test('a key that was revoked without its own certificate gains the record that has one', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [two]) }), judgementOf()).known;
    const better = revocationBy(one.id, [one], T0 + 5_000);
    const learned = learn(revoked, documentWith({ ...first, revoked: better }), judgementOf()).known;
    expect(keyOf(learned, one).revocation).toEqual(better);
  });
});

describe('the revocation of a key', () => {
  const known = knowing([one, first], [two, second], [three, third]);
  const signers = signersOf(known.keys, new Map());

  test('creates its own certificate, and that of the newest key', () => {
    const revoked = revokedKey(RING, keyOf(known, two), T0 + 1_234, signers);
    expect(revoked).toMatchObject({ revoked: true, held: undefined, authenticator: two.held.authenticator });
    expect(revoked?.revocation).toEqual(revocationBy(two.id, [two, three], T0 + 1_000));
  });

  test('creates one certificate if the key is the newest', () => {
    const revoked = revokedKey(RING, keyOf(known, three), T0, signers);
    expect(revoked?.revocation).toEqual(revocationBy(three.id, [three]));
  });

  test('uses no certificate of a key that is revoked itself', () => {
    const withoutNewest = new Map([...signers, [three.id, signerOf(three, true)]]);
    const revoked = revokedKey(RING, keyOf(known, one), T0, withoutNewest);
    expect([...(revoked?.revocation?.by.keys() ?? [])]).toEqual([one.id, two.id]);
  });

  test('known and carried keys can each be revoked once, and none that is revoked already or of a ring that was left', () => {
    const [left, gone, held] = known.keys.map((key, i) => ({
      ...key,
      isLeft: i === 0,
      revocation: i === 1 ? { at: T0, by: new Map() } : undefined,
    })) as [RingKey, RingKey, RingKey];
    const [carried, unreadable] = [entryBy(four, []), entryBy(newestKey, [])];
    const all = createSnapshot([left, gone, held], [carried, third], [unreadable]);
    expect(revocable(all).map(({ id }) => id)).toEqual([three.id, four.id, newestKey.id]);
  });

  test('fails for a key that was never unwrapped and is newer than all others', () => {
    const refused = learn(known, documentWith(entryBy(four, [one])), judgementOf({ isPinnedOut: () => true })).known;
    expect(revokedKey(RING, keyOf(refused, four), T0, signersOf(refused.keys, new Map()))).toBeUndefined();
  });
});

describe('the missing facts of a document', () => {
  const known = knowing([one, first], [two, second]);
  const lacksOf = (document: RingDocument, from: RingSnapshot = known, more: Partial<Judgement> = {}): boolean =>
    lacks(document, from, judgementOf(more));

  test('a document with all known facts lacks none', () => {
    expect(lacksOf(documentWith(first, second))).toBe(false);
    expect(lacksOf(documentWith(second, third, first))).toBe(false);
  });

  test('a document lacks a known key, until that has expired', () => {
    expect(lacksOf(documentWith(first))).toBe(true);
    expect(lacksOf(documentWith())).toBe(true);
    expect(lacksOf(documentWith(first), known, { nowMs: two.opensUntil - 1 })).toBe(true);
    expect(lacksOf(documentWith(first), known, { nowMs: two.opensUntil })).toBe(false);
  });

  test('a document lacks the true times of a key', () => {
    for (const time of ['created', 'activates', 'sealsUntil', 'opensUntil'] as const)
      expect(lacksOf(documentWith(first, entryBy(two, [one], { [time]: two[time] + HOUR })))).toBe(true);
  });

  test('a document lacks a known voucher', () => {
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map() }))).toBe(true);
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map([[one.id, junkMac]]) }))).toBe(true);
  });

  test('a document lacks a known voucher, even if it has eight invalid ones', () => {
    const junk = Array.from({ length: 8 }, (_, i) => [junkId(i), junkMac] as const);
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map(junk) }))).toBe(true);
  });

  test('a document lacks known vouchers that were replaced by invalid ones', () => {
    const many = Array.from({ length: 8 }, (_, i) => testKey(20 + i));
    const last = testKey(40);
    const entry = entryBy(last, many);
    const all = knowing(...many.map((key): [TestKey, RingEntry] => [key, entryBy(key, [])]), [last, entry]);
    const spoilt = new Map([...entry.vouchers].map(([id, mac], i) => [id, i === 0 ? mac : junkMac]));
    const others = many.map((key) => entryBy(key, []));
    expect(lacksOf(documentWith(...others, entry), all)).toBe(false);
    expect(lacksOf(documentWith(...others, { ...entry, vouchers: spoilt }), all)).toBe(true);
    // If others may be able to check the rest, one valid voucher is enough.
    const unknown = Array.from({ length: 7 }, (_, i) => [junkId(i), junkMac] as const);
    const full = new Map([...[...entry.vouchers].slice(0, 1), ...unknown]);
    expect(lacksOf(documentWith(...others, { ...entry, vouchers: full }), all)).toBe(false);
  });

  test('a document lacks the ancestors of a key, if they are known', () => {
    for (const ancestors of [undefined, { ids: [stranger.id], mac: junkMac }]) {
      const document = documentWith(first, { ...second, ancestors });
      expect(lacksOf(document)).toBe(true);
      expect(lacksOf(document, knowing([one, first], [two, { ...second, ancestors }]))).toBe(false);
    }
  });

  test('a document lacks a known wrap, while there is room for that', () => {
    const added = wrapBy(two, { provider: 'aws-kms' });
    const rich = learn(known, documentWith({ ...second, wraps: [added] }), judgementOf()).known;
    expect(lacksOf(documentWith(first, second), rich)).toBe(true);
    const full = [...second.wraps, ...Array.from({ length: 15 }, (_, i) => junkWrap(i))];
    expect(lacksOf(documentWith(first, { ...second, wraps: full }), rich)).toBe(false);
  });

  test('a document lacks a wrap that this member unwrapped, whatever is in its place', () => {
    const full = Array.from({ length: 16 }, (_, i) => junkWrap(i));
    expect(lacksOf(documentWith(first, { ...second, wraps: full }))).toBe(true);
  });

  test('a document lacks a known revocation', () => {
    const revoked = { ...second, revoked: revocationBy(two.id, [two]) };
    const knows = learn(known, documentWith(first, revoked), judgementOf()).known;
    expect(lacksOf(documentWith(first, revoked), knows)).toBe(false);
    expect(lacksOf(documentWith(first, second), knows)).toBe(true);
    const junk = { at: T0, by: new Map([[two.id, junkMac]]) };
    expect(lacksOf(documentWith(first, { ...second, revoked: junk }), knows)).toBe(true);
  });

  test('a document lacks a revoked key’s own certificate, because a newer one may be revoked too', () => {
    const revoked = { ...first, revoked: revocationBy(one.id, [two]) };
    const knows = learn(known, documentWith(revoked, second), judgementOf()).known;
    expect(lacksOf(documentWith(revoked, second), knows)).toBe(true);
    expect(lacksOf(written(knows, documentWith(revoked, second)), knows)).toBe(false);
  });

  test('a document lacks nothing because of entries that are merely carried', () => {
    expect(lacksOf(documentWith(first, second), createSnapshot(known.keys, [third]))).toBe(false);
  });

  describe('the missing facts of a key of which only the revocation is known', () => {
    const revoked = { ...first, revoked: revocationBy(one.id, [one, two]) };
    const newer = knowing([two, second], [three, third]);
    const knows = learn(newer, documentWith(revoked, second, third), judgementOf()).known;

    test('a document without an entry of a revoked key lacks nothing, because no member could use that key', () => {
      expect(lacksOf(documentWith(second, third), knows)).toBe(false);
    });

    test('a document lacks the revocation of a key, if that is missing or has no valid certificate', () => {
      expect(lacksOf(documentWith(revoked, second, third), knows)).toBe(false);
      expect(lacksOf(documentWith(first, second, third), knows)).toBe(true);
      for (const by of [new Map(), new Map([[two.id, junkMac]])]) {
        expect(lacksOf(documentWith({ ...first, revoked: { at: T0, by } }, second, third), knows)).toBe(true);
      }
    });

    test('a document lacks a key’s own revocation if its only certifier is revoked since, and the key is unwrapped for that', () => {
      const byTwo = { ...first, revoked: revocationBy(one.id, [two]) };
      const knowsByTwo = learn(newer, documentWith(byTwo, second, third), judgementOf()).known;
      const document = documentWith(byTwo, { ...second, revoked: revocationBy(two.id, [two, three]) }, third);
      const later = learn(knowsByTwo, document, judgementOf());
      expect(lacksOf(document, later.known)).toBe(false);
      expect(later.wanted.map(({ id }) => id)).toEqual([one.id]);
      const key = unwrappedKey(RING, byTwo, one.held, byTwo.wraps[0], 0);
      const opened = withUnwrapped(later.known, [key], judgementOf());
      expect(keyOf(opened, one)).toMatchObject({ revoked: true, held: undefined });
      expect(lacksOf(document, opened)).toBe(true);
      expect(lacksOf(written(opened, document), opened)).toBe(false);
      const [entry] = written(opened, document).entries;
      expect(entry?.revoked?.by.has(one.id)).toBe(true);
    });
  });
});

describe('a written document', () => {
  const known = knowing([one, first], [two, second]);

  test('a written document has all known facts, and replaces only certificates and vouchers that others may check', () => {
    const vouchers = new Map([[stranger.id, junkMac], ...second.vouchers]);
    const read = documentWith(
      first,
      { ...second, vouchers, wraps: [junkWrap(1), ...second.wraps] },
      entryBy(stranger, []),
    );
    const { entries } = written(known, read);
    expect(entries.map(({ id }) => id)).toEqual([one.id, two.id]);
    // In the order of the document that was read.
    expect([...(entries[1]?.vouchers.keys() ?? [])]).toEqual([stranger.id, one.id]);
    expect(entries[1]?.wraps).toEqual(second.wraps);
  });

  test('a written document has the certificates of a revocation that this member cannot check', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [one]) }), judgementOf()).known;
    const read = { ...first, revoked: revocationBy(one.id, [stranger]) };
    const [entry] = written(revoked, documentWith(read)).entries;
    expect(new Set(entry?.revoked?.by.keys())).toEqual(new Set([one.id, two.id, stranger.id]));
    const claims = [revocationBy(one.id, [stranger]), { at: T0, by: new Map([[two.id, junkMac]]) }];
    const kept = claims.map((claim) => written(known, documentWith({ ...first, revoked: claim })).entries[0]?.revoked);
    expect(kept).toEqual([claims[0], undefined]);
  });

  test('a written document has carried entries, and neither expired keys nor those of another ring', () => {
    const keys = known.keys.map((key) => (key.id === one.id ? { ...key, isLeft: true } : key));
    const carrying = createSnapshot(keys, [third]);
    expect(written(carrying, undefined).entries.map(({ id }) => id)).toEqual([two.id, three.id]);
    const options = { ring: RING, past: new Map(), isRemovable: ({ id }: RingKey) => id === two.id };
    expect(documentOf(carrying, undefined, options).entries.map(({ id }) => id)).toEqual([three.id]);
  });

  test('drops carried entries first if there are more than 64 keys (F23)', () => {
    const many = Array.from({ length: 64 }, (_, i) => testKey(i + 1));
    const full = createSnapshot(many.map(ownKey), [entryBy(testKey(70), [one])]);
    const { entries } = written(full, undefined);
    expect(entries).toHaveLength(64);
    expect(entries.some(({ id }) => id === testKey(70).id)).toBe(false);
  });

  test('keeps, with room for one revoked key, first the one that links keys in use, then one written as live, then one that is there, then the latest (F23)', () => {
    const [root, link, heir, older, later] = [one, two, three, four, newestKey];
    const fillers = Array.from({ length: 61 }, (_, i) => testKey(i + 6));
    const ringKeyOf = (key: TestKey, ids: readonly string[], revokedAt?: number) => ({
      ...ownKey(key),
      ancestors: { ids, mac: ancestorsMacOf(RING, ids, key.held.authenticator) },
      ...(revokedAt === undefined ? {} : { revoked: true, revocation: { at: revokedAt, by: new Map() } }),
    });
    const keptOf = (heirOf: TestKey, read: RingDocument | undefined): readonly string[] => {
      const inUse = [
        ringKeyOf(root, []),
        ringKeyOf(heir, [heirOf.id]),
        ...fillers.map((key) => ringKeyOf(key, [root.id])),
      ];
      const revoked = [
        ringKeyOf(link, [root.id], 1_000),
        ringKeyOf(older, [root.id], 2_000),
        ringKeyOf(later, [root.id], 3_000),
      ];
      const { entries } = written(createSnapshot([...inUse, ...revoked]), read);
      expect(entries).toHaveLength(inUse.length + 1);
      const ids = new Set(inUse.map(({ id }) => id));
      return entries.map(({ id }) => id).filter((id) => !ids.has(id));
    };
    const asLive = documentWith(entryBy(older, []));
    const asRevoked = documentWith({ ...entryBy(older, []), revoked: { at: 2_000, by: new Map() } });
    expect(keptOf(link, asLive)).toEqual([link.id]);
    expect(keptOf(root, asLive)).toEqual([older.id]);
    expect(keptOf(root, asRevoked)).toEqual([older.id]);
    expect(keptOf(root, undefined)).toEqual([later.id]);
  });

  test('drops revoked keys before carried entries if there are more than 64 keys (F23)', () => {
    const inUse = Array.from({ length: 62 }, (_, i) => ownKey(testKey(i + 10)));
    const revoked = [one, two].map((key) => ({ ...ownKey(key), revocation: revocationBy(key.id, [key]) }));
    const { entries } = written(createSnapshot([...inUse, ...revoked], [third]), undefined);
    expect(entries).toHaveLength(64);
    expect([one, two, three].map(({ id }) => entries.some((entry) => entry.id === id))).toEqual([false, true, true]);
  });

  test('drops, over 256 KiB, first carried entries, then keys of which only the revocation is known, then foreign wraps (F23)', () => {
    const wrapsOf = (key: TestKey, count: number, isUnwrapped: boolean) =>
      Array.from({ length: count }, (_, i) => ({
        ...wrapBy(key, { keyId: `${isUnwrapped} ${i}`, wrapped: Buffer.alloc(1_500) }),
        isUnwrapped,
      }));
    const carried = entryBy(four, [], { wraps: wrapsOf(four, 15, false) });
    const revoked = tombstone(entryBy(one, [], { wraps: wrapsOf(one, 8, false) }), revocationBy(one.id, [three]));
    const keptOf = (count: number, foreign: number) => {
      const inUse = Array.from({ length: count }, (_, i) => testKey(i + 10)).map((key) => ({
        ...ownKey(key),
        wraps: [...wrapsOf(key, 14, true), ...wrapsOf(key, foreign, false)],
      }));
      const { entries } = written(createSnapshot([...inUse, revoked], [carried]), undefined);
      const has = ({ id }: TestKey) => entries.some((entry) => entry.id === id);
      return [has(four), has(one), entries.find(({ id }) => id === testKey(10).id)?.wraps.length];
    };
    expect(keptOf(6, 1)).toEqual([true, true, 15]);
    expect(keptOf(7, 1)).toEqual([false, true, 15]);
    expect(keptOf(8, 1)).toEqual([false, false, 15]);
    expect(keptOf(8, 2)).toEqual([false, false, 14]);
  });

  test('drops, with room for one revoked key, first a key that was never unwrapped and that only expired keys certify', () => {
    const [genuine, junk, expired] = [testKey(1), testKey(2), testKey(3)];
    const inUse = Array.from({ length: 63 }, (_, i) => testKey(i + 4));
    const newest = inUse.at(-1) ?? expired;
    const past = signersWith(expired);
    const before = createSnapshot([
      ...inUse.map(ownKey),
      { ...ownKey(genuine), revoked: true, revocation: revocationBy(genuine.id, [genuine]) },
    ]);
    const keptOf = (by: readonly TestKey[], readOf: (claimed: RingEntry) => RingDocument): readonly string[] => {
      // The later of the two revocations.
      const claimed = entryBy(junk, [], { revoked: revocationBy(junk.id, by, T0 + HOUR) });
      const { known: both } = learn(before, documentWith(claimed), judgementOf({ past }));
      expect(both.byId.get(junk.id)?.revoked).toBe(true);
      const { entries } = documentOf(both, readOf(claimed), { ring: RING, past, isRemovable: () => false });
      expect(entries).toHaveLength(64);
      return [genuine.id, junk.id].filter((id) => entries.some((entry) => entry.id === id));
    };
    expect(keptOf([expired], (claimed) => documentWith(claimed))).toEqual([genuine.id]);
    expect(keptOf([expired], () => documentWith())).toEqual([genuine.id]);
    // A member may have missed the revocation.
    expect(keptOf([expired], (claimed) => documentWith({ ...claimed, revoked: undefined }))).toEqual([junk.id]);
    expect(keptOf([expired, newest], (claimed) => documentWith(claimed))).toEqual([junk.id]);
    expect(keptOf([expired, newest], () => documentWith())).toEqual([junk.id]);
  });

  test('drops, if there is no room, only wraps that this member neither made nor unwrapped (F23)', () => {
    const many = Array.from({ length: 20 }, (_, i) => testKey(i + 1));
    const wrapsOf = (key: TestKey): RingWrap[] =>
      Array.from({ length: 15 }, (_, i) => wrapBy(key, { keyId: `v${i}`, wrapped: Buffer.alloc(1_500) }));
    const rich = createSnapshot(
      many.map((key) => {
        const own = ownKey(key);
        const wraps = key.id === one.id ? [] : own.wraps;
        return { ...own, wraps: [...wraps, ...wrapsOf(key).map((wrap) => ({ ...wrap, isUnwrapped: false }))] };
      }),
      [],
    );
    const { entries } = written(rich, undefined);
    expect(entries).toHaveLength(20);
    // An entry has at least one wrap.
    for (const { id, wraps } of entries) expect(wraps.map(({ keyId }) => keyId)).toEqual([id === one.id ? 'v0' : 'k']);
  });
});

describe('a lineage', () => {
  const keysOf = (...entries: readonly (readonly [TestKey, RingEntry])[]) =>
    entries.map(([key, entry]) => ({ entry, signer: signerOf(key) }));

  test('a lineage is a group of keys each vouched for by another, in any order', () => {
    const keys = keysOf([one, first], [two, second], [three, entryBy(three, [two])]);
    expect(lineagesOf(RING, keys)).toEqual([[three.id, two.id, one.id]]);
    expect(lineagesOf(RING, keys.toReversed())).toEqual([[three.id, two.id, one.id]]);
  });

  test('a lineage ends at a key without a voucher, or with an invalid one', () => {
    const spoilt = { ...third, vouchers: new Map([[two.id, junkMac]]) };
    const groups = lineagesOf(
      RING,
      keysOf([one, first], [two, second], [three, spoilt], [four, entryBy(four, [stranger])]),
    );
    expect(groups.toSorted((a, b) => b.length - a.length)).toEqual([[two.id, one.id], [three.id], [four.id]]);
  });

  test('a lineage is joined by a link that comes last', () => {
    const link = entryBy(newestKey, [two, four]);
    const keys = keysOf(
      [one, first],
      [two, second],
      [three, entryBy(three, [])],
      [four, entryBy(four, [three])],
      [newestKey, link],
    );
    expect(lineagesOf(RING, keys)).toEqual([[newestKey, four, three, two, one].map(({ id }) => id)]);
  });

  test('consists only of valid vouchers, none of them of another ring', () => {
    expect(lineagesOf('orders', keysOf([one, first], [two, second]))).toHaveLength(2);
  });
});

/* Members that read and write one store, whose documents an attacker with write access made of all keys ever. */

/** `SEALRING_RUNS=2000` searches for longer. */
const RUNS = Number(process.env['SEALRING_RUNS'] ?? 50);

const POOL = [1, 2, 3, 4, 5, 6].map((n) => testKey(n));
const HONEST = POOL.map((key, i) => entryBy(key, POOL.slice(0, i)));
const START = knowing([POOL[0] as TestKey, HONEST[0] as RingEntry]);

/** A member as sync and writer use it: reads, unwraps the keys that it wants and can, writes missing facts. */
class Member {
  known: RingSnapshot = START;

  constructor(...documents: readonly RingDocument[]) {
    for (const document of documents) this.read(document);
  }

  /** The document that it writes in place of the one that it read, if that lacks a fact. */
  read(document: RingDocument): RingDocument | undefined {
    let { known, wanted } = learn(this.known, document, judgementOf());
    const tried = new Set<string>();
    for (;;) {
      const next = wanted.find(({ id }) => !tried.has(id));
      if (next === undefined) break;
      tried.add(next.id);
      const learned = unwrapped(next);
      if (learned === undefined) continue;
      ({ known, wanted } = learn(withUnwrapped(known, [learned], judgementOf()), document, judgementOf()));
    }
    this.known = createSnapshot(known.keys, []);
    if (!lacks(document, this.known, judgementOf())) return undefined;
    const wished = written(this.known, document);
    return encodeDocument(wished) === encodeDocument(document) ? undefined : wished;
  }

  /** The keys that it uses, which are the facts that matter. */
  get facts(): readonly string[] {
    return this.known.keys
      .filter(isUsable)
      .map(({ id }) => id)
      .toSorted();
  }
}

/** The KMS's result for an entry: unwraps a wrap of the pool if id and times are those that were wrapped. */
function unwrapped(entry: RingEntry): RingKey | undefined {
  const i = POOL.findIndex(({ id }) => id === entry.id);
  const key = POOL[i];
  const isBound =
    key !== undefined &&
    entry.created === key.created &&
    entry.activates === key.activates &&
    entry.sealsUntil === key.sealsUntil &&
    entry.opensUntil === key.opensUntil;
  if (!isBound) return undefined;
  const honestWrap = HONEST[i]?.wraps[0] as RingWrap;
  const opened = entry.wraps.find((wrap) => Buffer.compare(wrap.wrapped, honestWrap.wrapped) === 0);
  return opened === undefined ? undefined : unwrappedKey(RING, entry, key.held, opened, 0);
}

/** Members read and write one store by turns until none writes. @returns the number of writes. */
function exchange(
  members: readonly Member[],
  start: RingDocument,
): { readonly writes: number; readonly stored: RingDocument } {
  let stored = start;
  let writes = 0;
  for (let quiet = 0; quiet < members.length; ) {
    for (const member of members) {
      const wished = member.read(stored);
      quiet = wished === undefined ? quiet + 1 : 0;
      if (wished === undefined) continue;
      stored = wished;
      writes += 1;
      if (writes > 50) throw new Error('they take turns without an end');
    }
  }
  return { writes, stored };
}

const key = fc.constantFrom(...POOL);
const keys = fc.uniqueArray(key, { maxLength: 6, selector: ({ id }) => id });
const someTime = fc.constantFrom(T0, T0 + 1_000, T0 + 2_000);

/** Documents by an honest member: some of the keys, some revoked, each with its own certificate. */
const honest = fc.record({ keys, revoked: keys, by: key, at: someTime }).map(({ keys: there, revoked, by, at }) =>
  documentWith(
    ...HONEST.flatMap((entry, i) => {
      const own = POOL[i] as TestKey;
      if (!there.includes(own)) return [];
      return [revoked.includes(own) ? { ...entry, revoked: revocationBy(own.id, [own, by], at) } : entry];
    }),
  ),
);

const junkMacs = fc
  .uniqueArray(fc.oneof(fc.constantFrom(...POOL.map(({ id }) => id)), fc.nat(20).map(junkId)), { maxLength: 8 })
  .map((ids): Macs => new Map(ids.map((id) => [id, junkMac])));

/** Documents that an attacker can make from the honest entries without any key. */
const spoiltEntry = fc
  .record({
    index: fc.nat(POOL.length - 1),
    vouchers: fc.option(junkMacs),
    keepsVouchers: fc.boolean(),
    revoked: fc.option(fc.record({ at: someTime, by: junkMacs })),
    ownCertificate: fc.boolean(),
    wraps: fc.array(fc.nat(30).map(junkWrap), { maxLength: 15 }),
    keepsWrap: fc.boolean(),
    signature: fc.option(fc.nat(3)),
    shift: fc.constantFrom(0, 0, 0, 1_000, -1_000),
  })
  .map((it): RingEntry => {
    const own = POOL[it.index] as TestKey;
    const entry = HONEST[it.index] as RingEntry;
    const vouchers = new Map([...(it.keepsVouchers ? entry.vouchers : []), ...(it.vouchers ?? [])].slice(0, 8));
    const [wrap] = entry.wraps as readonly [RingWrap];
    // A service whose unwrap authenticates the origin checks no signature, so any may be there.
    const edited = it.signature === null ? wrap : { ...wrap, signature: Buffer.from([it.signature]) };
    const wraps = [...(it.keepsWrap ? [edited] : []), ...it.wraps];
    const certificates = it.ownCertificate ? revocationBy(own.id, [own], it.revoked?.at).by : [];
    const revoked =
      it.revoked === null
        ? undefined
        : { at: it.revoked.at, by: new Map([...it.revoked.by, ...certificates].slice(-8)) };
    const created = entry.created + it.shift;
    return { ...entry, created, vouchers, revoked, wraps: wraps.length === 0 ? [junkWrap(31)] : wraps };
  });

/** With the stolen keys too: valid vouchers, wraps and certificates of any content. */
const stolenEntry = fc
  .record({
    entry: spoiltEntry,
    by: keys,
    certifiedBy: keys,
    at: someTime,
    versions: fc.array(fc.nat(20), { maxLength: 8 }),
  })
  .map(({ entry, by, certifiedBy, at, versions }): RingEntry => {
    const own = POOL.find(({ id }) => id === entry.id) as TestKey;
    const honestOnes = HONEST.find(({ id }) => id === entry.id)?.vouchers ?? new Map<string, Uint8Array>();
    const vouchers = new Map([
      ...by.map((each) => [each.id, voucherOf(RING, entry, each.held.authenticator)] as const),
      ...honestOnes,
    ]);
    const made = versions.map((n) => wrapBy(own, { keyId: `v${n}` }));
    const revoked = certifiedBy.length === 0 ? entry.revoked : revocationBy(entry.id, certifiedBy, at);
    return {
      ...entry,
      vouchers: new Map([...vouchers].slice(0, 8)),
      wraps: [...made, ...entry.wraps].slice(0, 16),
      revoked,
    };
  });

function documentsOf(entry: fc.Arbitrary<RingEntry>): fc.Arbitrary<RingDocument> {
  const entries = fc.uniqueArray(entry, { maxLength: 6, selector: ({ id }) => id });
  return entries.map((each) => documentWith(...each));
}

const spoilt = documentsOf(spoiltEntry);
const stolen = documentsOf(fc.oneof(spoiltEntry, stolenEntry));
const anything = fc.oneof(honest, spoilt, stolen);

describe('reading a document', () => {
  test('loses no known fact, and removes no revocation', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), anything, (before, document) => {
        const member = new Member(...before);
        const was = member.known;
        member.read(document);
        for (const old of was.keys) {
          const now = member.known.byId.get(old.id);
          // A key that was known only by its id can be unwrapped after all, and its revocation checked by its bytes.
          if (isTombstone(old)) continue;
          expect(now).toMatchObject({ created: old.created, opensUntil: old.opensUntil });
          expect(now?.revoked === true || !old.revoked).toBe(true);
          expect(now?.held === old.held || now?.revoked === true).toBe(true);
          for (const [id, mac] of old.vouchers) expect(now?.vouchers.get(id)).toEqual(mac);
          for (const wrap of old.wraps) expect(now?.wraps).toContainEqual(wrap);
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('changes nothing when the same document is read a third time', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), (documents) => {
        const member = new Member(...documents);
        for (const document of documents.slice(-1)) {
          // A key that was known as revoked only by its id can be unwrapped the second time, as a link.
          member.read(document);
          const { known } = member;
          member.read(document);
          expect(member.known).toEqual(known);
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('members know the same facts, whatever the order of the documents that they read', () => {
    fc.assert(
      fc.property(honest, honest, (a, b) => {
        const whole = documentWith(...HONEST);
        expect(new Member(a, b, whole).facts).toEqual(new Member(whole, b, a).facts);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('writing a document', () => {
  // oxlint-disable-next-line vitest/expect-expect
  test('produces a document that lacks nothing its writer knows, or teaches the writer one more fact', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), anything, (before, document) => {
        const member = new Member(...before);
        const wished = member.read(document);
        // A key that only a revoked one had certified as revoked is unwrapped from there, and certifies that itself.
        const again = member.read(wished ?? document);
        expect(again === undefined ? undefined : member.read(again)).toBeUndefined();
      }),
      { numRuns: RUNS },
    );
  });

  test('junk beside known facts causes no write', () => {
    const [wrap] = (HONEST[3] as RingEntry).wraps as readonly [RingWrap];
    const beside = fc.record({
      vouchers: junkMacs,
      wraps: fc.array(fc.nat(30).map(junkWrap), { maxLength: 15 }),
      revoked: fc.option(fc.record({ at: someTime, by: junkMacs }), { nil: undefined }),
      strangers: fc.array(fc.nat(20), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(beside, (junk) => {
        const member = new Member(documentWith(...HONEST));
        const entries = HONEST.map(
          (entry): RingEntry => ({
            ...entry,
            vouchers: new Map(
              [...entry.vouchers, ...[...junk.vouchers].filter(([id]) => !entry.vouchers.has(id))].slice(0, 8),
            ),
            revoked: junk.revoked,
          }),
        );
        const spoiltOne = { ...(entries[3] as RingEntry), wraps: [...junk.wraps, wrap] };
        const strange = [...new Set(junk.strangers)].map((n) => entryBy(testKey(100 + n), []));
        expect(member.read(documentWith(...entries.with(3, spoiltOne), ...strange))).toBeUndefined();
        expect(member.known.keys.every(({ revoked }) => !revoked)).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });

  test('keeps both wraps of a key that two members unwrapped, even if an attacker has filled its entry', () => {
    const [key1, key2] = POOL as [TestKey, TestKey];
    const [root, entry] = HONEST as [RingEntry, RingEntry];
    const thiefs = (from: number, count: number): RingWrap[] =>
      Array.from({ length: count }, (_, i) => wrapBy(key2, { keyId: `v${from + i}` }));
    const opened = ['a', 'b'].map((keyId) => wrapBy(key2, { keyId }));
    const members = opened.map((wrap) => {
      const filled = { ...entry, wraps: [...opened, ...thiefs(0, 14)] };
      const member = new Member();
      const known = [unwrappedKey(RING, root, key1.held, root.wraps[0], 0)];
      member.known = createSnapshot([...known, unwrappedKey(RING, filled, key2.held, wrap, 0)]);
      return member;
    });
    const { writes, stored } = exchange(members, documentWith(root, { ...entry, wraps: thiefs(14, 16) }));
    expect(writes).toBe(2);
    const wraps = stored.entries.find(({ id }) => id === key2.id)?.wraps.map(({ keyId }) => keyId);
    expect(wraps).toEqual(expect.arrayContaining(['a', 'b']));
    expect(wraps).toHaveLength(16);
  });

  test.each<readonly [string, fc.Arbitrary<RingDocument>, number]>([
    ['after each has read what only it has', honest, 6],
    ['after an attacker gave each of them another document', spoilt, 8],
    ['after an attacker did that with the data keys', stolen, 8],
  ])('members do not overwrite each other endlessly, %s', (_, documents, atMost) => {
    const of = fc.array(documents, { maxLength: 3 });
    fc.assert(
      fc.property(of, of, of, documents, (a, b, c, start) => {
        const members = [new Member(...a), new Member(...b), new Member(...c)];
        const { writes, stored } = exchange(members, start);
        expect(writes).toBeLessThanOrEqual(atMost);
        const [facts, ...others] = members.map((member) => member.facts);
        for (const other of others) expect(other).toEqual(facts);
        // The opposite order would have given the same result.
        const turned = [new Member(...a), new Member(...b), new Member(...c)].toReversed();
        exchange(turned, stored);
        expect(turned[0]?.facts).toEqual(facts);
      }),
      { numRuns: RUNS },
    );
  });
});
