import { describe, expect, test, vi } from 'vitest';
import type { Moment } from '../../src/base/clock.ts';
import type { RotationReason } from '../../src/contracts/events.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { RingConflictError, type RingStoreError } from '../../src/contracts/ring-store.ts';
import type { KeyWraps } from '../../src/kms/wraps.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { type NewKey, RingWriter } from '../../src/member/writer.ts';
import type { RingDocument, RingEntry } from '../../src/ring/document.ts';
import { signersOf, tombstone } from '../../src/ring/facts.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { documentWith, entryBy, judgementOf, RING, signersWith, T0, testKey, wrapBy } from '../support/certified.ts';
import { EventLog } from '../support/event-log.ts';
import { first, four, keyOf, knowing, one, ownKey, second, third, three, two } from '../support/known-keys.ts';

const SECOND = 1_000;
const NOW = T0 + 7_200 * SECOND;
const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
const fresh = testKey(50);
const at = (ms: number): Moment => ({ wallMs: ms, steadyMs: ms });

interface Facts {
  readonly known?: RingSnapshot;
  readonly trouble?: string;
  readonly past?: ReturnType<typeof signersWith>;
  readonly latest?: RingDocument;
  /** The ids of keys whose life is over. */
  readonly over?: readonly string[];
  readonly creating?: Error;
  readonly writing?: Error;
}

function setUp({ known = createSnapshot([]), trouble, past = new Map(), latest, over = [], ...failing }: Facts = {}) {
  const documents: RingDocument[] = [];
  const create = vi.fn<KeyWraps['create']>(async (times, _, vouch) => {
    if (failing.creating !== undefined) throw failing.creating;
    const entry = { ...entryBy(fresh, [], times), vouchers: vouch({ id: fresh.id, ...times }) };
    return { entry, held: fresh.held };
  });
  const missingWraps = vi.fn<KeyWraps['missingWraps']>(async () => []);
  const install = vi.fn<(snapshot: RingSnapshot) => void>();
  const noteAttempt = vi.fn<(id: string) => void>();
  const view = {
    snapshot: known,
    signers: signersOf(known.keys, past),
    past,
    limits: { wasRead: () => undefined, kmsCheckPassed: () => undefined },
    now: () => at(NOW),
    wallMs: () => NOW,
    clockTrouble: () => trouble,
    isRemovable: ({ id }: RingKey) => over.includes(id),
    judgement: () => judgementOf({ nowMs: NOW }),
    sealsFrom: () => 0,
    install,
    noteAttempt,
  };
  const stored = {
    latest: latest && { document: latest, revision: 'r' },
    write: async (document: RingDocument) => {
      if (failing.writing !== undefined) throw failing.writing;
      documents.push(document);
    },
  };
  const wrappers = [{ provider: 'kms' }];
  const parts = { ring: RING, policy, wrappers, wraps: { create, missingWraps }, stored, view };
  const writer = new RingWriter(parts as unknown as MemberParts);
  return { writer, documents, create, missingWraps, install, noteAttempt };
}

const outcomeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: RingStoreError) => error.kind,
  );

/** A key of the ring that seals between these times, in milliseconds from now. */
function sealing(fromMs: number, untilMs: number, more: Partial<RingKey> = {}): RingKey {
  return { ...ownKey(one), activates: NOW + fromMs, sealsUntil: NOW + untilMs, ...more };
}

const laterKey = (fromMs: number, untilMs: number): RingKey => ({ ...sealing(fromMs, untilMs), id: two.id });
const waiting = (ageMs: number, fromMs: number, untilMs: number): RingEntry =>
  entryBy(three, [], { created: NOW - ageMs, activates: NOW + fromMs, sealsUntil: NOW + untilMs });
const unused = (count: number): RingKey[] =>
  Array.from({ length: count }, (_, i) => ({
    ...ownKey(testKey(i + 100)),
    activates: NOW + 1e9,
    sealsUntil: NOW + 2e9,
  }));

describe('the key that a ring needs', () => {
  // An emergency key waits 660 s; a member reads the ring within 360 s.
  test.each<readonly [string, readonly RingKey[], readonly RingEntry[], string | undefined, string | undefined]>([
    ['a key at once if it has none', [], [], undefined, 'initial'],
    ['a key at once if the last key ends now', [sealing(-1, 0)], [], undefined, 'initial'],
    ['a key at once, whatever the clock shows', [sealing(-1, 0)], [], 'stepped', 'initial'],
    ['a key at once if an emergency key would come too late', [sealing(-1, 660_000)], [], undefined, 'initial'],
    ['an emergency key if that comes in time', [sealing(-1, 660_001)], [], undefined, 'emergency'],
    ['an emergency key while the last one has to be read', [sealing(-1, 1_020_000)], [], undefined, 'emergency'],
    ['no key if the last one ends later', [sealing(-1, 1_020_001)], [], undefined, undefined],
    ['no key while the clock is unconfirmed', [sealing(-1, 700_000)], [], 'stepped', undefined],
    ['no key if the next key seals in time', [sealing(-1, 700_000), laterKey(700_000, 9e6)], [], undefined, undefined],
    ['an emergency key in a gap', [sealing(-1, 700_000), laterKey(700_001, 9e6)], [], undefined, 'emergency'],
    [
      'no key if an entry that waits to be unwrapped comes first',
      [laterKey(700_000, 9e6)],
      [waiting(0, -1, 700_000)],
      undefined,
      undefined,
    ],
    [
      'no key if an entry that waits to be unwrapped is new enough',
      [],
      [waiting(659_999, -1, 9e6)],
      undefined,
      undefined,
    ],
    [
      'a key at once if an entry that waits to be unwrapped is older',
      [],
      [waiting(660_000, -1, 9e6)],
      undefined,
      'initial',
    ],
    ['a key at once if the only key is revoked', [sealing(-1, 9e6, { revoked: true })], [], undefined, 'initial'],
    ['a key at once if the only key is not held', [sealing(-1, 9e6, { held: undefined })], [], undefined, 'initial'],
    [
      'a key at once if the only key belongs to another ring',
      [sealing(-1, 9e6, { isLeft: true })],
      [],
      undefined,
      'initial',
    ],
    ['an emergency key as its 48th', [sealing(-1, 700_000), ...unused(46)], [], undefined, 'emergency'],
    ['no 49th key', [sealing(-1, 700_000), ...unused(47)], [], undefined, undefined],
  ])('the ring needs %s', (_, keys, carried, trouble, expected) => {
    const { writer } = setUp({ known: createSnapshot(keys, carried), ...(trouble !== undefined && { trouble }) });
    expect(writer.neededKey).toBe(expected);
  });

  test('a ring is dead while no key may seal', () => {
    const isDead = (...keys: readonly RingKey[]) => setUp({ known: createSnapshot(keys) }).writer.isDead;
    expect([isDead(), isDead(sealing(-1, 0)), isDead(sealing(1, 9e6)), isDead(sealing(0, 1))]).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test('only unwrapped, unexpired keys of this ring count', () => {
    const keys = [
      ownKey(one),
      ownKey(two),
      { ...ownKey(three), isLeft: true },
      tombstone(entryBy(four, []), undefined),
    ];
    expect(setUp({ known: createSnapshot(keys), over: [two.id] }).writer.keyCount).toBe(1);
  });
});

describe('room for a new key', () => {
  const revokedAt = (ms: number): RingKey => ({ ...ownKey(one), revoked: true, revocation: { at: ms, by: new Map() } });

  test.each<readonly [RotationReason, string, readonly RingKey[], boolean]>([
    ['requested', '47 keys', unused(47), true],
    ['requested', '48 keys', unused(48), false],
    ['emergency', '48 keys', unused(48), false],
    ['key-version', '48 keys', unused(48), false],
    ['scheduled', '59 keys', unused(59), true],
    ['scheduled', '60 keys', unused(60), false],
    ['initial', '63 keys', unused(63), true],
    ['initial', '64 keys', unused(64), false],
    ['initial', '64 keys, one revoked before the last read', [revokedAt(NOW - 900_001), ...unused(63)], true],
    ['initial', '64 keys, one revoked since', [revokedAt(NOW - 900_000), ...unused(63)], false],
    ['revocation', '64 keys, one revoked in the future', [revokedAt(NOW + 900_001), ...unused(63)], true],
  ])('a new key for the reason %s fits into a ring of %s: %s', async (reason, _, keys, fits) => {
    const { writer, create } = setUp({ known: createSnapshot(keys) });
    expect(await outcomeOf(writer.make(reason))).toBe(fits ? 'done' : 'too-large');
    expect(create).toHaveBeenCalledTimes(fits ? 1 : 0);
  });

  test('no key is made while the clock is unconfirmed', async () => {
    const { writer, create } = setUp({ trouble: 'stepped' });
    await expect(writer.make('requested')).rejects.toMatchObject({ kind: 'unavailable' });
    expect(create).not.toHaveBeenCalled();
  });
});

describe('a new key', () => {
  test.each([
    ['now', [], [], [], NOW],
    ['after the newest known key', [{ ...ownKey(one), created: NOW + 5_000 }], [], [], NOW + 6_000],
    ['after the newest expired key', [], [{ ...one, created: NOW + 5_000 }], [], NOW + 6_000],
    ['no later than a second from now, whatever a carried entry claims', [], [], [waiting(-9e6, 1, 2)], NOW + 1_000],
  ] as const)('a new key is created %s', async (_, keys, past, carried, created) => {
    const { writer, create } = setUp({ known: createSnapshot(keys, carried), past: signersWith(...past) });
    await writer.make('initial');
    expect(create.mock.calls[0]?.[0].created).toBe(created);
  });

  test('a new key has vouchers of known keys, an id not yet in the document, and wraps that count as unwrapped', async () => {
    const known = knowing([one, first]);
    const { writer, create, noteAttempt } = setUp({ known, latest: documentWith(first, second) });
    const { key } = await writer.make('requested');
    const isTaken = create.mock.calls[0]?.[1];
    expect([one, two, three].map(({ id }) => isTaken?.(id))).toEqual([true, true, false]);
    expect([...key.vouchers.keys()]).toEqual([one.id]);
    expect(key.wraps.map(({ isUnwrapped }) => isUnwrapped)).toEqual([true]);
    expect(noteAttempt).toHaveBeenCalledWith(fresh.id);
  });

  test.each([
    ['a planned key after 300 s', 'requested', 300_000, true],
    ['no planned key later', 'requested', 300_001, false],
    ['a key that is active at once after 60 s', 'initial', 60_000, true],
    ['no key that is active at once later', 'initial', 60_001, false],
    ['an emergency key after 60 s', 'emergency', 60_000, true],
    ['no emergency key later', 'emergency', 60_001, false],
  ] as const)('a publisher that was delayed publishes %s', async (_, reason, delayMs, isWritten) => {
    const { writer, documents, install } = setUp();
    const made: NewKey = { ...(await writer.make(reason)), began: at(NOW - delayMs) };
    expect(await outcomeOf(writer.publish(reason, made))).toBe(isWritten ? 'done' : 'unavailable');
    expect(documents.map(({ entries }) => entries.map(({ id }) => id))).toEqual(isWritten ? [[fresh.id]] : []);
    expect(install).toHaveBeenCalledTimes(isWritten ? 1 : 0);
  });

  test('a lost race is reported with the number of keys, and nothing is installed', async () => {
    const log = new EventLog();
    log.listen();
    const { writer, install } = setUp({ writing: new RingConflictError() });
    await expect(writer.publish('initial')).rejects.toThrow(RingConflictError);
    log.end();
    expect([log.of('conflict'), log.of('rotation'), install.mock.calls]).toEqual([[{ keys: 1 }], [], []]);
  });
});

describe('a revocation', () => {
  const known = knowing([one, first], [two, second]);
  const failed = new KeyWrapperError('denied', { provider: 'kms', operation: 'wrap' });
  const certifiersOf = ([document]: readonly RingDocument[]) =>
    document?.entries.map(({ id, revoked }) => [id, revoked && [...revoked.by.keys()]]);

  test('keys that are revoked together do not certify each other, and a successor is announced', async () => {
    const log = new EventLog();
    log.listen();
    const { writer, documents, create } = setUp({ known });
    await writer.revoke([keyOf(known, one), keyOf(known, two)]);
    log.end();
    const others = certifiersOf(documents)?.filter(([id]) => id !== fresh.id);
    expect(others).toEqual([
      [one.id, [one.id, fresh.id]],
      [two.id, [two.id, fresh.id]],
    ]);
    expect(create.mock.calls[0]?.[3]).toEqual({ foreground: true, until: at(NOW + 15_000) });
    expect(log.of('rotation')).toMatchObject([{ reason: 'revocation', seconds: 0 }]);
  });

  test.each<readonly [string, Facts]>([
    ['the clock is unconfirmed', { trouble: 'stepped' }],
    ['the KMS fails', { creating: failed }],
    ['the ring is full', { known: createSnapshot([...known.keys, ...unused(62)]) }],
  ])('a key is revoked without a successor if %s', async (_, facts) => {
    const { writer, documents } = setUp({ known, ...facts });
    await writer.revoke([keyOf(known, one)]);
    expect(documents[0]?.entries.find(({ id }) => id === one.id)?.revoked?.by.has(one.id)).toBe(true);
    expect(documents[0]?.entries.some(({ id }) => id === fresh.id)).toBe(false);
  });

  test('a failure outside the KMS prevents the revocation', async () => {
    const { writer, documents } = setUp({ known, creating: new RangeError('random') });
    await expect(writer.revoke([keyOf(known, one)])).rejects.toThrow(RangeError);
    expect(documents).toEqual([]);
  });

  test('a newer key revokes an entry that waits to be unwrapped; an entry with no newer known key stays unrevoked', async () => {
    const carrying = createSnapshot([keyOf(known, two)], [first, third], [entryBy(four, [])]);
    const { writer, documents, install } = setUp({ known: carrying, trouble: 'stepped' });
    const meant = [first, third].map((entry) => tombstone(entry, undefined));
    await expect(writer.revoke(meant)).rejects.toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining(three.id),
    });
    expect(certifiersOf(documents)).toEqual([
      [one.id, [two.id]],
      [two.id, undefined],
      [three.id, undefined],
      [four.id, undefined],
    ]);
    const [after] = install.mock.calls[0] ?? [];
    expect([after?.carried, after?.unreadable].map((entries) => entries?.map(({ id }) => id))).toEqual([
      [three.id],
      [four.id],
    ]);
  });

  test('the successor revokes keys that are not unwrapped and newer than all known ones', async () => {
    const waitingToo = createSnapshot([keyOf(known, one)], [second], [third]);
    const { writer, documents, install } = setUp({ known: waitingToo });
    await writer.revoke([keyOf(known, one), ...[second, third].map((entry) => tombstone(entry, undefined))]);
    expect(certifiersOf(documents)).toEqual([
      [one.id, [one.id, fresh.id]],
      [two.id, [fresh.id]],
      [three.id, [fresh.id]],
      [fresh.id, undefined],
    ]);
    const [after] = install.mock.calls[0] ?? [];
    expect([after?.carried, after?.unreadable]).toEqual([[], []]);
  });

  test.each<readonly [string, Facts, RingEntry]>([
    ['the KMS fails', { creating: failed }, third],
    ['the clock is unconfirmed', { trouble: 'stepped' }, third],
    ['the key was created later than the successor', {}, entryBy(three, [], { created: NOW + SECOND })],
  ])('nothing is written if no key can certify the revocation, because %s', async (_, facts, entry) => {
    const { writer, documents } = setUp({ known: createSnapshot([keyOf(known, two)], [entry]), ...facts });
    const revoked = writer.revoke([tombstone(entry, undefined)]);
    await expect(revoked).rejects.toMatchObject({ kind: 'unavailable', detail: expect.stringContaining(three.id) });
    expect(documents).toEqual([]);
  });
});

describe('wraps that are missing', () => {
  const owned = (key: RingKey): RingKey => ({
    ...key,
    wraps: [{ ...wrapBy(one, { provider: 'kms' }), isUnwrapped: true }],
  });

  test('missing wraps are added only to live keys that are held', async () => {
    const keys = [
      ownKey(one),
      owned(ownKey(two)),
      { ...ownKey(three), isLeft: true },
      { ...ownKey(four), held: undefined },
    ];
    const ended = { ...ownKey(fresh), opensUntil: NOW };
    const { writer, documents, missingWraps } = setUp({ known: createSnapshot([...keys, ended]) });
    await writer.addMissingWraps({ foreground: false });
    expect(missingWraps.mock.calls.map(([{ id }]) => id)).toEqual([one.id]);
    expect(documents).toEqual([]);
    missingWraps.mockResolvedValue([wrapBy(one, { provider: 'kms' })]);
    await writer.addMissingWraps({ foreground: false });
    const wraps = documents[0]?.entries.find(({ id }) => id === one.id)?.wraps;
    expect(wraps).toMatchObject([{ provider: 'local' }, { provider: 'kms', isUnwrapped: true }]);
  });
});

describe('a claim', () => {
  const known = knowing([one, first]);

  test.each([
    ['is added to the document that was read', documentWith(first, second), [one.id, two.id]],
    ['is added to the known facts if the document lacks them', documentWith(second), [one.id]],
    ['is added to the known facts if there is no document', undefined, [one.id]],
  ])('a claim %s', async (_, latest, ids) => {
    const { writer, documents } = setUp({ known, ...(latest && { latest }) });
    await writer.claim('claim');
    expect(documents.map(({ claim, entries }) => [claim, entries.map(({ id }) => id)])).toEqual([['claim', ids]]);
  });
});
