import { describe, expect, test } from 'vitest';
import type { RingDocument, RingEntry } from '../../src/ring/document.ts';
import { isTombstone, tombstone, unwrappedKey } from '../../src/ring/facts.ts';
import { belongs, learn, lineagesOf, withUnwrapped } from '../../src/ring/learn.ts';
import { createSnapshot, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { lacks } from '../../src/ring/written-document.ts';
import {
  ancestorsBy,
  documentWith,
  entryBy,
  judgementOf,
  RING,
  revocationBy,
  signerOf,
  T0,
  type TestKey,
  testKey,
  wrapBy,
} from '../support/certified.ts';
import {
  first,
  four,
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

  test('a key that expired by a fast clock is wanted again until it really expires, unless it is revoked', () => {
    const ended = createSnapshot([{ ...keyOf(known, one), held: undefined }]);
    const at = (nowMs: number) => learn(ended, documentWith(first), judgementOf({ nowMs })).wanted;
    expect(at(first.opensUntil - 1)).toEqual([first]);
    expect(at(first.opensUntil)).toEqual([]);
    const revoked = createSnapshot([{ ...keyOf(known, one), held: undefined, revoked: true }]);
    expect(learn(revoked, documentWith(first), judgementOf()).wanted).toEqual([]);
  });

  test('a key that was known to be revoked when it expired is not wanted again (F36)', () => {
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

  test('an unknown key is wanted only once, even if it is both in the document and carried', () => {
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

  test('an unknown key that a known newer key revokes is remembered as revoked, and never unwrapped', () => {
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

  test('the revocation of a key that was never unwrapped gets no further certificate, because that would not authenticate the key’s times (F36)', () => {
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
    // The key is linked to the known keys: the second one names the first as its ancestor.
    const knowing2 = knowing([two, second], [three, third]);
    const { known } = wish(knowing2);
    expect(isTombstone(keyOf(known, one))).toBe(true);
    expect(wish(known).wanted).toEqual([]);
    expect(wish(known, { ...second, vouchers: new Map() }).wanted).toEqual([]);
    expect(wish(known, { ...second, revoked: revocationBy(newestKey.id, []) }).wanted).toEqual([]);
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

  test('a key is used again if its revocation was certified only by an older key that claimed to be newer', () => {
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

  test('a known key has at most 16 wraps (F23)', () => {
    const wraps = Array.from({ length: 16 }, (_, i) => wrapBy(two, { keyId: `v${i}` }));
    const learned = learn(known, documentWith({ ...second, wraps }), judgementOf()).known;
    expect(keyOf(learned, two).wraps).toHaveLength(16);
    expect(learn(learned, documentWith({ ...second, wraps }), judgementOf()).known).toBe(learned);
    expect(keyOf(learned, two).wraps[0]).toMatchObject({ keyId: 'k', isUnwrapped: true });
  });

  test('a known key is revoked by its own certificate, after which it can only certify', () => {
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

  test('a known key is revoked by a newer key, but not by an older one', () => {
    const claims = [
      { ...first, revoked: revocationBy(one.id, [two]) },
      { ...second, revoked: revocationBy(two.id, [one]) },
    ];
    const learned = learn(known, documentWith(...claims), judgementOf()).known;
    expect([keyOf(learned, one).revoked, keyOf(learned, two).revoked]).toEqual([true, false]);
  });

  test('a known key is not revoked by a key that the same document revokes, because newer keys are read first', () => {
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
    const more = { ...first, revoked: revocationBy(one.id, [one, two]) };
    const learned = learn(revoked, documentWith(more), judgementOf()).known;
    expect([...(keyOf(learned, one).revocation?.by.keys() ?? [])].toSorted()).toEqual([one.id, two.id].toSorted());
  });

  test('a key that was revoked without its own certificate adopts a record that has that certificate', () => {
    const revoked = learn(known, documentWith({ ...first, revoked: revocationBy(one.id, [two]) }), judgementOf()).known;
    const better = revocationBy(one.id, [one], T0 + 5_000);
    const learned = learn(revoked, documentWith({ ...first, revoked: better }), judgementOf()).known;
    expect(keyOf(learned, one).revocation).toEqual(better);
    for (const [before, by] of [
      [learned, one],
      [revoked, two],
    ] as const) {
      const claimed = { ...first, revoked: revocationBy(one.id, [by], T0 + 6_000) };
      expect(learn(before, documentWith(claimed), judgementOf()).known).toBe(before);
    }
  });

  test('a key that only this member’s pin refuses stays refused, and gains no revocation', () => {
    const refused = createSnapshot([...known.keys, tombstone(entryBy(three, [two]), undefined)]);
    const claimed = { ...entryBy(three, [two]), revoked: revocationBy(three.id, [four]) };
    const learned = learn(withUnwrapped(refused, [ownKey(four)], judgementOf()), documentWith(claimed), judgementOf());
    expect(keyOf(learned.known, three).revocation).toBeUndefined();
  });
});

describe('a key that was unwrapped', () => {
  const known = knowing([two, second]);
  const both = knowing([two, second], [three, third]);
  const left = createSnapshot(known.keys.map((key) => ({ ...key, isLeft: true })));
  const ended = createSnapshot([{ ...ownKey(one), held: undefined }]);
  const pinnedOut = createSnapshot([...known.keys, tombstone(entryBy(one, []), undefined)]);
  const nameless = knowing([two, { ...second, ancestors: undefined }]);
  const byTwo = entryBy(three, [two]);

  test.each<readonly [string, boolean, TestKey, RingEntry, RingDocument, RingSnapshot]>([
    ['that a known key vouches for, and that names it,', true, three, byTwo, documentWith(byTwo), known],
    ['that names no known key', false, three, { ...byTwo, ancestors: undefined }, documentWith(byTwo), known],
    ['that no known key vouches for', false, three, { ...byTwo, vouchers: new Map() }, documentWith(byTwo), known],
    ['that is an ancestor of a known key', true, one, first, documentWith(first, second), both],
    ['whose heir is not in the document', false, one, first, documentWith(first), known],
    ['whose heir has other times', false, one, first, documentWith(entryBy(two, [one], { created: T0 })), known],
    ['whose heir has no voucher by it', false, one, first, documentWith({ ...second, vouchers: new Map() }), known],
    ['whose heir is of a ring that was left', false, one, first, documentWith(second), left],
    ['that its heir does not name', false, one, first, documentWith(second), nameless],
    ['that is known', true, one, first, documentWith(first), ended],
    ['that is known by its id alone', false, one, first, documentWith(first), pinnedOut],
  ])('a key %s belongs to the ring: %s', (_, expected, key, entry, document, from) => {
    const opened = unwrappedKey(RING, entry, key.held, entry.wraps[0], 0);
    expect(belongs(opened, entry, document, from, judgementOf())).toBe(expected);
  });
});

describe('a lineage', () => {
  const keysOf = (...entries: readonly (readonly [TestKey, RingEntry])[]) =>
    entries.map(([key, entry]) => ({ entry, signer: signerOf(key) }));

  test('a lineage is a group of keys that are linked by vouchers, whatever the order of the keys', () => {
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

  test.each([
    ['does not name the key that vouches for it', ancestorsBy(two, [])],
    ['did not state its ancestors itself', ancestorsBy(stranger, [one])],
    ['states no ancestors', undefined],
  ])('a lineage ends at a key that %s', (_, ancestors) => {
    const groups = lineagesOf(RING, keysOf([one, first], [two, { ...second, ancestors }]));
    expect(groups.flat().toSorted()).toEqual([one.id, two.id].toSorted());
    expect(groups).toHaveLength(2);
  });

  test('a key that links two lineages joins them, even if it comes last', () => {
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

  test('contains only keys that are linked by vouchers of the same ring', () => {
    expect(lineagesOf('orders', keysOf([one, first], [two, second]))).toHaveLength(2);
  });
});
