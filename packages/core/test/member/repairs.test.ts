import { expect, test, vi } from 'vitest';
import { later, type Moment } from '../../src/base/clock.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { Repairs } from '../../src/member/repairs.ts';
import type { RingDocument } from '../../src/ring/document.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { documentWith, entryBy, judgementOf, RING, revocationBy, testKey } from '../support/certified.ts';
import { first, junkWrap, knowing, one, ownKey, second, stranger, two } from '../support/known-keys.ts';

const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
const START: Moment = { wallMs: judgementOf().nowMs, steadyMs: 0 };
const whole = documentWith(first, second);
const lacking = documentWith(first);

function setUp(snapshot: RingSnapshot = knowing([one, first], [two, second]), over: readonly string[] = []) {
  const judged = vi.fn<() => void>();
  let now = START;
  const view = {
    snapshot,
    past: new Map(),
    now: () => now,
    judgement: () => (judged(), judgementOf()),
    isRemovable: ({ id }: RingKey) => over.includes(id),
  };
  // Half of the longest wait: 2.5 s.
  const random = (fill: Uint8Array): void => void fill.fill(0).fill(0x80, fill.length - 1);
  const repairs = new Repairs({ ring: RING, policy, random, view } as unknown as MemberParts);
  const pass = (ms: number): Moment => (now = later(now, ms));
  /** Milliseconds until the repair, after a read of the document. */
  const dueIn = (document: RingDocument | undefined, isForeign = false): number | undefined => {
    repairs.consider(document, now, isForeign);
    return repairs.dueAt && repairs.dueAt.steadyMs - now.steadyMs;
  };
  return { repairs, view, judged, pass, dueIn, now: () => now };
}

test.each<readonly [string, RingDocument | undefined, boolean, number | undefined]>([
  ['lacks nothing is not written', whole, false, undefined],
  ['lacks a key is written after a random wait', lacking, false, 2_500],
  ['belongs to another ring is overwritten five seconds later', lacking, true, 7_500],
  ['is absent is written again', undefined, false, 2_500],
])('a document that %s', (_, document, isForeign, expected) => {
  expect(setUp().dueIn(document, isForeign)).toBe(expected);
});

test('a repair is taken once, when it is due, and the next repair waits for R unless the write lost its race', () => {
  const { repairs, pass, dueIn } = setUp();
  expect(repairs.take()).toBe(false);
  dueIn(lacking);
  pass(2_499);
  expect([repairs.take(), dueIn(lacking)]).toEqual([false, 1]);
  pass(1);
  expect([repairs.take(), repairs.take(), repairs.dueAt]).toEqual([true, false, undefined]);
  pass(100_000);
  expect(dueIn(lacking)).toBe(200_000);
  repairs.wasLost();
  expect(dueIn(whole)).toBeUndefined();
  expect(dueIn(lacking)).toBe(2_500);
});

test('a document that lacked nothing is compared again only if the document or the snapshot changes', () => {
  const { view, judged, dueIn } = setUp();
  for (const [document, comparisons] of [
    [whole, 1],
    [whole, 1],
    [documentWith(...whole.entries), 2],
    [undefined, 3],
    [whole, 4],
  ] as const) {
    dueIn(document);
    expect(judged).toHaveBeenCalledTimes(comparisons);
  }
  view.snapshot = knowing([one, first], [stranger, entryBy(stranger, [])]);
  expect(dueIn(whole)).toBe(2_500);
});

test('neither a fact for which a full document has no room nor a key that may leave is a reason to write', () => {
  const keys = Array.from({ length: 64 }, (_, i) => ownKey(testKey(i + 10)));
  const gone = { ...ownKey(one), revoked: true, revocation: revocationBy(one.id, [one]) };
  const full = documentWith(...keys.map((key) => ({ ...entryBy(testKey(0), []), ...key, revoked: undefined })));
  expect(setUp(createSnapshot([...keys, gone])).dueIn(full)).toBeUndefined();
  expect(setUp(createSnapshot([...keys.slice(1), gone])).dueIn(documentWith(...full.entries.slice(1)))).toBe(2_500);
  expect(setUp(undefined, [two.id]).dueIn(lacking)).toBeUndefined();
});

test('junk in an entry is not a reason to write if the entry lacks nothing', () => {
  const spoilt = documentWith(first, { ...second, wraps: [junkWrap(1), ...second.wraps] });
  expect(setUp().dueIn(spoilt)).toBeUndefined();
});

test('the place of a ring is contested after four foreign documents within an hour', () => {
  const { repairs, pass, dueIn, now } = setUp();
  const overwrite = (isForeign: boolean): boolean => {
    dueIn(lacking, isForeign);
    pass(600_000);
    repairs.take();
    return repairs.isContested(now());
  };
  expect([repairs.isForeign, overwrite(false), repairs.isForeign]).toEqual([false, false, false]);
  expect([true, true, true].map(overwrite)).toEqual([false, false, false]);
  expect([overwrite(false), overwrite(true), repairs.isForeign]).toEqual([false, true, true]);
  pass(1_199_999);
  expect(repairs.isContested(now())).toBe(true);
  pass(1);
  expect(repairs.isContested(now())).toBe(false);
});
