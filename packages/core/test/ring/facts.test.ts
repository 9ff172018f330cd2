import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { voucherOf } from '../../src/ring/certificates.ts';
import {
  encodeDocument,
  type Macs,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from '../../src/ring/document.ts';
import { isSameFact, isTombstone, revocable, revokedKey, signersOf, unwrappedKey } from '../../src/ring/facts.ts';
import { learn, withUnwrapped } from '../../src/ring/learn.ts';
import { createSnapshot, isUsable, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { lacks } from '../../src/ring/written-document.ts';
import {
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
  junkId,
  junkMac,
  junkWrap,
  keyOf,
  knowing,
  newestKey,
  one,
  second,
  third,
  three,
  two,
  written,
} from '../support/known-keys.ts';

test('two wraps that differ only in their signature or their MAC are different facts', () => {
  const signed = wrapBy(two, { signature: Buffer.from([1]) });
  const facts = [signed, wrapBy(two, { signature: Buffer.from([2]) }), wrapBy(two), { ...signed, mac: junkMac }];
  for (const fact of facts)
    expect(facts.map((other) => isSameFact(fact, other))).toEqual(facts.map((other) => other === fact));
});

describe('the revocation of a key', () => {
  const known = knowing([one, first], [two, second], [three, third]);
  const signers = signersOf(known.keys, new Map());

  test('creates a certificate by the key itself, and one by the newest key', () => {
    const revoked = revokedKey(RING, keyOf(known, two), T0 + 1_234, signers);
    expect(revoked).toMatchObject({ revoked: true, held: undefined, authenticator: two.held.authenticator });
    expect(revoked?.revocation).toEqual(revocationBy(two.id, [two, three], T0 + 1_000));
  });

  test('creates one certificate if the key is the newest', () => {
    const revoked = revokedKey(RING, keyOf(known, three), T0, signers);
    expect(revoked?.revocation).toEqual(revocationBy(three.id, [three]));
  });

  test('creates no certificate by another key that is revoked', () => {
    const withoutNewest = new Map([...signers, [three.id, signerOf(three, true)]]);
    const revoked = revokedKey(RING, keyOf(known, one), T0, withoutNewest);
    expect([...(revoked?.revocation?.by.keys() ?? [])]).toEqual([one.id, two.id]);
  });

  test('known and carried keys can be revoked, but not keys that are already revoked or that belong to a ring that the member left', () => {
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

/** Members read and write one store in turn until none writes. @returns the number of writes. */
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

/** An entry that the stolen keys can make, too: with valid vouchers, wraps and certificates of any content. */
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
    ['after each has read documents that the others have not', honest, 6],
    ['after an attacker gave each of them a different document', spoilt, 8],
    ['after an attacker who has the data keys gave each of them a different document', stolen, 8],
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
