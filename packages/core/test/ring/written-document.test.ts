import { describe, expect, test } from 'vitest';
import { MAX_DOCUMENT_BYTES } from '../../src/contracts/ring-store.ts';
import {
  encodeDocument,
  type Macs,
  type Revocation,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from '../../src/ring/document.ts';
import { type Judgement, tombstone, unwrappedKey } from '../../src/ring/facts.ts';
import { learn, withUnwrapped } from '../../src/ring/learn.ts';
import { createSnapshot, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { documentOf, lacks } from '../../src/ring/written-document.ts';
import {
  ancestorsBy,
  documentWith,
  entryBy,
  judgementOf,
  RING,
  revocationBy,
  signersWith,
  T0,
  type TestKey,
  testKey,
  wrapBy,
} from '../support/certified.ts';
import {
  first,
  four,
  junkId,
  junkMac,
  junkWrap,
  keyOf,
  knowing,
  newestKey,
  one,
  ownKey,
  second,
  stranger,
  third,
  three,
  two,
  written,
} from '../support/known-keys.ts';

const HOUR = 3_600_000;
const macsOf = (count: number): Macs => new Map(Array.from({ length: count }, (_, i) => [junkId(i), junkMac]));

describe('the missing facts of a document', () => {
  const known = knowing([one, first], [two, second]);
  const lacksOf = (document: RingDocument, from: RingSnapshot = known, more: Partial<Judgement> = {}): boolean =>
    lacks(document, from, judgementOf(more));

  test('a document with all known facts lacks nothing', () => {
    expect(lacksOf(documentWith(first, second))).toBe(false);
    expect(lacksOf(documentWith(second, third, first))).toBe(false);
  });

  test('a known key that is not in the document counts as missing until it has expired', () => {
    expect(lacksOf(documentWith(first))).toBe(true);
    expect(lacksOf(documentWith())).toBe(true);
    expect(lacksOf(documentWith(first), known, { nowMs: two.opensUntil - 1 })).toBe(true);
    expect(lacksOf(documentWith(first), known, { nowMs: two.opensUntil })).toBe(false);
  });

  test('the true times of a key count as missing if the document has other times', () => {
    for (const time of ['created', 'activates', 'sealsUntil', 'opensUntil'] as const)
      expect(lacksOf(documentWith(first, entryBy(two, [one], { [time]: two[time] + HOUR })))).toBe(true);
  });

  test('a known voucher counts as missing if the document lacks it or has an invalid one', () => {
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map() }))).toBe(true);
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map([[one.id, junkMac]]) }))).toBe(true);
  });

  test('a known voucher counts as missing even if the document has eight invalid vouchers', () => {
    const junk = Array.from({ length: 8 }, (_, i) => [junkId(i), junkMac] as const);
    expect(lacksOf(documentWith(first, { ...second, vouchers: new Map(junk) }))).toBe(true);
  });

  test('known vouchers count as missing if invalid ones replaced them', () => {
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

  test('the known ancestors of a key count as missing if the document has none or others', () => {
    for (const ancestors of [undefined, { ids: [stranger.id], mac: junkMac }]) {
      const document = documentWith(first, { ...second, ancestors });
      expect(lacksOf(document)).toBe(true);
      expect(lacksOf(document, knowing([one, first], [two, { ...second, ancestors }]))).toBe(false);
    }
  });

  test('a known wrap that is not in the document counts as missing only while there is room for it', () => {
    const added = wrapBy(two, { provider: 'aws-kms' });
    const rich = learn(known, documentWith({ ...second, wraps: [added] }), judgementOf()).known;
    expect(lacksOf(documentWith(first, second), rich)).toBe(true);
    const full = [...second.wraps, ...Array.from({ length: 15 }, (_, i) => junkWrap(i))];
    expect(lacksOf(documentWith(first, { ...second, wraps: full }), rich)).toBe(false);
  });

  test('a wrap that this member unwrapped counts as missing even if there is no room for it', () => {
    const full = Array.from({ length: 16 }, (_, i) => junkWrap(i));
    expect(lacksOf(documentWith(first, { ...second, wraps: full }))).toBe(true);
  });

  test('a known revocation counts as missing if the document lacks it or has an invalid one', () => {
    const revoked = { ...second, revoked: revocationBy(two.id, [two]) };
    const knows = learn(known, documentWith(first, revoked), judgementOf()).known;
    expect(lacksOf(documentWith(first, revoked), knows)).toBe(false);
    expect(lacksOf(documentWith(first, second), knows)).toBe(true);
    const junk = { at: T0, by: new Map([[two.id, junkMac]]) };
    expect(lacksOf(documentWith(first, { ...second, revoked: junk }), knows)).toBe(true);
  });

  test('a revoked key’s own certificate counts as missing, because the newer key that certifies the revocation may be revoked too', () => {
    const revoked = { ...first, revoked: revocationBy(one.id, [two]) };
    const knows = learn(known, documentWith(revoked, second), judgementOf()).known;
    expect(lacksOf(documentWith(revoked, second), knows)).toBe(true);
    expect(lacksOf(written(knows, documentWith(revoked, second)), knows)).toBe(false);
  });

  test('entries that are merely carried do not count as missing', () => {
    expect(lacksOf(documentWith(first, second), createSnapshot(known.keys, [third]))).toBe(false);
  });

  describe('the missing facts of a key of which only the revocation is known', () => {
    const revoked = { ...first, revoked: revocationBy(one.id, [one, two]) };
    const newer = knowing([two, second], [three, third]);
    const knows = learn(newer, documentWith(revoked, second, third), judgementOf()).known;

    test('the entry of a revoked key does not count as missing, because no member could use that key', () => {
      expect(lacksOf(documentWith(second, third), knows)).toBe(false);
    });

    test('the revocation of a key counts as missing if the entry has none, or one without a valid certificate', () => {
      expect(lacksOf(documentWith(revoked, second, third), knows)).toBe(false);
      expect(lacksOf(documentWith(first, second, third), knows)).toBe(true);
      for (const by of [new Map(), new Map([[two.id, junkMac]])]) {
        expect(lacksOf(documentWith({ ...first, revoked: { at: T0, by } }, second, third), knows)).toBe(true);
      }
    });

    test('a key whose revocation lost its only certifier is unwrapped, and its own certificate then counts as missing', () => {
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

  test('a written document has all known facts, and otherwise only certificates and vouchers that others may check', () => {
    const vouchers = new Map([[stranger.id, junkMac], ...second.vouchers]);
    const read = documentWith(
      first,
      { ...second, vouchers, wraps: [junkWrap(1), ...second.wraps] },
      entryBy(stranger, []),
    );
    const { entries } = written(known, read);
    expect(entries.map(({ id }) => id)).toEqual([one.id, two.id]);
    // The order is the order of the document that was read.
    expect([...(entries[1]?.vouchers.keys() ?? [])]).toEqual([stranger.id, one.id]);
    expect(entries[1]?.wraps).toEqual(second.wraps);
  });

  test('a written document keeps those certificates of a revocation that this member cannot check', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [one]) }), judgementOf()).known;
    const read = { ...first, revoked: revocationBy(one.id, [stranger]) };
    const [entry] = written(revoked, documentWith(read)).entries;
    expect(new Set(entry?.revoked?.by.keys())).toEqual(new Set([one.id, two.id, stranger.id]));
    const claims = [revocationBy(one.id, [stranger]), { at: T0, by: new Map([[two.id, junkMac]]) }];
    const kept = claims.map((claim) => written(known, documentWith({ ...first, revoked: claim })).entries[0]?.revoked);
    expect(kept).toEqual([claims[0], undefined]);
  });

  test('a written document has carried entries, but neither expired keys nor keys of a ring that the member left', () => {
    const keys = known.keys.map((key) => (key.id === one.id ? { ...key, isLeft: true } : key));
    const carrying = createSnapshot(keys, [third]);
    expect(written(carrying, undefined).entries.map(({ id }) => id)).toEqual([two.id, three.id]);
    const options = { ring: RING, past: new Map(), isRemovable: ({ id }: RingKey) => id === two.id };
    expect(documentOf(carrying, undefined, options).entries.map(({ id }) => id)).toEqual([three.id]);
  });

  test('a written document keeps a claimed revocation that only others can check, along with its wrong certificates', () => {
    const revoked = {
      at: T0,
      by: new Map([
        [two.id, junkMac],
        [stranger.id, junkMac],
      ]),
    };
    expect(written(known, documentWith({ ...first, revoked })).entries[0]?.revoked).toEqual(revoked);
  });

  test('an entry that is carried, and known as revoked under other times, is written once, with the carried times and the revocation', () => {
    const revocation = revocationBy(three.id, [four]);
    const shifted = entryBy(three, [], { created: three.created - 1_000 });
    const carrying = createSnapshot([...known.keys, tombstone(shifted, revocation)], [third]);
    const { entries } = written(carrying, documentWith(first, second, shifted));
    expect(entries.map(({ id }) => id)).toEqual([one.id, two.id, three.id]);
    expect(entries[2]).toEqual({ ...third, ancestors: undefined, revoked: revocation });
  });

  test('an entry keeps its ancestors if this member does not know them', () => {
    const nameless = createSnapshot([{ ...keyOf(known, two), ancestors: undefined }]);
    expect(written(nameless, documentWith(second)).entries[0]?.ancestors).toEqual(second.ancestors);
  });

  test('the voucher by a known ancestor that an entry names is put back, but no other voucher', () => {
    const bare = [
      { ...ownKey(three), ancestors: ancestorsBy(three, [two]) },
      { ...ownKey(four), ancestors: undefined },
    ];
    const { entries } = written(createSnapshot([...known.keys, ...bare]), undefined);
    expect(entries.map(({ vouchers }) => [...vouchers.keys()])).toEqual([[], [one.id], [two.id], []]);
  });

  describe('the record of a revocation', () => {
    const record = (at: number, ...by: readonly TestKey[]) => revocationBy(one.id, by, at);
    const held = { ...keyOf(known, one), revoked: true };
    const unknown = tombstone(first, undefined);

    test.each<readonly [string, RingKey, Revocation, Revocation | undefined, number, readonly TestKey[]]>([
      ['gains the certificates that this member can make', held, record(T0, one), undefined, T0, [one, two]],
      [
        'keeps the order of the document',
        held,
        record(T0, one),
        record(T0, stranger, two, one),
        T0,
        [stranger, two, one],
      ],
      ['leaves out certificates for another time', held, record(T0, one), record(T0 + HOUR, stranger), T0, [one, two]],
      [
        'stays as it is written, if a certificate is right',
        unknown,
        record(T0, two),
        record(T0 + HOUR, two),
        T0 + HOUR,
        [two],
      ],
      ['replaces an uncertified record', unknown, record(T0, two), record(T0 + HOUR, stranger), T0, [two]],
      ['gains certificates of the same time', unknown, record(T0, two), record(T0, stranger), T0, [two, stranger]],
    ])('the record of a revocation %s', (_, key, revocation, read, at, by) => {
      const from = createSnapshot([{ ...key, revocation, revoked: true }, keyOf(known, two)]);
      const [entry] = written(from, documentWith({ ...first, revoked: read })).entries;
      expect(entry?.revoked?.at).toBe(at);
      expect([...(entry?.revoked?.by.keys() ?? [])]).toEqual(by.map(({ id }) => id));
    });
  });

  test('a full entry keeps the wraps that this member unwrapped, then the valid wraps of the document, then the rest (F23)', () => {
    const versions = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => wrapBy(two, { keyId: `v${from + i}` }));
    const knownWraps = (count: number) => [
      ...versions(0, count - 1).map((wrap) => ({ ...wrap, isUnwrapped: false })),
      { ...wrapBy(two), isUnwrapped: true },
    ];
    const keptOf = (key: RingKey, wraps: readonly RingWrap[]) =>
      written(createSnapshot([key]), documentWith({ ...second, wraps })).entries[0]?.wraps.map(({ keyId }) => keyId);
    const there = [junkWrap(1), ...versions(20, 22), ...versions(3, 4), wrapBy(two)];
    const names = (from: number, to: number) => versions(from, to).map(({ keyId }) => keyId);
    expect(keptOf({ ...ownKey(two), wraps: knownWraps(16) }, there)).toEqual([
      'k',
      ...names(20, 22),
      'v3',
      ...names(0, 3),
      ...names(4, 13),
    ]);
    expect(keptOf({ ...ownKey(two), wraps: knownWraps(15) }, there)).toEqual([...names(0, 14), 'k']);
    expect(keptOf(tombstone(second, revocationBy(two.id, [three])), versions(0, 16))).toEqual(names(0, 16));
  });

  test('over 256 KiB, the vouchers that only others can check, and further certificates, are dropped last (F23)', () => {
    const others = macsOf(8);
    const inUse = Array.from({ length: 8 }, (_, i) => testKey(i + 10));
    const read = documentWith(...inUse.map((key) => entryBy(key, [], { vouchers: others })));
    const wrapped = Buffer.alloc(1_518);
    const wraps = Array.from({ length: 15 }, (_, i) => ({
      ...wrapBy(two, { keyId: `v${i}`, wrapped }),
      isUnwrapped: true,
    }));
    const held = inUse.map((key) => ({ ...ownKey(key), wraps }));
    const writtenWith = (keyId: string) => {
      const padded = [{ ...wrapBy(one, { keyId }), isUnwrapped: true }];
      const gone = { ...ownKey(one), wraps: padded, revoked: true, revocation: { at: T0, by: others } };
      return written(createSnapshot([gone, ...held]), read);
    };
    const sizesOf = ({ entries }: RingDocument) => [entries[0]?.revoked?.by.size, entries[1]?.vouchers.size];
    const left = MAX_DOCUMENT_BYTES - encodeDocument(writtenWith('v')).length;
    expect(sizesOf(writtenWith('v'.repeat(1 + left)))).toEqual([8, 8]);
    expect(sizesOf(writtenWith('v'.repeat(2 + left)))).toEqual([2, 0]);
  });

  test('a key that only the pin of this member refuses is written if a known key of the ring vouches for it or names it', () => {
    const idsOf = (entry: RingEntry, ...keys: readonly RingKey[]): readonly string[] =>
      written(createSnapshot([...keys, tombstone(entry, undefined)]), documentWith(entry)).entries.map(({ id }) => id);
    const unlinked = entryBy(two, [stranger]);
    const naming = { ...ownKey(three), ancestors: ancestorsBy(three, [two]) };
    expect(idsOf(unlinked, ownKey(one))).toEqual([one.id]);
    expect(idsOf({ ...unlinked, vouchers: new Map([[one.id, junkMac]]) }, ownKey(one))).toEqual([one.id]);
    expect(idsOf(unlinked, ownKey(one), { ...naming, isLeft: true })).toEqual([one.id]);
    expect(idsOf(entryBy(two, [one]), ownKey(one))).toEqual([one.id, two.id]);
    expect(idsOf(unlinked, naming)).toEqual([two.id, three.id]);
  });

  test('over 256 KiB, a key that only the pin of this member refuses is dropped last (F23)', () => {
    const wrapped = Buffer.alloc(1_500);
    const wraps = Array.from({ length: 15 }, (_, i) => ({
      ...wrapBy(two, { keyId: `v${i}`, wrapped }),
      isUnwrapped: true,
    }));
    const held = Array.from({ length: 7 }, (_, i) => ({ ...ownKey(testKey(i + 10)), wraps }));
    const naming = { ...ownKey(four), wraps, ancestors: ancestorsBy(four, [two]) };
    const pinnedOut = tombstone(entryBy(two, []), undefined);
    const writtenWith = (keyIds: readonly string[]) => {
      const padded = keyIds.map((keyId) => ({ ...wrapBy(one, { keyId }), isUnwrapped: true }));
      return written(createSnapshot([{ ...ownKey(one), wraps: padded }, naming, ...held, pinnedOut]), undefined);
    };
    const base = ['u', 'v', 'w'].map((letter) => letter.repeat(2_000));
    const left = MAX_DOCUMENT_BYTES - encodeDocument(writtenWith([...base, 'x'])).length;
    const countWith = (more: number) => writtenWith([...base, 'x'.repeat(more + left)]).entries.length;
    expect([countWith(1), countWith(2)]).toEqual([10, 9]);
  });

  test('drops carried entries first if there are more than 64 keys (F23)', () => {
    const many = Array.from({ length: 64 }, (_, i) => testKey(i + 1));
    const full = createSnapshot(many.map(ownKey), [entryBy(testKey(70), [one])]);
    const { entries } = written(full, undefined);
    expect(entries).toHaveLength(64);
    expect(entries.some(({ id }) => id === testKey(70).id)).toBe(false);
  });

  describe('a full ring with room for two revoked keys', () => {
    const [root, link, next, older, later] = [one, two, three, four, newestKey];
    const [latest, ancient, heir] = [testKey(6), testKey(7), testKey(8)];
    const ringKeyOf = (key: TestKey, named: readonly TestKey[], revokedAt?: number): RingKey => ({
      ...ownKey(key),
      ancestors: ancestorsBy(key, named),
      ...(revokedAt === undefined ? {} : { revoked: true, revocation: { at: revokedAt, by: new Map() } }),
    });
    // The oldest key needs no link.
    const inUse = [ringKeyOf(root, [ancient])].concat(
      Array.from({ length: 60 }, (_, i) => ringKeyOf(testKey(i + 9), [root])),
    );
    const live = (key: TestKey) => entryBy(key, []);
    const gone = (key: TestKey) => entryBy(key, [], { revoked: { at: T0, by: new Map() } });

    test.each<readonly [string, readonly TestKey[], TestKey, readonly RingEntry[], readonly number[]]>([
      ['links between keys in use before those written as live', [next], link, [live(older), live(later)], [2, 3]],
      ['as few links as reach another key in use', [next, link], root, [], [2, 6]],
      ['links that name each other', [next], next, [], [2, 3]],
      [
        'keys that the document shows as live before those it shows as revoked',
        [root],
        root,
        [live(older), gone(later), gone(latest)],
        [4, 6],
      ],
      ['keys in the document before the latest', [root], root, [gone(older)], [4, 6]],
      ['the latest', [root], root, [], [5, 6]],
    ])('keeps %s (F23)', (_, heirOf, nextOf, read, kept) => {
      const revoked = [
        ringKeyOf(ancient, [], 1_000),
        ringKeyOf(link, [nextOf === link ? root : nextOf], 2_000),
        ringKeyOf(next, [nextOf === next ? link : nextOf], 3_000),
        ringKeyOf(older, [root], 4_000),
        ringKeyOf(later, [root], 5_000),
        ringKeyOf(latest, [root], 6_000),
      ];
      const full = createSnapshot([...inUse, ringKeyOf(heir, heirOf), ...revoked]);
      const { entries } = written(full, documentWith(...read));
      expect(entries).toHaveLength(64);
      const times = entries.flatMap((entry) => entry.revoked?.at ?? []);
      expect(times.map((at) => at / 1_000).toSorted((a, b) => a - b)).toEqual(kept);
    });
  });

  test('drops revoked keys before carried entries if there are more than 64 keys (F23)', () => {
    const inUse = Array.from({ length: 62 }, (_, i) => ownKey(testKey(i + 10)));
    const revoked = [one, two].map((key) => ({ ...ownKey(key), revocation: revocationBy(key.id, [key]) }));
    const { entries } = written(createSnapshot([...inUse, ...revoked], [third]), undefined);
    expect(entries).toHaveLength(64);
    expect([one, two, three].map(({ id }) => entries.some((entry) => entry.id === id))).toEqual([false, true, true]);
  });

  test('over 256 KiB, carried entries are dropped first, then keys of which only the revocation is known, then foreign wraps (F23)', () => {
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

  test('with room for one revoked key, a key that was never unwrapped and that only expired keys certify is dropped first', () => {
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

  test('if there is no room, only wraps that this member neither made nor unwrapped are dropped (F23)', () => {
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
