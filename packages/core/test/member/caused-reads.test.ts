import { describe, expect, test, vi } from 'vitest';
import { type Moment, momentOf } from '../../src/base/clock.ts';
import { CausedReads } from '../../src/member/caused-reads.ts';
import type { Condition } from '../../src/member/condition.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import { Turns } from '../../src/member/turns.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { createSnapshot } from '../../src/ring/snapshot.ts';
import { first, one, ownKey, two } from '../support/known-keys.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

function setUp(readSecondsAgo: number | undefined = 0, checkedSecondsAgo: number | undefined = 0) {
  const clock = new VirtualClock('2026-11-21T05:00:00Z');
  const now = (): Moment => momentOf(clock);
  const ago = (seconds: number | undefined): Moment | undefined =>
    seconds === undefined
      ? undefined
      : { wallMs: now().wallMs - seconds * 1_000, steadyMs: now().steadyMs - seconds * 1_000 };
  const read = vi.fn<(options: object) => Promise<void>>(async () => undefined);
  const pass = vi.fn<(options: object) => Promise<void>>(async () => undefined);
  const background = vi.fn<(options: object, begin: () => void) => void>();
  const [found, emitRefresh] = [vi.fn<(isUnfinished: boolean) => void>(), vi.fn<(failure: unknown) => void>()];
  const view = {
    isClosed: false,
    snapshot: createSnapshot([ownKey(one)]),
    limits: { lastRead: ago(readSecondsAgo), lastKmsCheck: ago(checkedSecondsAgo) },
    now,
  };
  const writer = { isDead: false };
  const condition = {
    failedMs: Number.POSITIVE_INFINITY,
    emitRefresh,
    hasFailedWithin: (ms: number) => condition.failedMs <= ms,
  };
  const policy = resolvePolicy(undefined, { storeKind: 's3', createNow: false });
  const random = (fill: Uint8Array): void => void fill.fill(0).fill(0x80, fill.length - 1);
  const parts = { policy, clock, random, view, sync: { read }, writer } as unknown as MemberParts;
  const reads = new CausedReads(parts, new Turns(), condition as unknown as Condition, { pass, background, found });
  return { reads, clock, now, view, writer, condition, read, pass, background, found, emitRefresh };
}

describe('a read that a token causes', () => {
  test('only a token of an unknown key causes a read, at most one in 10 s, which all waiting callers share', async () => {
    const { reads, clock, now, read, found, emitRefresh } = setUp();
    reads.noteUnknownKey(one.id, now());
    await clock.advance(0);
    expect(read).not.toHaveBeenCalled();
    for (const id of [two.id, undefined, two.id]) reads.noteUnknownKey(id, now());
    await clock.advance(9.999);
    await reads.forToken(now(), { foreground: true });
    expect(read.mock.calls).toEqual([[{ forToken: true }]]);
    expect([found.mock.calls, emitRefresh.mock.calls.map(([failure]) => failure)]).toEqual([[[false]], [undefined]]);
    await clock.advance(0.001);
    await reads.forToken(now(), { foreground: true });
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('a failed read is reported, and does not fail any caller', async () => {
    const { reads, now, read, found, emitRefresh } = setUp();
    const failure = new Error('x');
    read.mockRejectedValue(failure);
    await reads.forToken(now(), { foreground: true });
    expect([found.mock.calls.length, emitRefresh.mock.calls[0]?.[0]]).toEqual([1, failure]);
  });

  test.each([
    ['an entry waits to be unwrapped', { snapshot: createSnapshot([], [first]) }, {}],
    ['the ring has no key that seals', {}, { isDead: true }],
  ])('another pass follows if %s', async (_, viewed, written) => {
    const { reads, now, view, writer, found } = setUp();
    Object.assign(view, viewed);
    Object.assign(writer, written);
    await reads.forToken(now(), { foreground: true });
    expect(found.mock.calls).toEqual([[true]]);
  });

  test('a whole pass is made instead of the read if one is overdue, and nothing is done after close', async () => {
    const { reads, now, pass, read } = setUp(301);
    await reads.forToken(now(), { foreground: true });
    expect([pass.mock.calls, read.mock.calls.length]).toEqual([[[{ foreground: true, reads: true }]], 0]);
    const closed = setUp();
    closed.view.isClosed = true;
    await closed.reads.forToken(closed.now(), { foreground: false });
    expect([closed.read.mock.calls.length, closed.pass.mock.calls.length, closed.found.mock.calls.length]).toEqual([
      0, 0, 0,
    ]);
  });
});

test.each<readonly [string, string | undefined, number | undefined, number | undefined, number, boolean]>([
  ['is worthwhile for a token of an unknown key', two.id, 0, 0, Infinity, true],
  ['is not worthwhile for a token of a known key', one.id, 300, 900, Infinity, false],
  ['is not worthwhile without a key id', undefined, 300, 900, Infinity, false],
  ['is worthwhile if the last read is old', one.id, 300.001, 0, Infinity, true],
  ['is worthwhile if the last KMS check is old', one.id, 0, 900.001, Infinity, true],
  ['is worthwhile if the ring was never read', one.id, undefined, 0, Infinity, true],
  ['is worthwhile if the KMS was never called', one.id, 0, undefined, Infinity, true],
  ['is not worthwhile while passes fail', one.id, 301, 901, 80_000, false],
  ['is worthwhile if the failure is old', one.id, 301, 901, 80_001, true],
])('waiting for the ring %s', (_, id, readSecondsAgo, checkedSecondsAgo, failedMs, expected) => {
  const { reads, now, view, condition } = setUp();
  const { limits } = setUp(readSecondsAgo ?? 0, checkedSecondsAgo ?? 0).view;
  view.limits = {
    lastRead: readSecondsAgo === undefined ? undefined : limits.lastRead,
    lastKmsCheck: checkedSecondsAgo === undefined ? undefined : limits.lastKmsCheck,
  };
  condition.failedMs = failedMs;
  expect(reads.isWorthWaitingFor(id, now())).toBe(expected);
});

test('a notification causes one pass at once, or a little after 10 s have passed since the last one', async () => {
  const { reads, clock, view, background } = setUp();
  reads.notified();
  reads.notified();
  await clock.advance(0);
  expect(background.mock.calls.map(([options]) => options)).toEqual([{ reads: true, deferUnwraps: true }]);
  background.mock.calls[0]?.[1]();
  reads.notified();
  // Half of the longest jitter.
  await clock.advance(10.999);
  expect(background).toHaveBeenCalledTimes(1);
  await clock.advance(0.002);
  expect(background).toHaveBeenCalledTimes(2);
  background.mock.calls[1]?.[1]();
  view.isClosed = true;
  reads.notified();
  await clock.advance(60);
  expect(background).toHaveBeenCalledTimes(2);
});
