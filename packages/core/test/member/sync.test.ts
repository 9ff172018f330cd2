import { describe, expect, test, vi } from 'vitest';
import { type Moment } from '../../src/base/clock.ts';
import { KeyWrapperError, type KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { RingStoreError } from '../../src/contracts/ring-store.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import type { KeyWraps } from '../../src/kms/wraps.ts';
import type { KmsCheck } from '../../src/member/kms-check.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import type { Repairs } from '../../src/member/repairs.ts';
import { RingSync, type SyncOptions } from '../../src/member/sync.ts';
import type { RingDocument, RingEntry, RingWrap } from '../../src/ring/document.ts';
import { tombstone } from '../../src/ring/facts.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot, type RingSnapshot } from '../../src/ring/snapshot.ts';
import type { Stored } from '../../src/stores/stored-ring.ts';
import { ancestorsBy, documentWith, judgementOf, RING, revocationBy, wrapBy } from '../support/certified.ts';
import { knowing, ownKey } from '../support/known-keys.ts';
import { entry, key, numberOf } from '../support/numbered-keys.ts';

const root = entry(1, []);
/** Entries that the root vouches for. */
const heirs = (...numbers: readonly number[]): RingEntry[] => numbers.map((n) => entry(n, [1]));
const NOW = judgementOf().nowMs;
const BACKGROUND: SyncOptions = { foreground: false };

interface Facts {
  readonly known?: RingSnapshot;
  readonly failing?: Record<number, KeyWrapperErrorKind>;
  readonly pinned?: boolean;
}

function setUp({ known = knowing([key(1), root]), failing = {}, pinned = false }: Facts = {}) {
  let now: Moment = { wallMs: NOW, steadyMs: 0 };
  let answer: Stored | RingStoreError | undefined;
  const calls: number[] = [];
  const [judged, wasRead, checked, noteRefused] = [
    vi.fn<() => void>(),
    vi.fn<() => void>(),
    vi.fn<() => void>(),
    vi.fn<KeyWraps['noteRefused']>(() => true),
  ];
  const consider = vi.fn<Repairs['consider']>();
  const run = vi.fn<KmsCheck['run']>(async () => wrapBy(key(1)));
  const isRefused = vi.fn<() => boolean>(() => false);
  const view = {
    snapshot: known,
    limits: { wasRead, kmsCheckPassed: checked, isRefused },
    now: () => now,
    wallMs: (at: Moment = now) => at.wallMs,
    judgement: () => (judged(), judgementOf({ nowMs: now.wallMs, isPinnedOut: () => pinned })),
    dropExpired: vi.fn<() => void>(),
    sealsFrom: () => 0,
    install: (snapshot: RingSnapshot) => void (view.snapshot = snapshot),
    begin: (snapshot: RingSnapshot) => void (view.snapshot = snapshot),
    rememberPast: vi.fn<(signers: readonly { readonly id: string }[]) => void>(),
  };
  const pass = (wallMs: number, steadyMs = wallMs): Moment =>
    (now = { wallMs: now.wallMs + wallMs, steadyMs: now.steadyMs + steadyMs });
  /** How long each unwrap takes. */
  const unwrapping = { ms: 0 };
  const unwrap = async (given: RingEntry): ReturnType<KeyWraps['unwrap']> => {
    calls.push(numberOf(given));
    pass(unwrapping.ms);
    const kind = failing[numberOf(given)];
    if (kind !== undefined) throw new KeyWrapperError(kind, { provider: 'kms', operation: 'unwrap' });
    return { held: key(numberOf(given)).held, wrap: given.wraps[0] as RingEntry['wraps'][0] };
  };
  const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
  const parts = {
    ring: RING,
    policy,
    wraps: { unwrap, noteRefused },
    stored: { read: async () => (answer instanceof Error ? Promise.reject(answer) : answer) },
    view,
  };
  const sync = new RingSync(
    parts as unknown as MemberParts,
    { consider } as unknown as Repairs,
    { run } as unknown as KmsCheck,
  );
  /** Reads a document: `done`, or the kind of the failure. */
  const read = (
    document: RingDocument | NonNullable<typeof answer> | undefined,
    options: SyncOptions = BACKGROUND,
  ): Promise<string> => {
    answer = document !== undefined && 'entries' in document ? { document, revision: 'r' } : document;
    return sync.read(options).then(
      () => 'done',
      (error: KeyWrapperError) => error.kind,
    );
  };
  const numbers = (): readonly (readonly number[])[] =>
    [view.snapshot.keys, view.snapshot.carried, view.snapshot.unreadable].map((all) => all.map(numberOf));
  return {
    sync,
    view,
    read,
    calls,
    judged,
    wasRead,
    checked,
    noteRefused,
    consider,
    run,
    isRefused,
    pass,
    unwrapping,
    failing,
    numbers,
  };
}

describe('a read of the ring', () => {
  const junk: Stored = { document: undefined, revision: 'r', error: new RingStoreError('too-large', 'x') };
  const ended = createSnapshot([{ ...ownKey(key(1)), opensUntil: NOW }]);
  const refused = createSnapshot([ownKey(key(1)), tombstone(entry(2, [1]), undefined)]);

  test.each<readonly [string, Facts, RingDocument | Stored | undefined, string, boolean, boolean]>([
    ['a document with a known key', {}, documentWith(root), 'done', true, false],
    ['a document with a known key among others', {}, documentWith(entry(9, []), root), 'done', true, false],
    ['no document', {}, undefined, 'unavailable', false, false],
    ['no document, while no known key is live', { known: ended }, undefined, 'done', false, false],
    ['junk', {}, junk, 'too-large', false, true],
    ['junk, while no known key is live', { known: ended }, junk, 'too-large', false, true],
    ['a document of another ring', {}, documentWith(entry(9, [])), 'corrupt', false, true],
    ['a document without a key', {}, documentWith(), 'corrupt', false, false],
    ['a document without a key, while no known one is live', { known: ended }, documentWith(), 'done', false, false],
    [
      'an entry that was only refused by the pin',
      { known: refused, pinned: true },
      documentWith(entry(2, [1])),
      'corrupt',
      false,
      true,
    ],
    [
      'expired keys, while a key that waits is live',
      { known: createSnapshot(ended.keys, [root]) },
      undefined,
      'unavailable',
      false,
      false,
    ],
  ])('a read of %s has the expected effect', async (_, facts, document, outcome, teaches, isForeign) => {
    const { sync, read, wasRead, consider, view } = setUp(facts);
    expect(await read(document)).toBe(outcome);
    expect(wasRead).toHaveBeenCalledTimes(teaches ? 1 : 0);
    expect(consider.mock.calls.map(([, , foreign]) => foreign)).toEqual([isForeign]);
    expect(view.dropExpired).toHaveBeenCalledTimes(1);
    expect(sync.wasAnswered).toBe(true);
  });

  test('a member learns nothing from a store that does not answer', async () => {
    const { sync, read, consider } = setUp();
    await read(documentWith(root));
    expect(await read(new RingStoreError('denied', 'x'))).toBe('denied');
    expect([sync.wasAnswered, consider.mock.calls.length]).toEqual([false, 1]);
  });

  test('the same document is learned again only if the wall clock has stepped by more than a second', async () => {
    const { read, judged, pass } = setUp();
    const document = documentWith(root, entry(2, [1]));
    await read(document);
    const times = judged.mock.calls.length;
    const seen: number[] = [];
    for (const [wallMs, steadyMs] of [
      [300_000, 300_000],
      [1_000, 0],
      [1, 0],
      [5, 5],
    ] as const) {
      pass(wallMs, steadyMs);
      await read(document);
      seen.push(judged.mock.calls.length > times ? 1 : 0);
    }
    expect(seen).toEqual([0, 0, 1, 1]);
    const after = judged.mock.calls.length;
    await read(document);
    expect(judged).toHaveBeenCalledTimes(after);
    await read(documentWith(...document.entries));
    expect(judged.mock.calls.length).toBeGreaterThan(after);
  });

  test.each<readonly [string, RingDocument, Facts['failing'], SyncOptions]>([
    ['an entry that could not be unwrapped', documentWith(root, entry(2, [1])), { 2: 'throttled' }, BACKGROUND],
    ['an entry that is corrupt', documentWith(root, entry(2, [1])), { 2: 'corrupt' }, BACKGROUND],
    ['an entry from the future', documentWith(root, entry(2, [1], { created: NOW + 1e6 })), {}, BACKGROUND],
    ['a token that caused the read', documentWith(root), {}, { ...BACKGROUND, forToken: true }],
  ])('a document is learned again after %s', async (_, document, failing = {}, options) => {
    const { read, judged } = setUp({ failing });
    await read(document, options);
    const times = judged.mock.calls.length;
    await read(document, options);
    expect(judged.mock.calls.length).toBeGreaterThan(times);
  });

  test('a read before a write fails only because of the store, not because of the KMS', async () => {
    const { sync, read } = setUp({ failing: { 2: 'throttled' } });
    expect(await read(documentWith(root, entry(2, [1])))).toBe('throttled');
    await sync.readToWrite(BACKGROUND);
    const foreign = setUp();
    expect(await foreign.read(documentWith(entry(9, [])))).toBe('corrupt');
    await expect(foreign.sync.readToWrite(BACKGROUND)).rejects.toMatchObject({ kind: 'corrupt' });
  });
});

describe('the entries that a read unwraps', () => {
  const revoked = { revoked: revocationBy(key(8).id, [key(9)]) };
  const future = { activates: NOW + 1 };

  test.each<readonly [string, readonly RingEntry[], SyncOptions, readonly number[], readonly (readonly number[])[]]>([
    [
      'entries are unwrapped four at a time, newest first',
      heirs(2, 3, 4, 5, 6, 7),
      BACKGROUND,
      [7, 6, 5, 4, 3, 2],
      [[1, 2, 3, 4, 5, 6, 7], [], []],
    ],
    [
      'entries that are marked as revoked are unwrapped last',
      [...heirs(2, 3), entry(8, [1], revoked)],
      BACKGROUND,
      [3, 2, 8],
      [[1, 2, 3, 8], [], []],
    ],
    [
      'after a notification, only active entries are unwrapped',
      [entry(2, [1], future), entry(3, [1], { activates: NOW })],
      { ...BACKGROUND, deferUnwraps: true },
      [3],
      [[1, 3], [2], []],
    ],
  ])('%s', async (_, entries, options, expected, snapshot) => {
    const { read, calls, numbers, checked } = setUp();
    await read(documentWith(root, ...entries), options);
    expect(calls).toEqual(expected);
    expect(numbers().map((all) => all.toSorted((a, b) => a - b))).toEqual(snapshot);
    expect(checked).toHaveBeenCalledTimes(expected.length);
  });

  test.each<readonly [string, SyncOptions, readonly number[], readonly (readonly number[])[]]>([
    ['a timer causes another attempt at them after the new ones', BACKGROUND, [4, 3, 2], [[1, 2, 3, 4], [], []]],
    ['a token causes attempts at new entries only', { ...BACKGROUND, forToken: true }, [4], [[1, 4], [2], [3]]],
    [
      'a notification causes attempts at new entries only',
      { ...BACKGROUND, deferUnwraps: true },
      [4],
      [[1, 4], [2], [3]],
    ],
  ])('if entries failed before, %s', async (_, options, expected, snapshot) => {
    const active = (n: number) => entry(n, [1], { activates: NOW });
    const { read, calls, failing, numbers } = setUp({ failing: { 2: 'throttled', 3: 'corrupt' } });
    expect(await read(documentWith(root, active(2), active(3)))).toBe('throttled');
    delete failing[2];
    delete failing[3];
    calls.length = 0;
    await read(documentWith(root, active(2), active(3), active(4)), options);
    expect(calls).toEqual(expected);
    expect(numbers().map((all) => all.toSorted((a, b) => a - b))).toEqual(snapshot);
  });

  test.each([
    ['20 s', false, 4_999, 5_000],
    ['5 s while refusals are counted', true, 1_249, 1_250],
  ])('no unwrap begins after %s', async (_, refused, quickMs, slowMs) => {
    const { read, calls, unwrapping, numbers, isRefused } = setUp();
    isRefused.mockReturnValue(refused);
    unwrapping.ms = quickMs;
    await read(documentWith(root, ...heirs(2, 3, 4, 5, 6, 7, 8, 9)));
    expect([calls.length, numbers()[1]?.length]).toEqual([8, 0]);
    const slow = setUp();
    slow.isRefused.mockReturnValue(refused);
    slow.unwrapping.ms = slowMs;
    await slow.read(documentWith(root, ...heirs(2, 3, 4, 5, 6, 7, 8, 9)));
    expect([slow.calls.length, slow.numbers()[1]]).toEqual([4, [5, 4, 3, 2]]);
  });

  const held = wrapBy(key(1));

  test.each<readonly [string, RingWrap | Error | undefined, SyncOptions, number]>([
    ['is reported once the KMS unwraps a known key', held, BACKGROUND, 1],
    ['is reported if no key could be checked', undefined, BACKGROUND, 1],
    ['is reported if the check fails too', new Error('x'), BACKGROUND, 1],
    ['is not checked because of a token', held, { ...BACKGROUND, forToken: true }, 0],
  ])('an entry that the KMS refuses once %s, and is tried again', async (_, checkedAs, options, checks) => {
    const { read, run, numbers, noteRefused } = setUp({ failing: { 2: 'denied' } });
    run.mockImplementation(async () => {
      if (checkedAs instanceof Error) throw checkedAs;
      return checkedAs;
    });
    expect(await read(documentWith(root, entry(2, [1])), options)).toBe('denied');
    expect(numbers()).toEqual([[1], [2], []]);
    expect(run).toHaveBeenCalledTimes(checks);
    expect(noteRefused).not.toHaveBeenCalled();
  });

  test.each<readonly [string, number, boolean, string, readonly (readonly number[])[], number]>([
    ['is corrupt if 8 s have passed', 8_000, true, 'done', [[1], [], [2]], 1],
    ['is tried again if less time has passed', 7_999, true, 'denied', [[1], [2], []], 0],
    ['is tried again if it has a wrap by another key wrapper', 8_000, false, 'denied', [[1], [2], []], 1],
  ])('an entry that the KMS refuses twice %s', async (_, ms, isUnreadable, outcome, snapshot, noted) => {
    const { read, pass, numbers, noteRefused } = setUp({ failing: { 2: 'denied' } });
    noteRefused.mockReturnValue(isUnreadable);
    const document = documentWith(root, entry(2, [1]));
    await read(document);
    pass(ms);
    expect(await read(document)).toBe(outcome);
    expect(numbers()).toEqual(snapshot);
    expect(noteRefused).toHaveBeenCalledTimes(noted);
  });

  test('a key that does not belong to the ring is unreadable', async () => {
    const { read, numbers } = setUp();
    // Its statement about its ancestors is not its own.
    const forged = { ...entry(2, [1]), ancestors: ancestorsBy(key(9), [key(1)]) };
    expect(await read(documentWith(root, forged))).toBe('done');
    expect(numbers()).toEqual([[1], [], [2]]);
  });
});

describe('an older ring that is back in the store', () => {
  const young = (more: Partial<RingEntry> = {}): RingSnapshot => knowing([key(5), entry(5, [], more)]);
  const older = [entry(1, []), entry(2, [1])];

  test.each<readonly [string, Facts, readonly RingEntry[], readonly number[]]>([
    ['a young ring is left for an older one', { known: young() }, older, [1, 2, 5]],
    [
      'a young ring is left for an older one that has a younger key, too',
      { known: young() },
      [entry(1, []), entry(6, [1])],
      [1, 5, 6],
    ],
    [
      'a young ring of two keys is left, with one that was left before and one that is revoked',
      {
        known: createSnapshot([
          tombstone(entry(4, [2]), undefined),
          { ...ownKey(key(3)), ancestors: ancestorsBy(key(3), [key(9)]), isLeft: true },
          ...knowing([key(5), entry(5, [])], [key(6), entry(6, [5])]).keys,
        ]),
      },
      older,
      [1, 2, 3, 4, 5, 6],
    ],
    [
      'a ring that is old itself is not left',
      { known: young({ created: NOW - 21_600_000 }) },
      [entry(1, [], { created: NOW - 21_700_000 }), entry(2, [1])],
      [5],
    ],
    ['a ring is not left for a younger one', { known: young() }, [entry(6, []), entry(7, [6])], [5]],
    ['a ring is not left if the document has a key of it', { known: young() }, [...older, entry(5, [])], [5]],
    ['a ring whose oldest key has ancestors is not left', { known: knowing([key(5), entry(5, [4])]) }, older, [5]],
    ['a ring is not left for a dead one', { known: young() }, older.map((each) => ({ ...each, opensUntil: NOW })), [5]],
    ['a ring is not left for a corrupt one', { known: young(), failing: { 1: 'corrupt', 2: 'corrupt' } }, older, [5]],
    [
      'a ring is not left for one that the KMS refuses',
      { known: young(), failing: { 1: 'denied', 2: 'denied' } },
      older,
      [5],
    ],
    ['a ring is not left for two lineages', { known: young() }, [entry(1, []), entry(2, [])], [5]],
  ])('%s', async (_, facts, entries, expected) => {
    const { read, view } = setUp(facts);
    const isThere = entries.some(({ id }) => view.snapshot.byId.has(id));
    expect(await read(documentWith(...entries))).toBe(isThere || expected.length > 1 ? 'done' : 'corrupt');
    expect(view.snapshot.keys.map(numberOf).toSorted((a, b) => a - b)).toEqual(expected);
    const left = view.snapshot.keys.filter(({ isLeft }) => isLeft).map(numberOf);
    const learned = entries.map(numberOf);
    const leftBehind = expected.filter((n) => expected.length > 1 && !learned.includes(n));
    expect(left.toSorted((a, b) => a - b)).toEqual(leftBehind);
  });

  test('a temporary failure, which is reported, does not make a member leave its ring', async () => {
    const { read, view } = setUp({ known: young(), failing: { 1: 'throttled' } });
    expect(await read(documentWith(...older))).toBe('throttled');
    expect(view.snapshot.keys.map(numberOf)).toEqual([5]);
  });

  test.each(['forToken', 'deferUnwraps'])(
    'a read that others caused (%s) leaves the decision, and every unwrap, to the next read',
    async (cause) => {
      const { read, view, calls } = setUp({ known: young() });
      const document = documentWith(...older);
      expect(await read(document, { ...BACKGROUND, [cause]: true })).toBe('corrupt');
      expect([calls, view.snapshot.keys.map(numberOf)]).toEqual([[], [5]]);
      expect(await read(document)).toBe('done');
      expect(view.snapshot.keys.map(numberOf)).toEqual([1, 2, 5]);
    },
  );

  test.each([
    ['counts as junk if the KMS unwraps a held key', wrapBy(key(1)), 1],
    ['does not count as junk if no held key can be checked', undefined, 0],
    ['does not count as junk if the KMS does not unwrap a held key', new Error('x'), 0],
  ])('a document of which nothing was unwrapped in 20 s %s', async (_, checkedAs, considered) => {
    const { read, view, unwrapping, run, consider } = setUp({
      known: young(),
      failing: { 1: 'unavailable', 2: 'corrupt' },
    });
    unwrapping.ms = 10_000;
    run.mockImplementation(async () => {
      if (checkedAs instanceof Error) throw checkedAs;
      return checkedAs;
    });
    expect(await read(documentWith(...older))).toBe(considered === 1 ? 'corrupt' : 'unavailable');
    expect(consider).toHaveBeenCalledTimes(considered);
    expect(view.snapshot.keys.map(numberOf)).toEqual([5]);
  });

  test.each([
    ['is continued by the next read', false, [2, 1, 1]],
    ['is repeated by the next read if the keys were overwritten meanwhile', true, [2, 1, 2, 1]],
  ])('switching to a ring of which 20 s sufficed for one key only %s', async (_, isOverwritten, expected) => {
    const { read, view, unwrapping, failing, calls, run } = setUp({ known: young() });
    failing[1] = 'unavailable';
    unwrapping.ms = 10_000;
    expect(await read(documentWith(...older))).toBe('unavailable');
    expect(run).not.toHaveBeenCalled();
    delete failing[1];
    const overwritten = vi.spyOn(DataKey.prototype, 'isOverwritten', 'get').mockReturnValue(isOverwritten);
    expect(await read(documentWith(...older))).toBe('done');
    overwritten.mockRestore();
    expect(calls).toEqual(expected);
    expect(view.snapshot.keys.map(numberOf)).toEqual([1, 2, 5]);
  });
});

describe('the end of a start', () => {
  test.each<readonly [string, RingSnapshot, RingDocument | undefined, number, boolean]>([
    ['a ring that is known as a whole', knowing([key(1), root]), documentWith(root), 1, true],
    ['a ring of which an entry is not known', knowing([key(1), root]), documentWith(root, entry(9, [])), 1, false],
    ['a ring without a usable key', createSnapshot([]), undefined, 0, false],
  ])('%s is installed', async (_, known, document, reads, isLearned) => {
    const { sync, view, wasRead, consider, read, judged } = setUp({ known: createSnapshot([]) });
    sync.begin(known, document);
    expect(view.snapshot).toBe(known);
    expect(wasRead).toHaveBeenCalledTimes(reads);
    expect(consider.mock.calls.map(([given]) => given)).toEqual([document]);
    await read(document);
    expect(judged.mock.calls.length === 0).toBe(isLearned || document === undefined);
  });

  test('the authenticators of an expired ring are remembered', async () => {
    const { sync, view } = setUp();
    await sync.rememberPast(documentWith(root, entry(2, [1])), BACKGROUND);
    expect(view.rememberPast.mock.calls.map(([signers]) => signers.map(numberOf))).toEqual([[2, 1]]);
  });
});
