import type { RingStore } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import { FOREIGN, IMPOSSIBLE, othersLike, spellingsOf } from './revision-texts.ts';
import { labelled } from './sizes.ts';
import { documentText, revisionOf, textOf } from './stored-ring.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

const VERSIONS = 30;
/** Maximum number of versions, more than a one-byte counter can count. */
const MOST_VERSIONS = 300;
const VERSIONS_MS = 2_000;
const READS = 5;
/** Number of versions that are written; a write with the revision of an earlier one must lose. */
const STALE_VERSIONS = 12;
/** Number of losing writes. */
const AT_ONCE = 8;
/** Number of positions at which a long document is changed, one at a time. */
const PLACES = 16;
const LONGEST = 65_536;

export const REVISION_CHECKS: RingStoreChecks = {
  'RING-REVISION-STABLE': async (trial) => {
    const stores = await trial.openPair();
    const elsewhere = await trial.open();
    let [revision, other]: (string | undefined)[] = [];
    for (const document of ['one', 'two', longest(trial)]) {
      revision = await trial.write(stores[0], document, revision);
      for (let i = 0; i < READS; i++) {
        for (const store of stores) await trial.expectStored(store, document, revision, `read ${i + 1} of one version`);
        other = await trial.write(elsewhere, `of another ring ${i}`, other);
      }
    }
  },
  'RING-REVISION-OF-ONE': async (trial) => {
    const stores = await trial.openPair();
    const found = new Map<string, string>();
    let revision: string | undefined;
    const versions = Array.from({ length: MOST_VERSIONS }, (_, i) => `version ${String(i).padStart(3, '0')}`);
    const documents = [...SIMILAR, ...similarLong(trial), ...versions];
    const least = documents.length - MOST_VERSIONS + VERSIONS;
    for (const [i, document] of trial.inTime([...documents.entries()], least, VERSIONS_MS)) {
      revision = await trial.write(stores[i % 2] ?? stores[0], document, revision);
      const other = found.get(revision);
      const pair = `${documentText(other ?? '')} and ${documentText(document)}`;
      expectThat(other === undefined, `${pair} have the revision ${textOf(revision)}`);
      found.set(revision, document);
    }
  },
  'RING-REVISION-UNIQUE': async (trial) => {
    if (!trial.supports.uniqueRevisions) throw new NotApplicable('supports.uniqueRevisions is not declared');
    const [store, other] = await trial.openPair();
    const revisions: string[] = [];
    for (const document of ['a', 'b', 'a', 'b', 'a', 'a']) {
      const revision = await trial.write(store, document, revisions.at(-1));
      expectThat(!revisions.includes(revision), `the revision ${textOf(revision)} recurred with its document`);
      revisions.push(revision);
    }
    for (const expected of revisions.slice(0, -1)) {
      await trial.expectConflict(other, expected, 'a write with the revision of an earlier version');
    }
  },
  'RING-REMOVED': async (trial) => {
    const name = trial.freshName();
    const stores = await trial.openPair(name);
    const [store, other] = stores;
    const first = await trial.write(store, 'one', undefined);
    await trial.expectStored(other, 'one', first, 'a read before the removal');
    await trial.remove(name);
    for (const one of stores) await trial.expectAbsent(one, 'a read after the removal');
    const revision = await trial.write(other, 'two', undefined, 'a write that creates the ring after the removal');
    for (const one of stores)
      await trial.expectStored(one, 'two', revision, 'a read of the ring that was created again');
  },
  'RING-REVISION-REMOVED': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const first = await trial.write(store, 'one', undefined);
    const second = await trial.write(store, 'two', first);
    await trial.remove(name);
    let revision: string | undefined;
    // If revisions are hashes, the same document may get the same revision again, because no update is lost then. All
    // documents have the same length.
    for (const document of trial.supports.uniqueRevisions ? ['one', 'two', 'six'] : ['six', 'ten']) {
      revision = await trial.write(other, document, revision, 'a write after the removal');
      for (const expected of [first, second]) {
        await trial.expectConflict(store, expected, 'a write with a revision from before the removal');
      }
      await trial.expectStored(other, document, revision, 'a read afterwards');
    }
  },
  'RING-CREATE-ONLY-ABSENT': async (trial) => {
    const [store, other] = await trial.openPair();
    let revision: string | undefined;
    for (const document of ['one', 'two']) {
      revision = await trial.write(store, document, revision);
      for (const one of [store, other]) {
        for (const written of ['never', document]) {
          const what = `a write of ${textOf(written)} with expected: undefined, over ${textOf(document)},`;
          await trial.expectLost(one, undefined, what, written);
          await trial.expectStored(one, document, revision, 'a read afterwards');
        }
      }
    }
  },
  'RING-STALE-LOSES': async (trial) => {
    const name = trial.freshName();
    const [store, other] = await trial.openPair(name);
    const revisions: string[] = [];
    for (let version = 1; version <= STALE_VERSIONS; version++) {
      const document = `version ${version}`;
      revisions.push(await trial.write(other, document, revisions.at(-1)));
      // From the tenth version on, one number is a prefix of another.
      if (version > 3 && version < STALE_VERSIONS) continue;
      for (const stale of revisions.slice(0, -1)) {
        // Also tries the stored document, which another store wrote.
        for (const written of ['never', document]) {
          const what = `a write of ${textOf(written)} with the revision of an earlier version, over ${textOf(document)},`;
          await trial.expectLost(store, stale, what, written);
          await trial.expectStored(store, document, revisions.at(-1), 'a read afterwards');
          await trial.expectStored(other, document, revisions.at(-1), 'a read of another store afterwards');
        }
      }
    }
    // The losing write is now concurrent with the winning write. Each call must use its own expectation and document.
    for (const [i, stale] of [undefined, revisions[0], `${revisions[0]}x`].entries()) {
      for (const isFirst of [true, false]) {
        const document = `beside ${i}, ${isFirst}`;
        const lose = () =>
          trial.expectLost(store, stale, 'a write with a wrong expectation, concurrent with one that wins,');
        const before = isFirst ? lose() : undefined;
        const winning = trial.write(store, document, revisions.at(-1), 'a write concurrent with one that loses');
        await trial.all<unknown>([winning, before ?? lose()]);
        revisions.push(await winning);
        for (const one of [store, other])
          await trial.expectStored(one, document, revisions.at(-1), 'a read after both writes');
      }
    }
    // A write of an unchanged document must also be compared with the stored version.
    const found = await trial.read(store);
    revisions.push(await trial.write(other, 'newer', revisions.at(-1)));
    const unchanged = 'a write of the document and revision that the store read before another store wrote,';
    await trial.expectLost(store, found?.revision, unchanged, found?.document);
    await trial.expectStored(other, 'newer', revisions.at(-1), 'a read afterwards');
    if (trial.target.remove === undefined) return;
    await trial.remove(name);
    for (const stale of revisions) {
      await trial.expectLost(store, stale, 'a write to the absent ring with a revision from before the removal');
      await trial.expectAbsent(other, 'a read afterwards');
    }
  },
  'RING-CONFLICT-ERROR': async (trial) => {
    const [store, other] = await trial.openPair();
    const first = await trial.write(store, 'one', undefined);
    for (const one of [store, other])
      await trial.expectConflict(one, undefined, 'a second write that would create the ring');
    await trial.write(store, 'two', first);
    await trial.expectConflict(other, first, 'a write with the revision of an earlier version');
    await trial.expectConflict(store, first, 'the same write on the connection that wrote that version');
  },
  'RING-FOREIGN-LOSES': async (trial) => {
    const [store, other] = await trial.openPair();
    for (const expected of FOREIGN) {
      await trial.expectLost(store, expected, `a write to an absent ring with expected: ${textOf(expected)}`);
    }
    await trial.expectAbsent(other, 'a read afterwards');
    const revision = await trial.write(store, 'one', undefined);
    for (const expected of [...FOREIGN, ...othersLike(revision)].filter((one) => one !== revision)) {
      await trial.expectLost(store, expected, `a write that expects ${textOf(expected)}, not ${textOf(revision)},`);
      await trial.expectStored(other, 'one', revision, 'a read afterwards');
    }
    await expectNotPadded(trial, store, revision);
  },
  'RING-REVISION-FOREIGN': async (trial) => {
    const [store, other] = await trial.openPair();
    const another = await trial.open();
    const earlier = await trial.write(another, 'earlier', undefined);
    await trial.expectConflict(store, earlier, 'a write to an absent ring with the revision of another ring');
    await trial.expectAbsent(other, 'a read afterwards');
    const revision = await trial.write(store, 'one', undefined);
    const later = await trial.write(another, 'later', earlier);
    for (const [when, expected] of [
      ['an earlier', earlier],
      ['a later', later],
    ] as const) {
      // With a separate counter for each ring, two revisions may be equal.
      if (expected === revision) continue;
      await trial.expectLost(store, expected, `a write with ${when} revision of another ring`);
      await trial.expectStored(other, 'one', revision, 'a read afterwards');
    }
  },
  'RING-FOREIGN-CONFLICT': async (trial) => {
    const store = await trial.open();
    const absent = await trial.open();
    const revision = await trial.write(store, 'one', undefined);
    for (const expected of IMPOSSIBLE) {
      await trial.expectConflict(absent, expected, `a write to an absent ring with expected: ${textOf(expected)}`);
    }
    const all = [...FOREIGN, ...IMPOSSIBLE, ...othersLike(revision), ...spellingsOf(revision)];
    const wrong = all.filter((one) => one !== revision);
    for (let i = 0; i < wrong.length; i += AT_ONCE) {
      const writes = wrong.slice(i, i + AT_ONCE).map((expected) => {
        const what = `a write that expects ${textOf(expected)}, not ${textOf(revision)},`;
        return trial.expectConflict(store, expected, what);
      });
      await trial.all(writes);
    }
    await trial.expectStored(store, 'one', revision, 'a read afterwards');
    await trial.expectAbsent(absent, 'a read of the absent ring afterwards');
  },
  'RING-REWRITE': async (trial) => {
    const [store, other] = await trial.openPair();
    let revision = await trial.write(store, 'one', undefined);
    for (const writer of [store, other, store]) {
      revision = await trial.write(writer, 'one', revision, 'a write of the stored document');
      for (const reader of [store, other]) await trial.expectStored(reader, 'one', revision, 'a read afterwards');
    }
    await trial.write(other, 'two', revision);
  },
};

/**
 * Expects that a padded revision does not win with padding at one end and lose with padding at the other end. HTTP and
 * number parsers trim white space at both ends, but a store that trims one end treats different texts as equal.
 */
async function expectNotPadded(trial: RingStoreTrial, store: RingStore, first: string): Promise<void> {
  let revision = first;
  for (const space of [' ', '\t', '\n', '\r\n', '\0']) {
    const won: string[] = [];
    for (const [before, after] of [
      [space, ''],
      ['', space],
    ] as const) {
      const expected = before + revision + after;
      const what = `a write that expects ${textOf(expected)}, with ${textOf(space)} added,`;
      const outcome = await trial.promised(() => store.write('one', { expected }), what);
      if ('error' in outcome) continue;
      revision = revisionOf(outcome.value, what);
      won.push(what);
    }
    expectThat(won.length !== 1, `${won[0]} won`);
  }
}

/**
 * Documents that differ only in order, white space, case, composition or high bytes, or in characters outside a
 * single-byte encoding.
 */
const SIMILAR: readonly string[] = [
  ...'{"a":1,"b":2}|{"b":2,"a":1}|{"a":1, "b":2}|{"a":1,"b":2}\n|{"a":1.0,"b":2}|{"A":1,"b":2}'.split('|'),
  ...'\u00e9|e\u0301|\\u00e9|\u01e9|\u00e8|\uff45|e|\u{1f600}|\u{1f601}'.split('|').map((text) => `{"a":"${text}"}`),
  // Texts with equal 32-bit hashes, as Java computes them.
  ...'Aa|BB|AaAa|BBBB'.split('|'),
  ...'\ufeff{"a":"e"}|one\ntwo\n|two\none\n|one\r\ntwo\r\n'.split('|'),
];

function longest(trial: RingStoreTrial): string {
  return labelled(Math.min(LONGEST, trial.supports.maxDocumentBytes));
}

/** Long documents that differ in one character or in the order of two parts; the two of maximum length differ in the last character. */
function similarLong(trial: RingStoreTrial): readonly string[] {
  const [long, most] = [longest(trial), labelled(trial.supports.maxDocumentBytes)];
  const places = Array.from({ length: PLACES + 1 }, (_, i) => Math.floor(((long.length - 1) * i) / PLACES));
  const changed = places.map((at) => `${long.slice(0, at)}x${long.slice(at + 1)}`);
  const labels: readonly string[] = long.match(/[^]{1,8}/g) ?? [];
  const [one, other] = [labels.length >> 2, labels.length >> 1];
  const exchanged = labels
    .with(one, labels[other] ?? '')
    .with(other, labels[one] ?? '')
    .join('');
  return [long, ...changed, exchanged, ...(most.length > long.length ? [most, `${most.slice(0, -1)}x`] : [])];
}
